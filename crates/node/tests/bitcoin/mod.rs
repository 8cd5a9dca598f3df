//! Bitcoin through Esplora servers that lie, fail or disagree: the result is "unknown" or a hold, never a proof of funding.
#![cfg(feature = "bitcoin")]
mod fake;
mod preconditions;
mod prices;
mod raise;
mod recovery;
mod rpc;

use countersign::chains::UnixTime;
use std::sync::{Arc, Mutex};

use countersign::bitcoin::FeeRate;
use countersign::bitcoin::bitcoin::consensus::encode::{serialize, serialize_hex};
use countersign::bitcoin::bitcoin::{OutPoint, ScriptBuf, Transaction};
use countersign::bitcoin::htlc::Leaf;
use countersign::{
    BroadcastTransaction, Code, Funded, Policy,
    chains::{Finality, FinalityRule},
    evidence::{Hold, HtlcState},
};
use countersign_client::TransportErrorKind;
use countersign_node::{NodeError, Speed};
use serde_json::Value;

use crate::support::shows_no_key;
use fake::{AMOUNT, Ledger, NOW, SECRET, Servers, TIMELOCK, funding, outpoint, pay, spend, terms, terms_on};

type Shared = Arc<Mutex<Ledger>>;
type Answer = (u16, Vec<u8>);

const RULE: FinalityRule = FinalityRule::new(Finality::Depth(2), 2, 6);

/// A chain with a funding of this depth.
fn funded(depth: usize) -> (Shared, Transaction) {
    let (mut ledger, transaction) = (Ledger::new(), funding(1, AMOUNT));
    ledger.mempool.push(transaction.clone());
    ledger.mine(depth);
    (Arc::new(Mutex::new(ledger)), transaction)
}

/// The driver's decision: the code of a failure or of a hold.
async fn judge(servers: &Servers, quorum: u32) -> Result<Funded, &'static str> {
    let (nodes, terms) = (servers.connect(quorum), terms());
    let read = shows_no_key(nodes.bitcoin("bitcoin_regtest").unwrap().htlc(&terms.destination).await);
    let quorum = read.map_err(|error| error.code().name())?;
    Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).map_err(|hold| hold.code().name())
}

fn edited(answer: Answer, edit: impl FnOnce(&mut Value)) -> Answer {
    let mut value = serde_json::from_slice(&answer.1).unwrap();
    edit(&mut value);
    (answer.0, value.to_string().into_bytes())
}

#[tokio::test(start_paused = true)]
async fn a_funding_is_locked_and_deeper_with_each_block() {
    let (ledger, transaction) = funded(0);
    let servers = Servers::default().with("a.example", &ledger).with("b.example", &ledger);
    for depth in 0..=u64::from(TIMELOCK) {
        let (nodes, terms) = (servers.connect(2), terms());
        let (state, seen) = nodes.bitcoin("bitcoin_regtest").unwrap().htlc(&terms.destination).await.unwrap().state().unwrap();
        let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
        assert_eq!((seen.depth, locked.elapsed, seen.agreed, seen.needed), (depth, depth, 2, 2));
        assert_eq!(locked.amount.to::<u64>(), AMOUNT);
        if depth > 0 {
            assert_eq!((seen.height.get(), seen.hash), (6, ledger.lock().unwrap().hash(6).to_string()));
        }
        // Two blocks deep, and more than six are left before the refund is relayed at 20.
        let expected = match depth {
            0 | 1 => Some("destination_not_final"),
            14.. => Some("destination_no_time"),
            _ => None,
        };
        assert_eq!(judge(&servers, 2).await.err(), expected, "{depth}");
        ledger.lock().unwrap().mine(1);
    }
    let asked = servers.asked.lock().unwrap();
    assert!(asked.iter().any(|line| *line == format!("GET /tx/{}/raw", transaction.compute_txid())));
}

