//! Checks what a chain returns about an HTLC: raw transactions, spends, headers and Merkle proofs. No I/O.
//!
//! Every result is proven by the bytes. A transaction id is computed from the serialized transaction, and an amount is read from its
//! output. Keys, timelock and secret hash are those of the tree that gives the address. A secret is checked against its hash.
//!
//! Bytes cannot prove that a block belongs to the chain with the most work. On Bitcoin, a header must have the work that it
//! claims. On Litecoin, a header and a Merkle proof are checked against the block hash, which is double SHA-256 too. Litecoin's work
//! is measured by scrypt, which is not computed here.
//!
//! Specification: `docs/spec/bitcoin.md#reading-an-order`.

use bitcoin::consensus::encode::{self, deserialize};
use bitcoin::hashes::{Hash, sha256};
use bitcoin::pow::CompactTarget;
use bitcoin::{BlockHash, MerkleBlock, OutPoint, Script, Target, Transaction, Txid, block};
use countersign_core::chains::{BitcoinNet, Coin};
use countersign_core::{Code, HtlcTerms, Refusal};

use crate::address::Chain;
use crate::htlc::{Htlc, Leaf, Tree};

/// The most bytes of a raw transaction that is parsed, which is the weight limit of a block.
pub const MAX_TRANSACTION: usize = 4_000_000;

/// The length of a block header in bytes.
const HEADER: usize = 80;

/// The flag of Litecoin's extension blocks (MWEB), in the same byte as the witness flag of BIP-144.
const MWEB_FLAG: u8 = 0x08;

/// How an output of an HTLC was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "one for each leaf")]
pub enum HtlcSpend {
    /// By the redeemer, with this secret; `None` if the secret does not have 32 bytes.
    Redeem(Option<[u8; 32]>),
    /// By the initiator, after the timelock.
    Refund,
    /// By both parties together.
    InstantRefund,
}

/// Rebuilds the tree of an HTLC from its verified terms, and requires that its address is the swap id.
///
/// # Errors
///
/// [`Code::RecordMismatch`] or [`Code::TimelockTooLong`] for terms that cannot be those of an HTLC, or [`Code::RecordSwapId`] if the
/// address is not the swap id.
pub fn tree(terms: &HtlcTerms, chain: Chain) -> Result<Tree, Refusal> {
    let refuse = |code, member: &str| Refusal::new(code, format!("/{member}"));
    let key = |member: &str, account: Option<&countersign_core::Account>| {
        account
            .and_then(countersign_core::Account::array)
            .ok_or_else(|| refuse(Code::RecordMismatch, member).with_expected("an x-only key"))
    };
    let htlc = Htlc {
        internal_key: key("htlc", terms.htlc.as_ref())?,
        initiator: key("initiator", Some(&terms.initiator))?,
        redeemer: key("redeemer", Some(&terms.redeemer))?,
        secret_hash: terms.secret_hash.0,
        timelock: u16::try_from(terms.timelock).map_err(|_| refuse(Code::TimelockTooLong, "timelock").with_actual(terms.timelock))?,
    };
    let tree = Tree::new(htlc).ok_or_else(|| refuse(Code::RecordMismatch, "htlc").with_expected("an x-only key"))?;
    let address = tree.address(chain);
    if !terms.swap_id.eq_ignore_ascii_case(&address) {
        return Err(refuse(Code::RecordSwapId, "swap_id").with_expected(address).with_actual(&terms.swap_id));
    }
    Ok(tree)
}

/// Returns the script hash of Esplora's interface: the SHA-256 of the script in hex. The Electrum protocol has the same bytes in
/// reverse order.
#[must_use]
pub fn script_hash(script: &Script) -> String {
    sha256::Hash::hash(script.as_bytes()).to_string()
}

/// Returns whether raw bytes are a Litecoin transaction with MimbleWimble data. The last transaction of each block is such a
/// transaction, and its outputs are the coins that left the extension block.
#[must_use]
pub fn is_mweb(raw: &[u8]) -> bool {
    matches!(raw, [_, _, _, _, 0, flag, ..] if flag & MWEB_FLAG != 0)
}

/// Returns whether the first output of a transaction holds all coins of Litecoin's extension block: a witness program of version 8
/// and 32 bytes.
#[must_use]
pub fn holds_mweb(transaction: &Transaction) -> bool {
    transaction.output.first().is_some_and(|output| matches!(output.script_pubkey.as_bytes(), [0x58, 0x20, rest @ ..] if rest.len() == 32))
}

