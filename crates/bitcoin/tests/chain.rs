//! Checking what a chain returns: transactions, spends, headers, Merkle proofs.

use bitcoin::consensus::encode::{deserialize, serialize};
use bitcoin::constants::genesis_block;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::{
    Amount, MerkleBlock, Network, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness, absolute, transaction,
};
use countersign_bitcoin::Chain;
use countersign_bitcoin::chain::{
    HtlcSpend, check_header, check_merkle_block, holds_mweb, is_mweb, parse_transaction, read_spend, script_hash,
};
use countersign_bitcoin::htlc::{Htlc, Leaf, Tree};
use countersign_core::Code;
use countersign_core::chains::{BitcoinNet, Coin};
use countersign_testkit::TestResult;
use proptest::prelude::*;

const SECRET: [u8; 32] = *b"thirty-two bytes of good secret!";

/// The last transaction of a block of Litecoin Core 0.21.2.1 in regtest, after the activation of the extension block.
const HOGEX: &str = "02000000000801fdd1162583f4ed47b33e3f7cfadb14e23a237e96bdd95ec1534fc653d7f982e80000000000ffffffff01e666814a00000000225820a071948e56c1c3db262dd396d2b5591ebd02f69b6dbbb7b3e2310510ab009c7b0000000000";

const fn chain(coin: Coin, net: BitcoinNet) -> Chain {
    Chain { coin, net }
}

fn tree(secret_hash: [u8; 32]) -> Tree {
    let key = |text: &str| <[u8; 32]>::try_from(hex::decode(text).expect("hex")).expect("32 bytes");
    let internal_key = key("2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0");
    // G and 2G.
    let initiator = key("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");
    let redeemer = key("c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5");
    Tree::new(Htlc { internal_key, initiator, redeemer, secret_hash, timelock: 144 }).expect("a point")
}

fn outpoint() -> OutPoint {
    OutPoint { txid: Txid::from_byte_array([1; 32]), vout: 3 }
}

fn spending(items: &[&[u8]]) -> Transaction {
    Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![TxIn {
            previous_output: outpoint(),
            script_sig: ScriptBuf::new(),
            sequence: Sequence::MAX,
            witness: Witness::from_slice(items),
        }],
        output: vec![TxOut { value: Amount::from_sat(1), script_pubkey: ScriptBuf::new() }],
    }
}

#[test]
fn each_leaf_is_read_from_its_witness() -> TestResult {
    let tree = tree(sha256::Hash::hash(&SECRET).to_byte_array());
    let part = |leaf| (tree.script(leaf).into_bytes(), tree.control_block(leaf));
    let (redeem, redeem_control) = part(Leaf::Redeem);
    let (refund, refund_control) = part(Leaf::Refund);
    let (instant, instant_control) = part(Leaf::InstantRefund);
    let read = |items: &[&[u8]]| read_spend(&tree, outpoint(), &spending(items));
    let (signature, annex) = ([1_u8; 64], [0x50_u8, 1]);
    assert_eq!(read(&[&signature, &SECRET, &redeem, &redeem_control])?, HtlcSpend::Redeem(Some(SECRET)));
    assert_eq!(read(&[&signature, &SECRET, &redeem, &redeem_control, &annex])?, HtlcSpend::Redeem(Some(SECRET)));
    assert_eq!(read(&[&signature, &refund, &refund_control])?, HtlcSpend::Refund);
    assert_eq!(read(&[&signature, &signature, &instant, &instant_control])?, HtlcSpend::InstantRefund);
    let others: [&[&[u8]]; 6] = [
        &[&signature, &[7; 32], &redeem, &redeem_control],
        &[&signature, &SECRET, &redeem, &refund_control],
        &[&signature, &SECRET, &instant, &redeem_control],
        &[&signature, &refund, &redeem_control],
        &[&signature],
        &[],
    ];
    for items in others {
        assert_eq!(read(items).expect_err("no leaf of the tree").code(), Code::FundingMismatch);
    }
    let elsewhere = OutPoint { vout: 2, ..outpoint() };
    assert!(read_spend(&tree, elsewhere, &spending(&[&signature, &refund, &refund_control])).is_err());
    Ok(())
}

#[test]
fn a_secret_of_another_length_opens_the_leaf_and_is_not_returned() -> TestResult {
    let tree = tree(sha256::Hash::hash(b"short").to_byte_array());
    let (script, control) = (tree.script(Leaf::Redeem).into_bytes(), tree.control_block(Leaf::Redeem));
    assert_eq!(read_spend(&tree, outpoint(), &spending(&[&[1; 64], b"short", &script, &control]))?, HtlcSpend::Redeem(None));
    Ok(())
}