#[tokio::test(start_paused = true)]
async fn every_way_to_end_is_read_from_the_spending_transaction() {
    for (leaf, is_redeemed) in [(Leaf::Redeem, true), (Leaf::Refund, false), (Leaf::InstantRefund, false)] {
        let (ledger, transaction) = funded(3);
        let spender = spend(&transaction, leaf, &SECRET);
        let id = Some(spender.compute_txid().to_string());
        ledger.lock().unwrap().mempool.push(spender);
        let servers = Servers::default().with("a.example", &ledger);
        for depth in 0..3 {
            let nodes = servers.connect(1);
            let (state, seen) = nodes.bitcoin("bitcoin_regtest").unwrap().htlc(&terms().destination).await.unwrap().state().unwrap();
            let expected = if is_redeemed {
                HtlcState::Redeemed { secret: Some(SECRET), transaction: id.clone() }
            } else {
                HtlcState::Refunded { transaction: id.clone() }
            };
            assert_eq!((state, seen.depth), (expected, depth));
            ledger.lock().unwrap().mine(1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_output_that_covers_the_amount_is_judged() {
    let (ledger, _) = funded(3);
    // A stranger sends dust before and after the funding, and another payment that covers the amount.
    ledger.lock().unwrap().mempool.extend([funding(2, 330), funding(3, AMOUNT + 1)]);
    ledger.lock().unwrap().mine(1);
    let servers = Servers::default().with("a.example", &ledger);
    let nodes = servers.connect(1);
    let bitcoin = nodes.bitcoin("bitcoin_regtest").unwrap();
    let (state, seen) = bitcoin.htlc(&terms().destination).await.unwrap().state().unwrap();
    assert!(matches!(&state, HtlcState::Locked(locked) if locked.amount.to::<u64>() == AMOUNT), "{state:?}");
    assert_eq!(seen.depth, 4);
    let values: Vec<u64> = bitcoin.fundings(&fake::tree()).await.unwrap().iter().map(|funding| funding.value.to_sat()).collect();
    assert_eq!(values, [AMOUNT + 1, AMOUNT, 330]);

    let mut ledger = Ledger::new();
    ledger.mempool.push(funding(2, 330));
    ledger.mine(3);
    let servers = Servers::default().with("a.example", &Arc::new(Mutex::new(ledger)));
    assert_eq!(judge(&servers, 1).await.unwrap_err(), "destination_unclear", "dust does not make an order paid");
    let servers = Servers::default().with("a.example", &Arc::new(Mutex::new(Ledger::new())));
    assert_eq!(judge(&servers, 1).await.unwrap_err(), "destination_not_funded");
}

/// Each lie of the only server, with its result.
#[tokio::test(start_paused = true)]
async fn no_lie_of_a_server_proves_a_funding() {
    type Lie = fn(&str, Answer) -> Result<Answer, TransportErrorKind>;
    let lies: [(&str, Lie, &str); 20] = [
        (
            "another chain",
            |path, answer| Ok(if path == "/block-height/0" { (200, "00".repeat(32).into()) } else { answer }),
            "node_wrong_chain",
        ),
        (
            "another transaction",
            |path, answer| Ok(if path.ends_with("/raw") { (200, serialize(&funding(9, AMOUNT))) } else { answer }),
            "node_malformed",
        ),
        (
            "bytes after the transaction",
            |path, answer| Ok(if path.ends_with("/raw") { (200, [answer.1, vec![0]].concat()) } else { answer }),
            "node_malformed",
        ),
        (
            "a transaction with MimbleWimble data",
            |path, mut answer| {
                if path.ends_with("/raw") {
                    answer.1[5] |= 0x08;
                }
                Ok(answer)
            },
            "node_malformed",
        ),
        (
            "another amount",
            |path, answer| Ok(if path.ends_with("/utxo") { edited(answer, |list| list[0]["value"] = (AMOUNT + 1).into()) } else { answer }),
            "node_malformed",
        ),
        (
            "another output",
            |path, answer| {
                Ok(match path.rsplit('/').next() {
                    Some("utxo") => edited(answer, |list| list[0]["vout"] = 0.into()),
                    Some("txs") => (200, b"[]".to_vec()),
                    _ => answer,
                })
            },
            "node_malformed",
        ),
        (
            "another output, by both lists",
            |path, answer| Ok(if path.ends_with("/utxo") { edited(answer, |list| list[0]["vout"] = 0.into()) } else { answer }),
            "node_malformed",
        ),
        (
            "a block that is not the one at its height",
            |path, answer| {
                Ok(if path.ends_with("/utxo") { edited(answer, |list| list[0]["status"]["block_height"] = 2.into()) } else { answer })
            },
            "node_malformed",
        ),
        (
            "a block of no header",
            |path, answer| {
                Ok(if path.ends_with("/utxo") {
                    edited(answer, |list| list[0]["status"]["block_hash"] = "11".repeat(32).into())
                } else if path == "/block-height/6" {
                    (200, "11".repeat(32).into())
                } else {
                    answer
                })
            },
            "node_malformed",
        ),
        (
            "a wrong Merkle path",
            |path, mut answer| {
                if path.ends_with("/merkleblock-proof") {
                    // Within the hashes: 160 digits of header, then 10 of counts.
                    answer.1[200] ^= 1;
                }
                Ok(answer)
            },
            "node_malformed",
        ),
        (
            "the proof of another transaction",
            |path, answer| {
                let other = |answer: Answer| {
                    let ledger = Ledger::new();
                    let (status, body) = ledger.get(&format!("/tx/{}/merkleblock-proof", ledger.blocks[3].1[0].compute_txid()));
                    if answer.0 == 200 { (status, body) } else { answer }
                };
                Ok(if path.ends_with("/merkleblock-proof") { other(answer) } else { answer })
            },
            "node_malformed",
        ),
        (
            "a head of another hash",
            |path, answer| Ok(if path == "/blocks" { edited(answer, |list| list[0]["nonce"] = 4_000_000_000_u64.into()) } else { answer }),
            "node_malformed",
        ),
        (
            "a newer head",
            |path, answer| Ok(if path == "/blocks" { edited(answer, |list| list[0]["timestamp"] = NOW.into()) } else { answer }),
            "node_malformed",
        ),
        (
            "a head without end",
            |path, answer| Ok(if path == "/blocks" { edited(answer, |list| list[0]["height"] = u64::MAX.into()) } else { answer }),
            "node_malformed",
        ),
        (
            "spent, by nobody",
            |path, answer| Ok(if path.contains("/outspend/") { (200, br#"{"spent":true,"txid":"00"}"#.to_vec()) } else { answer }),
            "node_malformed",
        ),
        ("HTML", |_, _| Ok((200, b"<html>blocked</html>".to_vec())), "node_malformed"),
        ("too many requests", |_, _| Ok((429, Vec::new())), "node_http_status"),
        ("an endless body", |_, _| Err(TransportErrorKind::TooLarge), "transport_too_large"),
        ("nothing", |_, _| Err(TransportErrorKind::Timeout), "transport_timeout"),
        (
            "a list without end",
            |path, answer| {
                Ok(if path.ends_with("/utxo") {
                    edited(answer, |list| *list = Value::Array(vec![list[0].clone(); 50_001]))
                } else {
                    answer
                })
            },
            "node_malformed",
        ),
    ];
    for (name, lie, code) in lies {
        let (ledger, _) = funded(3);
        let servers = Servers::default().with("a.example", &ledger);
        assert!(judge(&servers, 1).await.is_ok(), "{name}: the honest server");
        assert_eq!(judge(&servers.lying("a.example", lie), 1).await.unwrap_err(), code, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_proof_is_optional_and_the_rest_is_not() {
    let (ledger, _) = funded(3);
    let lie = |path: &str, answer| Ok(if path.ends_with("/merkleblock-proof") { (404, Vec::new()) } else { answer });
    assert!(judge(&Servers::default().with("a.example", &ledger).lying("a.example", lie), 1).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_minority_changes_nothing_and_half_is_not_enough() {
    let (ledger, _) = funded(3);
    let empty = Arc::new(Mutex::new(Ledger::new()));
    let (a, b, c) = ("a.example", "b.example", "c.example");
    let all = |lying: &Shared| Servers::default().with(a, lying).with(b, &ledger).with(c, &ledger);
    assert!(judge(&all(&empty), 2).await.is_ok(), "one of three has nothing");
    assert!(judge(&all(&ledger).lying(b, |_, _| Ok((429, Vec::new()))), 2).await.is_ok(), "one of three is busy");
    assert_eq!(judge(&all(&empty), 3).await.unwrap_err(), "node_disagree");
    let two = Servers::default().with(a, &ledger).with(b, &empty);
    assert_eq!(judge(&two, 2).await.unwrap_err(), "node_disagree");
    // A consistently forged depth: every answer reports a lower height for the block.
    let hash = ledger.lock().unwrap().hash(6).to_string();
    let forged = move |path: &str, answer| {
        Ok(match path.rsplit('/').next() {
            Some("utxo") => edited(answer, |list| list[0]["status"]["block_height"] = 2.into()),
            Some("2") => (200, hash.clone().into()),
            _ => answer,
        })
    };
    assert_eq!(judge(&Servers::default().with(a, &ledger).with(b, &ledger).lying(a, forged), 2).await.unwrap_err(), "node_disagree");
    // If the majority lies, the lie cannot be detected.
    let two = Servers::default().with(a, &ledger).with(b, &empty).with(c, &empty);
    assert_eq!(judge(&two, 2).await.unwrap_err(), "destination_not_funded");
    // One server reports that the output is spent.
    let (spent, transaction) = funded(3);
    spent.lock().unwrap().mempool.push(spend(&transaction, Leaf::Refund, &[]));
    assert_eq!(judge(&Servers::default().with(a, &ledger).with(b, &spent), 2).await.unwrap_err(), "node_disagree");
    assert_eq!(judge(&Servers::default().with(a, &spent), 1).await.unwrap_err(), "destination_refunded");
}

#[tokio::test(start_paused = true)]
async fn the_least_depth_and_the_most_time_that_has_passed_count() {
    let (ledger, _) = funded(1);
    let ahead = Arc::new(Mutex::new(ledger.lock().unwrap().clone()));
    ahead.lock().unwrap().mine(3);
    let servers = Servers::default().with("a.example", &ledger).with("b.example", &ahead);
    let nodes = servers.connect(2);
    let (state, seen) = nodes.bitcoin("bitcoin_regtest").unwrap().htlc(&terms().destination).await.unwrap().state().unwrap();
    assert!(matches!(state, HtlcState::Locked(locked) if (locked.least_elapsed, locked.elapsed) == (1, 4)));
    assert_eq!(seen.depth, 1);
    assert_eq!(judge(&servers, 2).await.unwrap_err(), "destination_not_final");
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_goes_back_is_not_believed_and_a_replaced_block_starts_again() {
    let (ledger, transaction) = funded(3);
    let nodes = Servers::default().with("a.example", &ledger).connect(1);
    let bitcoin = nodes.bitcoin("bitcoin_regtest").unwrap();
    let (_, before) = bitcoin.htlc(&terms().destination).await.unwrap().state().unwrap();
    {
        // Two blocks are replaced, and the funding is mined later.
        let mut ledger = ledger.lock().unwrap();
        ledger.blocks.truncate(6);
        ledger.mine(1);
        ledger.mempool.push(transaction);
        ledger.mine(1);
    }
    let (state, after) = bitcoin.htlc(&terms().destination).await.unwrap().state().unwrap();
    assert!(matches!(state, HtlcState::Locked(_)));
    assert_eq!((before.depth, after.depth, after.height.get()), (3, 1, 7));
    assert_ne!(before.hash, after.hash);
    ledger.lock().unwrap().blocks.truncate(4);
    let error = bitcoin.htlc(&terms().destination).await.unwrap_err();
    assert!(matches!(error, NodeError::WentBack { before, now, .. } if (before.get(), now.get()) == (8, 3)), "{error}");
    assert!(!error.to_string().contains("key"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn terms_that_give_another_address_are_refused_before_anything_is_asked() {
    let servers = Servers::default().with("a.example", &funded(3).0);
    let nodes = servers.connect(1);
    let mut terms = terms();
    terms.destination.timelock += 1;
    let error = nodes.bitcoin("bitcoin_regtest").unwrap().htlc(&terms.destination).await.unwrap_err();
    assert_eq!(error.code().name(), "record_swap_id");
    assert!(servers.asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn coins_come_with_the_transaction_that_made_them_and_rates_within_the_policy() {
    let script = ScriptBuf::from_bytes([&[0x00, 0x14][..], &[5; 20]].concat());
    let owner = fake::chain("bitcoin").address(&script).unwrap();
    let (ledger, _) = funded(2);
    let coin = pay(outpoint(7), &[vec![1; 64]], &[(90_000, script.clone())]);
    ledger.lock().unwrap().mempool.push(coin.clone());
    ledger.lock().unwrap().mine(1);
    ledger.lock().unwrap().mempool.push(pay(outpoint(8), &[vec![1; 64]], &[(1, script)]));
    let servers = Servers::default().with("a.example", &ledger);
    let (nodes, policy) = (servers.connect(1), Policy::default());
    let bitcoin = nodes.bitcoin("bitcoin_regtest").unwrap();
    let wallet = bitcoin.wallet(&owner, Speed::Normal, &policy).await.unwrap();
    let coins = wallet.utxos.unwrap();
    assert_eq!((coins.len(), coins[0].output().value.to_sat()), (1, 90_000), "the unconfirmed one is left out");
    assert_eq!(**coins[0].previous_tx().unwrap(), coin);
    assert_eq!(wallet.fee_rate.unwrap().to_string(), "7.25");
    assert_eq!(bitcoin.balance(&owner).await.unwrap().to_sat(), 90_000);

    let lying = servers.clone().lying("a.example", |path, answer| {
        Ok(match path.rsplit('/').next() {
            Some("utxo") => edited(answer, |list| list[0]["value"] = 90_001.into()),
            Some("fee-estimates") => (200, br#"{"3": 1000.5}"#.to_vec()),
            _ => answer,
        })
    });
    let nodes = lying.connect(1);
    let bitcoin = nodes.bitcoin("bitcoin_regtest").unwrap();
    assert_eq!(bitcoin.coins(&owner).await.unwrap_err().code().name(), "node_malformed");
    assert_eq!(bitcoin.fee_rate(Speed::Normal, &policy).await.unwrap_err().code().name(), "fee_rate_too_high");
    let idle = servers.lying("a.example", |path, answer| Ok(if path == "/fee-estimates" { (200, b"{}".to_vec()) } else { answer }));
    let nodes = idle.connect(1);
    let estimate = nodes.bitcoin("bitcoin_regtest").unwrap().fee_rate(Speed::Fast, &policy).await.unwrap();
    assert_eq!((estimate.rate, estimate.is_floor), (FeeRate::from_whole(1), true));
}

fn kept(transaction: &Transaction) -> BroadcastTransaction {
    let id = transaction.compute_txid().to_string();
    let (chain, role, payload) = ("bitcoin_regtest".to_owned(), countersign::Role::Redeem, serialize_hex(transaction));
    BroadcastTransaction { chain, role, id, payload, spends: Vec::new() }
}

#[tokio::test(start_paused = true)]
async fn a_broadcast_is_accepted_once_and_again_and_a_second_spend_is_rejected() {
    let (ledger, transaction) = funded(3);
    let servers = Servers::default().with("a.example", &ledger).with("b.example", &ledger);
    let (nodes, policy) = (servers.connect(2), Policy::default());
    let bitcoin = nodes.bitcoin("bitcoin_regtest").unwrap();
    let redeem = spend(&transaction, Leaf::Redeem, &SECRET);
    let fee = bitcoin.preflight(&redeem, &policy).await.unwrap_err();
    assert_eq!(fee.code().name(), "fee_rate_too_high", "499,000 sat for some 150 vB");
    assert_eq!(bitcoin.status(&redeem.compute_txid().to_string()).await.unwrap(), None);
    bitcoin.broadcast(&kept(&redeem).id, &kept(&redeem).payload).await.unwrap();
    bitcoin.broadcast(&kept(&redeem).id, &kept(&redeem).payload).await.unwrap();
    assert_eq!(ledger.lock().unwrap().mempool.len(), 1);
    let rival = spend(&transaction, Leaf::Refund, &[]);
    assert_eq!(bitcoin.preflight(&rival, &policy).await.unwrap_err().code().name(), "transaction_rejected");
    let error = bitcoin.broadcast(&kept(&rival).id, &kept(&rival).payload).await.unwrap_err();
    assert!(matches!(&error, NodeError::Rejected { message, .. } if message.contains("insufficient fee")), "{error}");
    ledger.lock().unwrap().mine(2);
    let status = bitcoin.status(&redeem.compute_txid().to_string()).await.unwrap().unwrap();
    assert_eq!((status.confirmations, status.block_hash), (2, Some(ledger.lock().unwrap().hash(9).to_string())));
    bitcoin.broadcast(&kept(&redeem).id, &kept(&redeem).payload).await.unwrap();

    let mut renamed = kept(&redeem);
    renamed.id = "00".repeat(32);
    assert_eq!(bitcoin.broadcast(&renamed.id, &renamed.payload).await.unwrap_err().code().name(), Code::TransactionMalformed.name());
    // A busy server proves nothing about the transaction. One that returns another id lies.
    let next = pay(OutPoint { txid: redeem.compute_txid(), vout: 0 }, &[vec![1]], &[(600, ScriptBuf::new())]);
    for (answer, code) in [((503, Vec::new()), "node_http_status"), ((200, "11".repeat(32).into_bytes()), "node_malformed")] {
        let answer: Answer = answer;
        let lie = move |path: &str, honest| Ok(if path == "/tx" { answer.clone() } else { honest });
        let nodes = Servers::default().with("a.example", &ledger).lying("a.example", lie).connect(1);
        assert_eq!(
            nodes.bitcoin("bitcoin_regtest").unwrap().broadcast(&kept(&next).id, &kept(&next).payload).await.unwrap_err().code().name(),
            code
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_head_is_stale() {
    let servers = Servers::default().with("a.example", &funded(3).0);
    let (nodes, terms) = (servers.connect(1), terms());
    let quorum = nodes.bitcoin("bitcoin_regtest").unwrap().htlc(&terms.destination).await.unwrap();
    let hold = Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW + 4 * 3_600)).unwrap_err();
    assert!(matches!(hold, Hold::Stale { .. }), "{hold}");
}

#[tokio::test(start_paused = true)]
async fn coins_that_have_just_left_litecoins_extension_block_are_not_clear() {
    let genesis = "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9";
    let holds_all = ScriptBuf::from_bytes([&[0x58, 0x20][..], &[3; 32]].concat());
    for (parent_pays, first_clear) in [(holds_all, 24), (ScriptBuf::new_op_return([3]), 1)] {
        let mut ledger = Ledger::new();
        let parent = pay(outpoint(4), &[vec![1; 64]], &[(600_000, parent_pays)]);
        let from = OutPoint { txid: parent.compute_txid(), vout: 0 };
        let funding = pay(from, &[vec![1; 64]], &[(AMOUNT, fake::tree().script_pubkey())]);
        ledger.mempool.extend([parent, funding]);
        ledger.mine(1);
        let ledger = Arc::new(Mutex::new(ledger));
        let lie = |path: &str, answer| Ok(if path == "/block-height/0" { (200, genesis.into()) } else { answer });
        let servers = Servers::default().with("a.example", &ledger).lying("a.example", lie);
        let nodes = servers.connect_to("litecoin", 1);
        for depth in 1..=24 {
            let (state, seen) =
                nodes.bitcoin("litecoin_regtest").unwrap().htlc(&terms_on("litecoin").destination).await.unwrap().state().unwrap();
            assert_eq!(seen.depth, depth);
            assert_eq!(matches!(state, HtlcState::Locked(_)), depth >= first_clear, "{depth}: {state:?}");
            ledger.lock().unwrap().mine(1);
        }
    }
}
