//! Redemptions and refunds spend exactly the output that the evidence is about, whatever else is paid to the address, whatever the service
//! states, and whatever fees do.

use std::sync::{Arc, Mutex};

use countersign::bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign::bitcoin::bitcoin::{Amount, OutPoint, ScriptBuf, Transaction};
use countersign::bitcoin::htlc::Leaf;
use countersign::bitcoin::recover::{Exceptions, Fee, Funding, FundingSource, Payout, Recovery, redeem, refund};
use countersign::bitcoin::{Bitcoin, FeeRate, Key, TxContext, Utxo};
use countersign::{Code, Leg, OrderRecord, Policy, Registry, Unsigned, UnsignedOrder, Verified, recover};
use countersign_core::reader::Submission;
use countersign_node::{NodeError, Nodes, Speed};
use countersign_testkit::recover::read_record;
use countersign_transport::TransportErrorKind;
use serde_json::{Value, json};

use super::Shared;
use super::fake::{AMOUNT, Ledger, SECRET, Servers, TIMELOCK, chain, funding, outpoint, pay, spend, tree};

pub(crate) const CHAIN: &str = "bitcoin_regtest";
/// The secret keys of the parties, whose public keys are G and 2G.
pub(crate) const INITIATOR: &str = "0000000000000000000000000000000000000000000000000000000000000001";
pub(crate) const REDEEMER: &str = "0000000000000000000000000000000000000000000000000000000000000002";

fn registry() -> Registry {
    let key = hex::encode(tree().htlc.internal_key);
    let asset = json!({"id": "bitcoin_regtest:btc", "chain": CHAIN, "decimals": 8, "token": null, "htlc": {"address": key}});
    let registry = json!({"chains": [{"chain": CHAIN, "id": "bitcoin:regtest"}], "assets": [asset], "solvers": []});
    Registry::from_json(registry.to_string().as_bytes()).unwrap()
}

/// The record of the HTLC of these tests, which states these funding transactions.
fn record_of(stated: &str) -> OrderRecord {
    let mut order: Value = countersign_testkit::fixture::<Bitcoin>("bitcoin-address").json()["order"].take();
    let (tree, swap) = (tree(), &mut order["source_swap"]);
    for (name, value) in [
        ("chain", json!(CHAIN)),
        ("asset", json!("bitcoin_regtest:btc")),
        ("initiator", json!(hex::encode(tree.htlc.initiator))),
        ("redeemer", json!(hex::encode(tree.htlc.redeemer))),
        ("delegate", Value::Null),
        ("secret_hash", json!(hex::encode(tree.htlc.secret_hash))),
        ("timelock", json!(TIMELOCK)),
        ("amount", json!(AMOUNT.to_string())),
        ("swap_id", json!(tree.address(chain("bitcoin")))),
        ("initiate_tx_hash", json!(stated)),
    ] {
        swap[name] = value;
    }
    read_record(&order).unwrap()
}

/// The recovery of the HTLC of these tests, from a record that states this funding transaction.
pub(crate) fn recovery(secret: Option<&[u8; 32]>, stated: &str) -> Recovery {
    let (record, registry) = (record_of(stated), registry());
    match secret {
        Some(secret) => redeem(&record, Leg::Source, secret, &registry).unwrap(),
        None => refund(&record, Leg::Source, &registry).unwrap(),
    }
}

/// The owner's address, which receives the coins.
pub(crate) fn owner() -> String {
    chain("bitcoin").address(&ScriptBuf::from_bytes([&[0x00, 0x14][..], &[5; 20]].concat())).unwrap()
}

pub(crate) fn shared(ledger: Ledger) -> Shared {
    Arc::new(Mutex::new(ledger))
}

/// Two Esplora servers and a node's own RPC, two of which must agree.
fn three(ledger: &Shared) -> Servers {
    Servers::default().with("a.example", ledger).with("b.example", ledger).with("rpc.example", ledger)
}