#[test]
fn litecoins_extension_transactions_are_never_misread() -> TestResult {
    let raw = hex::decode(HOGEX).expect("hex");
    assert!(is_mweb(&raw));
    let refusal = parse_transaction(&raw, Txid::from_byte_array([0; 32])).expect_err("of another form");
    assert_eq!(refusal.code(), Code::TransactionMalformed);
    assert!(refusal.to_string().contains("MimbleWimble"), "{refusal}");
    // Without its flag, it is a transaction whose first output holds the coins of the extension block.
    let plain = [&raw[..4], &raw[6..raw.len() - 5], &raw[raw.len() - 4..]].concat();
    assert!(!is_mweb(&plain));
    assert!(holds_mweb(&deserialize(&plain)?));
    assert!(!holds_mweb(&spending(&[])));
    Ok(())
}

#[test]
fn a_transaction_is_the_one_that_was_asked_for() -> TestResult {
    let transaction = &genesis_block(Network::Bitcoin).txdata[0];
    let raw = serialize(transaction);
    assert_eq!(parse_transaction(&raw, transaction.compute_txid())?, *transaction);
    assert_eq!(parse_transaction(&raw, Txid::from_byte_array([0; 32])).expect_err("another").code(), Code::UtxoMismatch);
    for other in [[&raw[..], &[0]].concat(), raw[..raw.len() - 1].to_vec(), Vec::new()] {
        assert_eq!(parse_transaction(&other, transaction.compute_txid()).expect_err("malformed").code(), Code::TransactionMalformed);
    }
    Ok(())
}

#[test]
fn a_header_has_the_work_that_it_claims() -> TestResult {
    let header = genesis_block(Network::Bitcoin).header;
    let (raw, hash) = (serialize(&header), header.block_hash());
    let (main, test) = (chain(Coin::Bitcoin, BitcoinNet::Main), chain(Coin::Bitcoin, BitcoinNet::Test));
    assert_eq!(check_header(&raw, hash, test)?, header);
    // Enough work in 2009, but far too little for a current block of the main network.
    assert_eq!(check_header(&raw, hash, main).expect_err("too easy").code(), Code::FundingMismatch);
    let mut other = header;
    other.nonce = 1;
    let other_hash = other.block_hash();
    assert!(check_header(&serialize(&other), hash, test).is_err(), "another block's");
    assert!(check_header(&serialize(&other), other_hash, test).is_err(), "no work");
    // Litecoin's work is measured by another function: only the hash is compared.
    assert!(check_header(&serialize(&other), other_hash, chain(Coin::Litecoin, BitcoinNet::Main)).is_ok());
    assert!(check_header(&raw[..79], hash, test).is_err());
    Ok(())
}

#[test]
fn a_merkle_proof_leads_to_its_own_block() -> TestResult {
    let block = genesis_block(Network::Testnet);
    let (txid, hash) = (block.txdata[0].compute_txid(), block.block_hash());
    let raw = serialize(&MerkleBlock::from_block_with_predicate(&block, |_| true));
    let test = chain(Coin::Bitcoin, BitcoinNet::Test);
    assert_eq!(check_merkle_block(&raw, txid, hash, test)?, block.header);
    assert!(check_merkle_block(&raw, Txid::from_byte_array([2; 32]), hash, test).is_err(), "another transaction");
    assert!(check_merkle_block(&raw, txid, genesis_block(Network::Signet).block_hash(), test).is_err(), "another block");
    let unmatched = serialize(&MerkleBlock::from_block_with_predicate(&block, |_| false));
    assert!(check_merkle_block(&unmatched, txid, hash, test).is_err(), "the proof is of nothing");
    Ok(())
}

#[test]
fn script_hashes_are_those_of_esplora() {
    // The example of the Electrum protocol's documentation, the p2pkh script of the first coinbase's address: its SHA-256, which Esplora
    // takes as it is. Electrum reverses it to 8b01df4e..c39161.
    let script = ScriptBuf::from_bytes(hex::decode("76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac").expect("hex"));
    assert_eq!(script_hash(&script), "6191c3b590bfcfa0475e877c302da1e323497acf3b42c08d8fa28e364edf018b");
}

proptest! {
    #[test]
    fn no_bytes_panic(raw in proptest::collection::vec(any::<u8>(), 0..300), flips in proptest::collection::vec((0..400_usize, any::<u8>()), 0..4)) {
        let block = genesis_block(Network::Testnet);
        let mut proof = serialize(&MerkleBlock::from_block_with_predicate(&block, |_| true));
        for (at, with) in flips {
            if let Some(byte) = proof.get_mut(at) {
                *byte ^= with;
            }
        }
        let (txid, hash, test) = (block.txdata[0].compute_txid(), block.block_hash(), chain(Coin::Bitcoin, BitcoinNet::Test));
        let _ = parse_transaction(&raw, txid);
        let _ = check_header(&raw, hash, test);
        let _ = check_merkle_block(&raw, txid, hash, test);
        if let Ok(header) = check_merkle_block(&proof, txid, hash, test) {
            prop_assert_eq!(header, block.header);
        }
    }
}
