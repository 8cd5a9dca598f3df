//! Which chain an endpoint serves, its newest block, and how far a transaction is confirmed.

use countersign_bitcoin::Chain;
use countersign_bitcoin::bitcoin::Txid;
use countersign_bitcoin::reader::{Included, NamedChain, NewestBlock, OnChain, Status};
use countersign_core::chains::{BitcoinNet, Coin};
use countersign_core::reader::{Agree, Answer, Fault, Known, Observation, Request};
use countersign_core::{BlockHeight, Code};
use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, funding};
use serde_json::json;

use super::{asks, drive, edited, malformed, named, protocol};

const MAIN: &str = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
const TESTNET_3: &str = "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943";
const TESTNET_4: &str = "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043";
const SIGNET: &str = "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6";
const REGTEST: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
const LITECOIN_MAIN: &str = "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2";
const LITECOIN_TEST: &str = "4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0";
const LITECOIN_REGTEST: &str = "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9";

fn status(ledger: &Ledger, txid: Txid, known: &Known) -> Result<Observation<Status>, Fault> {
    drive::<Status>(&OnChain::new(named(), txid), known, |_, _, request| ledger.answer(request)).0
}

/// The three test networks of Bitcoin have the same addresses, so the registry has one network for them. A name may identify one.
#[test]
fn a_chain_is_known_by_its_first_block() {
    let all = [MAIN, TESTNET_3, TESTNET_4, SIGNET, REGTEST, LITECOIN_MAIN, LITECOIN_TEST, LITECOIN_REGTEST];
    let cases: [(Coin, BitcoinNet, &str, &[&str]); 8] = [
        (Coin::Bitcoin, BitcoinNet::Main, "bitcoin", &[MAIN]),
        (Coin::Bitcoin, BitcoinNet::Test, "bitcoin_testnet", &[TESTNET_3, TESTNET_4, SIGNET]),
        (Coin::Bitcoin, BitcoinNet::Test, "bitcoin_testnet4", &[TESTNET_4]),
        (Coin::Bitcoin, BitcoinNet::Test, "bitcoin_signet", &[SIGNET]),
        (Coin::Bitcoin, BitcoinNet::Regtest, "bitcoin_regtest", &[REGTEST]),
        (Coin::Litecoin, BitcoinNet::Main, "litecoin", &[LITECOIN_MAIN]),
        (Coin::Litecoin, BitcoinNet::Test, "litecoin_testnet", &[LITECOIN_TEST]),
        (Coin::Litecoin, BitcoinNet::Regtest, "litecoin_regtest", &[LITECOIN_REGTEST]),
    ];
    let ledger = Ledger::new();
    for (coin, net, name, own) in cases {
        for (hash, is_rpc) in all.into_iter().flat_map(|hash| [(hash, false), (hash, true)]) {
            let answer = |_, place: usize, request: &Request| match place {
                0 if is_rpc => Answer::result(format!("\"{hash}\"").into_bytes()),
                0 => Answer::http(200, hash.as_bytes()),
                _ => ledger.answer(request),
            };
            let (outcome, ..) = drive::<NewestBlock>(&NamedChain::new(Chain { coin, net }, name), &protocol(is_rpc), answer);
            let is_another = matches!(outcome, Err(Fault::WrongChain { .. }));
            assert_eq!(is_another, !own.contains(&hash), "{name} {hash} {outcome:?}");
        }
    }
}

/// On Bitcoin, three blocks may be replaced.
#[test]
fn a_newest_block_that_went_back_is_not_believed() {
    let (mut ledger, transaction) = Ledger::funded(2);
    ledger.has_transaction_index = true;
    let now = BlockHeight::from(7);
    for is_rpc in [false, true] {
        for (before, is_read) in [(7, true), (10, true), (11, false)] {
            let known = protocol(is_rpc).with_height(before.into());
            let (head, ..) = drive::<NewestBlock>(&named(), &known, |_, _, request| ledger.answer(request));
            let status = status(&ledger, transaction.compute_txid(), &known);
            if is_read {
                let head = head.unwrap();
                assert_eq!((head.output().height, head.output().hash.clone()), (now, ledger.hash(7).to_string()));
                // The facts about the endpoint after the reading.
                assert_eq!((head.known().height(), status.unwrap().known().height()), (now, now));
            } else {
                let expected = Fault::WentBack { before: before.into(), now };
                assert_eq!((head.unwrap_err(), status.unwrap_err()), (expected.clone(), expected));
            }
        }
    }
}

#[test]
fn the_status_of_another_transaction_is_no_answer() {
    let (mut ledger, transaction) = Ledger::funded(2);
    ledger.has_transaction_index = true;
    let other = funding(9, AMOUNT);
    ledger.mempool.push(other.clone());
    let (txid, other) = (transaction.compute_txid(), other.compute_txid());
    for is_rpc in [false, true] {
        let answer = |_, _: usize, request: &Request| match ledger.answer(request) {
            honest if asks(request, &format!("/tx/{txid}")) || asks(request, "getrawtransaction") => {
                edited(honest, |status| status["txid"] = json!(other.to_string()))
            }
            honest => honest,
        };
        let (outcome, ..) = drive::<Status>(&OnChain::new(named(), txid), &protocol(is_rpc), answer);
        assert_eq!(malformed(outcome), Code::UtxoMismatch, "{is_rpc}");
    }
}

/// A node still names the block of a transaction after that block has left the chain, with 0 or -1 confirmations.
#[test]
fn a_transaction_in_an_abandoned_block_is_not_confirmed() {
    let (mut ledger, transaction) = Ledger::funded(2);
    ledger.has_transaction_index = true;
    for (confirmations, expected) in [(-1, 0), (0, 0), (1, 2)] {
        let answer = |_, _: usize, request: &Request| match ledger.answer(request) {
            honest if asks(request, "getrawtransaction") => edited(honest, |found| found["confirmations"] = json!(confirmations)),
            honest => honest,
        };
        let (outcome, ..) = drive::<Status>(&OnChain::new(named(), transaction.compute_txid()), &protocol(true), answer);
        let found = outcome.unwrap().into_output().0.unwrap();
        // The depth follows from the heights of the blocks.
        assert_eq!((found.confirmations, found.block_hash.is_some()), (expected, expected > 0), "{confirmations}");
    }
}

/// Honest endpoints may be a block apart. They agree on a transaction if they show it in the same block.
#[test]
fn endpoints_agree_on_the_block_of_a_transaction() {
    let (one, transaction) = Ledger::funded(1);
    let (mut deeper, mut abandoned, mut waiting, unknown) = (one.clone(), one.clone(), one.clone(), Ledger::new());
    deeper.mine(2);
    abandoned.blocks.truncate(6);
    abandoned.mine(1);
    abandoned.mempool.push(transaction.clone());
    abandoned.mine(1);
    waiting.blocks.truncate(6);
    waiting.mempool.push(transaction.clone());
    let read = |ledger: &Ledger| status(ledger, transaction.compute_txid(), &protocol(false)).unwrap().into_output();
    let depth = |Included(status): &Included| status.as_ref().map(|status| status.confirmations);
    let found = [&one, &deeper, &abandoned, &waiting, &unknown].map(read);
    assert_eq!(found.each_ref().map(depth), [Some(1), Some(3), Some(1), Some(0), None]);
    assert_eq!(found[0].key(), found[1].key());
    let distinct = [&found[1], &found[2], &found[3], &found[4]];
    for (place, one) in distinct.iter().enumerate() {
        assert!(distinct.iter().skip(place + 1).all(|other| other.key() != one.key()), "{one:?}");
    }
}