pub(crate) fn of_bitcoin(unsigned: Unsigned) -> UnsignedOrder<Bitcoin> {
    match unsigned {
        Unsigned::Bitcoin(order) => order,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn prepare(nodes: &Nodes<Servers>, recovery: &Recovery, policy: &Policy) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
    let recovery = recover::Recovery::Bitcoin(recovery.clone());
    nodes.prepare_recovery(&recovery, CHAIN, &owner(), Speed::Normal, policy).await.map(of_bitcoin)
}

pub(crate) async fn replace(
    nodes: &Nodes<Servers>,
    recovery: &Recovery,
    sent: &Transaction,
    policy: &Policy,
) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
    let recovery = recover::Recovery::Bitcoin(recovery.clone());
    let sent: Submission = nodes.submission(CHAIN, &sent.compute_txid().to_string(), &serialize_hex(sent)).unwrap();
    Ok(of_bitcoin(nodes.prepare_replacement(&recovery, CHAIN, &owner(), &sent, Speed::Normal, policy).await?))
}

pub(crate) fn signed(mut order: UnsignedOrder<Bitcoin>, key: &str) -> Transaction {
    order.sign(&key.parse::<Key>().unwrap()).unwrap();
    order.finish().unwrap().transactions().remove(0).native
}

fn spent(order: &UnsignedOrder<Bitcoin>) -> Vec<OutPoint> {
    order.payloads().payment.as_ref().unwrap().transaction().input.iter().map(|input| input.previous_output).collect()
}

pub(crate) fn fee(order: &UnsignedOrder<Bitcoin>) -> u64 {
    order.payloads().payment.as_ref().unwrap().fee.to_sat()
}

/// Output 1 of a funding.
fn of(funding: &Transaction) -> OutPoint {
    OutPoint { txid: funding.compute_txid(), vout: 1 }
}

fn output(transaction: &Transaction, value: u64) -> Funding {
    Funding::new(of(transaction), Amount::from_sat(value))
}

/// Anybody's dust, which is so old that its refund is valid, and a payment.
fn with_old_dust(value: u64) -> (Ledger, Transaction, Transaction) {
    let (mut ledger, dust, payment) = (Ledger::new(), funding(2, value), funding(1, AMOUNT));
    ledger.mempool.push(dust.clone());
    ledger.mine(usize::from(TIMELOCK));
    ledger.mempool.push(payment.clone());
    ledger.mine(3);
    (ledger, dust, payment)
}