/// Parses a raw transaction, and requires that its id is the expected one.
///
/// # Errors
///
/// [`Code::TransactionMalformed`] for bytes that are not exactly one transaction, and for Litecoin transactions with MimbleWimble
/// data, which this library does not parse. [`Code::UtxoMismatch`] if the id is another one.
pub fn parse_transaction(raw: &[u8], txid: Txid) -> Result<Transaction, Refusal> {
    let refuse = |code| Refusal::new(code, "/transaction");
    if is_mweb(raw) {
        return Err(refuse(Code::TransactionMalformed).with_reason("transactions with MimbleWimble data are not supported"));
    }
    if raw.len() > MAX_TRANSACTION {
        return Err(refuse(Code::TransactionMalformed).with_reason("longer than a block"));
    }
    let parsed = deserialize(raw).map_err(|error: encode::Error| refuse(Code::TransactionMalformed).with_reason(error.to_string()));
    let transaction: Transaction = parsed?;
    let actual = transaction.compute_txid();
    if actual != txid {
        return Err(refuse(Code::UtxoMismatch).with_expected(txid.to_string()).with_actual(actual.to_string()));
    }
    Ok(transaction)
}

/// Reads how a transaction spends an output of an HTLC.
///
/// # Errors
///
/// [`Code::FundingMismatch`] if the transaction does not spend that output, if its witness does not contain one of the leaves, or if
/// it redeems without the secret.
pub fn read_spend(tree: &Tree, outpoint: OutPoint, transaction: &Transaction) -> Result<HtlcSpend, Refusal> {
    let refuse = |why: &'static str| Refusal::new(Code::FundingMismatch, "/spend").with_reason(why);
    let input = transaction.input.iter().find(|input| input.previous_output == outpoint);
    let input = input.ok_or_else(|| refuse("the transaction does not spend the output"))?;
    let mut items: Vec<&[u8]> = input.witness.iter().collect();
    // The annex of BIP-341 is not part of the script's input.
    if items.len() >= 2 && items.last().is_some_and(|item| item.first() == Some(&0x50)) {
        items.pop();
    }
    let opens = |leaf: Leaf, script: &[u8], control: &[u8]| script == tree.script(leaf).as_bytes() && control == tree.control_block(leaf);
    match items.as_slice() {
        [_, secret, script, control] if opens(Leaf::Redeem, script, control) => {
            if sha256::Hash::hash(secret).to_byte_array() != tree.htlc.secret_hash {
                return Err(refuse("the witness does not contain the secret"));
            }
            Ok(HtlcSpend::Redeem(<[u8; 32]>::try_from(*secret).ok()))
        }
        [_, script, control] if opens(Leaf::Refund, script, control) => Ok(HtlcSpend::Refund),
        [_, _, script, control] if opens(Leaf::InstantRefund, script, control) => Ok(HtlcSpend::InstantRefund),
        _ => Err(refuse("the witness does not match any of the HTLC's scripts")),
    }
}

/// Parses a block header, and requires that its hash is the expected one and that it has the work that it claims.
///
/// On Bitcoin's main network the difficulty must also be at least 8.8e12. No block has been below that since 2019, and it makes a
/// forged header expensive. On Litecoin the work is not checked: see the module's documentation.
///
/// # Errors
///
/// [`Code::FundingMismatch`] if the bytes are not such a header.
pub fn check_header(raw: &[u8], hash: BlockHash, chain: Chain) -> Result<block::Header, Refusal> {
    let header = Some(raw).filter(|raw| raw.len() == HEADER).and_then(|raw| deserialize::<block::Header>(raw).ok());
    let header = header.ok_or_else(|| mismatch("not a block header"))?;
    check_work(&header, hash, chain)?;
    Ok(header)
}

/// Requires that the hash of a header is the expected one, and that it has the work that it claims: see [`check_header`].
///
/// # Errors
///
/// [`Code::FundingMismatch`] if either is not the case.
pub fn check_work(header: &block::Header, hash: BlockHash, chain: Chain) -> Result<(), Refusal> {
    let actual = header.block_hash();
    if actual != hash {
        return Err(mismatch("the header belongs to another block").with_expected(hash.to_string()).with_actual(actual.to_string()));
    }
    if chain.coin == Coin::Bitcoin {
        let floor = Target::from_compact(CompactTarget::from_consensus(0x171f_ffff));
        if !header.target().is_met_by(actual) || chain.net == BitcoinNet::Main && header.target() > floor {
            return Err(mismatch("the header has too little work"));
        }
    }
    Ok(())
}

/// Checks a Merkle proof, and returns the header in it. The proof is serialized as in BIP-37: a header, and the path of the transaction
/// in its block.
///
/// # Errors
///
/// [`Code::FundingMismatch`] if the proof is malformed, if the header fails [`check_work`], or if the transaction is not in the block.
pub fn check_merkle_block(raw: &[u8], txid: Txid, hash: BlockHash, chain: Chain) -> Result<block::Header, Refusal> {
    let proof: MerkleBlock = deserialize(raw).map_err(|_| mismatch("not a Merkle proof"))?;
    check_work(&proof.header, hash, chain)?;
    let (mut matches, mut indexes) = (Vec::new(), Vec::new());
    let extracted = proof.extract_matches(&mut matches, &mut indexes);
    if extracted.is_err() || !matches.contains(&txid) {
        return Err(mismatch("the Merkle proof does not prove the transaction"));
    }
    Ok(proof.header)
}

fn mismatch(why: &'static str) -> Refusal {
    Refusal::new(Code::FundingMismatch, "/block").with_reason(why)
}