/// Servers that all show these fee rates.
fn at_rate(servers: Servers, rate: &'static str) -> Servers {
    ["a.example", "b.example"].into_iter().fold(servers, |servers, host| {
        servers.lying(host, move |path, answer| {
            Ok(if path == "/fee-estimates" { (200, format!(r#"{{"3": {rate}}}"#).into_bytes()) } else { answer })
        })
    })
}

/// The refund of dust conflicts with a redemption that spends the dust too, and evicts it. It does not touch one of the payment alone.
#[tokio::test(start_paused = true)]
async fn a_refund_of_dust_does_not_evict_a_redemption() {
    let (ledger, dust, payment) = with_old_dust(40_000);
    let ledger = shared(ledger);
    let nodes = three(&ledger).connect(2);
    let (redemption, refund) = (recovery(Some(&SECRET), ""), recovery(None, ""));
    let solver = Payout::new([output(&dust, 40_000)], owner().as_str(), Fee::Deducted(FeeRate::from_whole(100)));
    let attack = signed(refund.prepare(solver).unwrap(), INITIATOR);

    let both = [output(&payment, AMOUNT), output(&dust, 40_000)];
    let both = Payout::new(both, owner().as_str(), Fee::Deducted(FeeRate::from_whole(20)));
    // The rules take the payment alone, so the attack needs a user that decides against them.
    let alone = redemption.prepare(both.clone()).unwrap();
    assert_eq!(spent(&alone), [of(&payment)]);
    let both = both.with_source(FundingSource::Chain).with_exceptions(Exceptions { less: true, ..Exceptions::default() });
    let both = signed(redemption.prepare(both).unwrap(), REDEEMER);
    let mut other = ledger.lock().unwrap().clone();
    other.offer(&both).unwrap();
    other.offer(&attack).unwrap();
    assert_eq!(other.mempool, std::slice::from_ref(&attack), "the attack works");

    let order = prepare(&nodes, &redemption, &Policy::default()).await.unwrap();
    assert_eq!(spent(&order), [of(&payment)]);
    let transaction = signed(order, REDEEMER);
    nodes.broadcast(CHAIN, &transaction.compute_txid().to_string(), &serialize_hex(&transaction)).await.unwrap();
    ledger.lock().unwrap().offer(&attack).unwrap();
    assert_eq!(ledger.lock().unwrap().mempool, [transaction.clone(), attack]);
    ledger.lock().unwrap().mine(1);
    let status = nodes.bitcoin(CHAIN).unwrap().status(&transaction.compute_txid().to_string()).await.unwrap();
    assert_eq!(status.unwrap().confirmations, 1);
}

/// The same output whatever is listed beside it, and although a list is refused.
#[tokio::test(start_paused = true)]
async fn foreign_dust_blocks_no_recovery() {
    let small = |count: u32, each: usize| {
        let outputs = vec![(330, tree().script_pubkey()); each];
        (0..count).map(move |number| pay(OutPoint { vout: number, ..outpoint(9) }, &[vec![1; 64]], &outputs))
    };
    for (count, each) in [(1, 1), (199, 1), (1, 501), (30, 1)] {
        let (mut ledger, payment) = Ledger::funded(1);
        ledger.mempool.extend(small(count, each));
        ledger.mempool.push(funding(3, AMOUNT * 2));
        ledger.mine(2);
        let ledger = shared(ledger);
        let alone = |host| Servers::default().with(host, &ledger).connect(1);
        for nodes in [three(&ledger).connect(2), alone("a.example"), alone("rpc.example")] {
            for secret in [Some(&SECRET), None] {
                let order = prepare(&nodes, &recovery(secret, ""), &Policy::default()).await.unwrap();
                assert_eq!(spent(&order), [of(&payment)], "{count} {each}");
                assert!(fee(&order) < 3_000);
            }
        }
    }
}

/// The endpoints need not list the same outputs: one hides the dust, one adds a payment, and neither hides the payment of the evidence.
#[tokio::test(start_paused = true)]
async fn one_liar_of_three_does_not_choose_the_output() {
    type Lie = fn(&str) -> Option<(u16, Vec<u8>)>;
    let (ledger, _, payment) = with_old_dust(330);
    let ledger = shared(ledger);
    let lies: [Lie; 4] = [
        |path| (path.ends_with("/utxo") || path.ends_with("/txs")).then(|| (200, b"[]".to_vec())),
        |path| path.ends_with("/utxo").then(|| (400, b"Too many unspent transaction outputs".to_vec())),
        |path| path.contains("/outspend/").then(|| (200, format!(r#"{{"spent": true, "txid": "{}"}}"#, "11".repeat(32)).into_bytes())),
        |_| Some((429, Vec::new())),
    ];
    for lie in lies {
        let servers = three(&ledger).lying("a.example", move |path, answer| Ok(lie(path).unwrap_or(answer)));
        let order = prepare(&servers.connect(2), &recovery(Some(&SECRET), ""), &Policy::default()).await.unwrap();
        assert_eq!(spent(&order), [of(&payment)]);
    }
    // One low rate does not make a redemption slow: what is paid lies between the rates of the others, 2.5 and 7.25 sat/vB.
    let servers = three(&ledger)
        .lying("a.example", |path, answer| Ok(if path == "/fee-estimates" { (200, br#"{"3": 1}"#.to_vec()) } else { answer }));
    let order = prepare(&servers.connect(2), &recovery(Some(&SECRET), ""), &Policy::default()).await.unwrap();
    assert!(fee(&order) > 240, "{}", fee(&order));
}

/// What the record states about the funding transaction is only shown.
#[tokio::test(start_paused = true)]
async fn a_false_statement_about_the_payment_is_a_warning() {
    let (ledger, payment) = Ledger::funded(2);
    let nodes = three(&shared(ledger)).connect(2);
    let honest = format!("{}:90249", payment.compute_txid());
    let by_hand = Payout::new([output(&payment, AMOUNT)], owner().as_str(), Fee::Deducted(FeeRate::from_whole(2)));
    for (stated, is_true) in [(honest, true), (String::new(), true), (format!("{}:7", "aa".repeat(32)), false), ("x".to_owned(), false)] {
        for secret in [Some(&SECRET), None] {
            let recovery = recovery(secret, &stated);
            let order = prepare(&nodes, &recovery, &Policy::default()).await.unwrap();
            assert_eq!(spent(&order), [of(&payment)]);
            let codes: Vec<_> = order.warnings().list().iter().map(|warning| warning.code()).collect();
            let expected = if is_true { vec![] } else { vec![Code::FundingTxDiffers] };
            assert_eq!(codes, expected, "{stated}");
            // The same for an output that is given by hand.
            let given = recovery.prepare(by_hand.clone()).unwrap();
            let codes: Vec<_> = given.warnings().list().iter().map(|warning| warning.code()).collect();
            assert_eq!(codes, expected, "{stated}");
        }
    }
}

/// Only a refund returns less than the amount, and the secret is not shown for it.
#[tokio::test(start_paused = true)]
async fn parts_are_refunded_and_never_redeemed() {
    let mut ledger = Ledger::new();
    let parts = [funding(2, 200_000), funding(3, 100_000), funding(4, 330)];
    ledger.mempool.extend(parts.clone());
    ledger.mine(2);
    let nodes = three(&shared(ledger)).connect(2);
    let error = prepare(&nodes, &recovery(Some(&SECRET), ""), &Policy::default()).await.unwrap_err();
    assert_eq!(error.code().name(), Code::FundingMismatch.name());
    assert!(error.to_string().contains("only a refund returns"), "{error}");
    let order = prepare(&nodes, &recovery(None, ""), &Policy::default()).await.unwrap();
    assert_eq!(spent(&order), [of(&parts[0]), of(&parts[1])], "the third is not worth its fee");
}

/// What is left after the end is taken with a transaction of its own, but no secret is shown for it.
#[tokio::test(start_paused = true)]
async fn the_rest_is_taken_later_and_not_for_a_secret() {
    let paid_twice = funding(3, AMOUNT + 5);
    for leaf in [Leaf::Refund, Leaf::Redeem] {
        let (mut ledger, payment) = Ledger::funded(2);
        // The second payment arrives after the end of the first one, so nothing but the first one was ever evidence.
        ledger.mempool.push(spend(&payment, leaf, &SECRET));
        ledger.mine(1);
        ledger.mempool.push(funding(4, 30_000));
        ledger.mempool.push(funding(5, 330));
        ledger.mine(1);
        let ledger = shared(ledger);
        let nodes = Servers::default().with("a.example", &ledger).with("b.example", &ledger).connect(2);
        let order = prepare(&nodes, &recovery(None, ""), &Policy::default()).await.unwrap();
        assert_eq!(spent(&order), [of(&funding(4, 30_000))]);
        let redeemed = prepare(&nodes, &recovery(Some(&SECRET), ""), &Policy::default()).await;
        match leaf {
            Leaf::Redeem => assert_eq!(spent(&redeemed.unwrap()), [of(&funding(4, 30_000))], "the secret is public"),
            _ => assert_eq!(redeemed.unwrap_err().code().name(), "transaction_rejected"),
        }
        ledger.lock().unwrap().mempool.push(paid_twice.clone());
        ledger.lock().unwrap().mine(1);
        let order = prepare(&nodes, &recovery(None, ""), &Policy::default()).await.unwrap();
        assert_eq!(spent(&order), [of(&paid_twice)]);
    }
}

/// Fees rise a hundredfold while a redemption waits.
#[tokio::test(start_paused = true)]
async fn a_fee_above_the_policy_is_refused_with_what_it_costs() {
    let (ledger, _) = Ledger::funded(2);
    let ledger = shared(ledger);
    let servers = Servers::default().with("a.example", &ledger).with("b.example", &ledger);
    let nodes = at_rate(servers, "725").connect(2);
    let policy = |rate: u64| Policy::from_json(json!({"bitcoin_fee_rate": rate}).to_string().as_bytes()).unwrap();
    for secret in [Some(&SECRET), None] {
        let error = prepare(&nodes, &recovery(secret, ""), &policy(100)).await.unwrap_err();
        let NodeError::Refused(refusal) = &error else { panic!("{error}") };
        assert_eq!((refusal.code(), refusal.expected().unwrap().to_string()), (Code::FeeRateTooHigh, "at most 100".to_owned()));
        let text = error.to_string();
        for part in ["above the policy's", "would cost 0.00", "and pay out 0.00", "wait for lower fees", "raise the limit of the policy"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(prepare(&nodes, &recovery(secret, ""), &policy(1_000)).await.is_ok());
    }
    // Once the secret is out, a slow redemption is better than none.
    let urgent = recover::Recovery::Bitcoin(recovery(Some(&SECRET), ""));
    let urgent = of_bitcoin(nodes.prepare_urgent(&urgent, CHAIN, &owner(), Speed::Normal, &policy(100)).await.unwrap());
    assert!(urgent.warnings().list().iter().any(|warning| warning.code() == Code::FeeRateTooHigh));
    let at_limit = fee(&urgent);
    assert_eq!(at_limit, 100 * signed(urgent, REDEEMER).weight().to_vbytes_ceil());
    // At a higher rate still, it costs more than it pays, and then more than there is.
    for (rate, said) in [("2500", "the fee is higher than the amount that is paid out"), ("7250", "which leaves nothing that nodes relay")]
    {
        let servers = Servers::default().with("a.example", &ledger).with("b.example", &ledger);
        let error = prepare(&at_rate(servers, rate).connect(2), &recovery(Some(&SECRET), ""), &policy(10_000)).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

/// A redemption that was sent can be replaced: while it waits, after it was evicted, and above the policy's rate.
#[tokio::test(start_paused = true)]
async fn a_redemption_is_replaced_or_prepared_afresh() {
    let (ledger, dust, payment) = with_old_dust(40_000);
    let ledger = shared(ledger);
    let (nodes, policy, redemption) = (three(&ledger).connect(2), Policy::default(), recovery(Some(&SECRET), "x"));
    let first = signed(prepare(&nodes, &redemption, &policy).await.unwrap(), REDEEMER);
    ledger.lock().unwrap().offer(&first).unwrap();
    let second = replace(&nodes, &redemption, &first, &policy).await.unwrap();
    assert_eq!(spent(&second), [of(&payment)]);
    let second = signed(second, REDEEMER);
    ledger.lock().unwrap().offer(&second).unwrap();
    assert_eq!(ledger.lock().unwrap().mempool, std::slice::from_ref(&second), "nodes accept it");

    // Evicted: no endpoint knows it any more.
    ledger.lock().unwrap().mempool.clear();
    let third = replace(&nodes, &redemption, &second, &policy).await.unwrap();
    assert_eq!(spent(&third), [of(&payment)]);
    ledger.lock().unwrap().offer(&signed(third, REDEEMER)).unwrap();

    // All endpoints show more than the policy allows. The secret is out, so the limit is paid; but not if that would replace nothing.
    ledger.lock().unwrap().mempool.clear();
    let high = at_rate(three(&ledger), "725").lying("rpc.example", |_, answer| Ok((500, answer.1))).connect(2);
    let low = Policy::from_json(br#"{"bitcoin_fee_rate": 20}"#).unwrap();
    let again = replace(&high, &redemption, &second, &low).await.unwrap();
    let at_limit = fee(&again);
    let again = signed(again, REDEEMER);
    assert_eq!(at_limit, 20 * again.weight().to_vbytes_ceil());
    ledger.lock().unwrap().offer(&again).unwrap();
    let error = replace(&high, &redemption, &again, &low).await.unwrap_err();
    assert!(error.to_string().contains("would cost"), "{error}");

    // One that spent the dust too is replaced by one that does not, although the dust is gone.
    ledger.lock().unwrap().mempool.clear();
    let both = [output(&payment, AMOUNT), output(&dust, 40_000)];
    let both = Payout::new(both, owner().as_str(), Fee::Deducted(FeeRate::from_whole(20)));
    let both = signed(recovery(Some(&SECRET), "").prepare(both).unwrap(), REDEEMER);
    ledger.lock().unwrap().offer(&both).unwrap();
    for is_gone in [false, true] {
        if is_gone {
            ledger.lock().unwrap().mempool.clear();
            ledger.lock().unwrap().mempool.push(spend(&dust, Leaf::Refund, &[]));
            ledger.lock().unwrap().mine(1);
        }
        let order = replace(&nodes, &redemption, &both, &policy).await.unwrap();
        assert_eq!(spent(&order), [of(&payment)]);
        ledger.lock().unwrap().offer(&signed(order, REDEEMER)).unwrap();
    }
}

/// After the timelock, the solver's refund of the payment itself waits in the mempool. A redemption must pay more than that.
#[tokio::test(start_paused = true)]
async fn a_rival_in_the_mempool_is_outbid() {
    let (ledger, payment) = Ledger::funded(usize::from(TIMELOCK));
    let ledger = shared(ledger);
    let rival = Payout::new([output(&payment, AMOUNT)], owner().as_str(), Fee::Deducted(FeeRate::from_whole(40)));
    let rival = signed(recovery(None, "").prepare(rival).unwrap(), INITIATOR);
    let redemption = recovery(Some(&SECRET), "");
    let (nodes, policy) = (three(&ledger).connect(2), Policy::default());
    let first = signed(prepare(&nodes, &redemption, &policy).await.unwrap(), REDEEMER);
    ledger.lock().unwrap().offer(&rival).unwrap();
    for order in [prepare(&nodes, &redemption, &policy).await.unwrap(), replace(&nodes, &redemption, &first, &policy).await.unwrap()] {
        assert_eq!(spent(&order), [of(&payment)]);
        let mut ledger = ledger.lock().unwrap().clone();
        ledger.offer(&signed(order, REDEEMER)).unwrap();
        assert!(!ledger.mempool.contains(&rival));
    }
}

/// What a node cannot prove counts as one endpoint that cannot be used.
#[tokio::test(start_paused = true)]
async fn a_pruned_node_is_one_endpoint_that_cannot_be_used() {
    let (ledger, payment) = Ledger::funded(3);
    let whole = shared(ledger.clone());
    let pruned = shared(Ledger { pruned_below: 7, ..ledger });
    let redemption = recovery(Some(&SECRET), "");
    let one = Servers::default().with("a.example", &whole).with("b.example", &whole).with("rpc.example", &pruned);
    let order = prepare(&one.connect(2), &redemption, &Policy::default()).await.unwrap();
    assert_eq!(spent(&order), [of(&payment)]);
    assert_eq!(super::judge(&one, 2).await.err(), None);
    let two = Servers::default().with("a.example", &whole).with("rpc.example", &pruned).with("rpc2.example", &pruned);
    assert_eq!(prepare(&two.connect(2), &redemption, &Policy::default()).await.unwrap_err().code().name(), "node_disagree");
    assert_eq!(super::judge(&two, 2).await.unwrap_err(), "node_disagree");
    // A refund shows no secret, so the output alone is enough for it.
    let order = prepare(&two.connect(2), &recovery(None, ""), &Policy::default()).await.unwrap();
    assert_eq!(spent(&order), [of(&payment)]);
    // Two nodes without a transaction index do not agree that a transaction is unknown.
    let unknown = funding(7, 9).compute_txid().to_string();
    assert_eq!(two.connect(2).bitcoin(CHAIN).unwrap().status(&unknown).await.unwrap_err().code().name(), "node_disagree");
}

/// The owner's own payment waits at 1 sat/vB, and is paid again with the same coins.
#[tokio::test(start_paused = true)]
async fn an_unconfirmed_payment_is_raised_with_its_own_coins() {
    let case = countersign_testkit::fixture::<Bitcoin>("bitcoin-p2wpkh");
    let wallet = case.json()["wallet"].take();
    let script = ScriptBuf::from_hex(wallet["utxos"][0]["script_pubkey"].as_str().unwrap()).unwrap();
    let coin = pay(outpoint(9), &[vec![1; 64]], &[(120_000, script)]);
    let mut ledger = Ledger::new();
    ledger.mempool.push(coin.clone());
    ledger.mine(3);
    let coins = vec![Utxo::new(OutPoint { txid: coin.compute_txid(), vout: 0 }, coin.output[0].clone()).unwrap()];
    let order = countersign_testkit::verified::<Bitcoin>(&case);
    let context = TxContext::new(coins, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", FeeRate::from_whole(1));
    let key = wallet["secret_key"].as_str().unwrap();
    let sent = signed(order.prepare(context).unwrap(), key);
    ledger.offer(&sent).unwrap();
    let ledger = shared(ledger);
    let nodes = three(&ledger).connect(2);
    let order = Verified::Bitcoin(order);
    let raise = async |sent: &Transaction, policy: &Policy| {
        let sent = nodes.submission(CHAIN, &sent.compute_txid().to_string(), &serialize_hex(sent)).unwrap();
        nodes.prepare_raised(&order, CHAIN, &sent, Speed::Normal, policy).await.map(of_bitcoin)
    };
    // 7.25 sat/vB by the endpoints, which the policy does not allow here.
    let low = Policy::from_json(br#"{"bitcoin_fee_rate":5}"#).unwrap();
    assert_eq!(raise(&sent, &low).await.unwrap_err().code().name(), Code::FeeRateTooHigh.name());
    let raised = raise(&sent, &Policy::default()).await.unwrap();
    assert_eq!(spent(&raised), [sent.input[0].previous_output]);
    let (paid, vsize) = (fee(&raised), sent.weight().to_vbytes_ceil());
    assert!((7 * vsize..8 * vsize).contains(&paid), "{paid} for {vsize} vB");
    let raised = signed(raised, key);
    assert_eq!(raised.output[0], sent.output[0]);
    nodes.broadcast(CHAIN, &raised.compute_txid().to_string(), &serialize_hex(&raised)).await.unwrap();
    assert_eq!(ledger.lock().unwrap().mempool, std::slice::from_ref(&raised), "one of the two is left");
    // Once one of them is in a block, neither is raised.
    ledger.lock().unwrap().mine(1);
    for known in [&raised, &sent] {
        assert_eq!(raise(known, &Policy::default()).await.unwrap_err().code().name(), "transaction_rejected");
    }
}

/// Both parties can refund at once what is there. A payment that nobody shows is neither an error nor an output.
#[tokio::test(start_paused = true)]
async fn the_deposit_of_an_instant_refund_is_what_endpoints_show() {
    let registry = registry();
    let [one, two] = [1, 2].map(|count| vec![format!("{}:9", "ab".repeat(32)); count].join(","));
    let mut ledger = Ledger::new();
    ledger.mempool.extend([funding(1, AMOUNT), funding(2, 330)]);
    ledger.mine(1);
    let paid = Servers::default().with("a.example", &Arc::new(Mutex::new(ledger))).connect(1);
    let empty = Servers::default().with("a.example", &Arc::new(Mutex::new(Ledger::new()))).connect(1);
    let down = Servers::default().with("a.example", &Arc::new(Mutex::new(Ledger::new())));
    let down = down.lying("a.example", |_, _| Err(TransportErrorKind::Timeout)).connect(1);
    for stated in ["", &one, &two] {
        let record = record_of(stated);
        let shown = paid.deposit(&record, &registry).await.unwrap().unwrap();
        assert_eq!(shown.iter().map(|output| output.value.to_sat()).collect::<Vec<_>>(), [AMOUNT, 330]);
        let unpaid = empty.deposit(&record, &registry).await.unwrap();
        assert_eq!(unpaid, (!stated.is_empty()).then(Vec::new), "{stated}");
        let unread = down.deposit(&record, &registry).await;
        // Only the outputs of a single transaction can be tried without endpoints.
        assert_eq!(unread.ok(), (stated == one).then(|| Some(Vec::new())), "{stated}");
    }
}
