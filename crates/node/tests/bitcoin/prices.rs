//! One endpoint of three lies about a fee rate, or about what spends the payment: in any place and for any transaction, what is paid lies
//! between what the honest ones show.

use countersign::bitcoin::bitcoin::Transaction;
use countersign::bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign::bitcoin::htlc::Leaf;
use countersign::bitcoin::recover::{Fee, Funding, Payout};
use countersign::bitcoin::{FeeRate, bitcoin::Amount, bitcoin::OutPoint};
use countersign::{Code, Policy, recover};
use countersign_client::TransportErrorKind;
use countersign_node::Speed;
use serde_json::{Value, json};

use super::Shared;
use super::fake::{AMOUNT, Ledger, SECRET, Servers, chain, outpoint, pay, spend};
use super::recovery::{CHAIN, INITIATOR, REDEEMER, fee, of_bitcoin, owner, prepare, recovery, replace, shared, signed};

pub(super) const HOSTS: [&str; 3] = ["a.example", "b.example", "rpc.example"];

/// Three endpoints: two Esplora servers and a node's own RPC. The honest ones show 10 or 12 sat/vB, whatever the target. The one at this
/// place shows something else.
pub(super) fn servers<'l>(ledger: &Shared, liars: impl IntoIterator<Item = (usize, &'l Lie)>) -> Servers {
    let (mut servers, liars) = (Servers::default(), liars.into_iter().collect::<Vec<_>>());
    for (place, host) in HOSTS.into_iter().enumerate() {
        let lie = liars.iter().find(|(other, _)| *other == place).map(|(_, lie)| Lie::clone(lie));
        servers = servers.with(host, ledger).lying(host, move |path, answer| match &lie {
            Some(Lie::Silent) => Err(TransportErrorKind::Timeout),
            Some(Lie::Status(status)) => Ok((*status, answer.1)),
            Some(Lie::Rate(rate)) => Ok(at_rate(path, answer, rate)),
            None => Ok(at_rate(path, answer, &json!(if place == 1 { 12 } else { 10 }))),
        });
    }
    servers
}

#[derive(Clone, Debug)]
pub(super) enum Lie {
    Rate(Value),
    Status(u16),
    Silent,
}

/// The answer with this fee rate in sat/vB.
fn at_rate(path: &str, (status, body): (u16, Vec<u8>), rate: &Value) -> (u16, Vec<u8>) {
    if path == "/fee-estimates" {
        return (200, json!({"1": rate, "2": rate, "3": rate, "6": rate}).to_string().into_bytes());
    }
    let Ok(mut replies) = serde_json::from_slice::<Value>(&body) else { return (status, body) };
    // A node writes coins per 1,000 vB.
    let coins = rate.as_f64().map_or(Value::Null, |rate| json!(rate / 100_000.0));
    for reply in replies.as_array_mut().into_iter().flatten() {
        for (member, list) in [("feerate", true), ("mempoolminfee", false)] {
            if reply["result"].get(member).is_some() {
                reply["result"][member] = if list { coins.clone() } else { json!(0.000_01) };
            }
        }
    }
    (status, replies.to_string().into_bytes())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Payment,
    Redemption,
    Urgent,
    Refund,
    Replacement,
}

/// The fee rate in sat/vB, rounded up.
async fn paid(servers: &Servers, stage: Stage, first: &Transaction) -> Option<u64> {
    let (nodes, policy, redemption) = (servers.connect(2), Policy::default(), recovery(Some(&SECRET), ""));
    let order = match stage {
        Stage::Payment => {
            let rate = nodes.bitcoin(CHAIN).unwrap().fee_rate(Speed::Normal, &policy).await.ok()?.rate;
            return rate.fee(1_000).map(|fee| fee.to_sat().div_ceil(1_000));
        }
        Stage::Redemption => prepare(&nodes, &redemption, &policy).await.ok()?,
        Stage::Refund => prepare(&nodes, &recovery(None, ""), &policy).await.ok()?,
        Stage::Urgent => {
            let recovery = recover::Recovery::Bitcoin(redemption);
            of_bitcoin(nodes.prepare_urgent(&recovery, CHAIN, &owner(), Speed::Fast, &policy).await.ok()?)
        }
        Stage::Replacement => replace(&nodes, &redemption, first, &policy).await.ok()?,
    };
    let fee = fee(&order);
    let key = if stage == Stage::Refund { INITIATOR } else { REDEEMER };
    Some(fee.div_ceil(signed(order, key).weight().to_vbytes_ceil()))
}

pub(super) fn funded() -> (Shared, Transaction, Transaction) {
    let (ledger, payment) = Ledger::funded(usize::from(super::TIMELOCK));
    let outpoint = OutPoint { txid: payment.compute_txid(), vout: 1 };
    let output = Funding::new(outpoint, Amount::from_sat(AMOUNT));
    let by_hand = Payout::new([output], owner().as_str(), Fee::Deducted(FeeRate::from_whole(10)));
    let first = signed(recovery(Some(&SECRET), "").prepare(by_hand).unwrap(), REDEEMER);
    (shared(ledger), payment, first)
}

#[tokio::test(start_paused = true)]
async fn each_fee_rate_is_a_quorums_own_at_every_stage() {
    let (ledger, _, first) = funded();
    for stage in [Stage::Payment, Stage::Redemption, Stage::Urgent, Stage::Refund, Stage::Replacement] {
        let honest = paid(&servers(&ledger, None), stage, &first).await.unwrap();
        // What was sent pays 10 sat/vB, and nodes ask for a little more to replace it.
        assert!((10..=if stage == Stage::Replacement { 12 } else { 10 }).contains(&honest), "{stage:?}: {honest}");
        let mut lies: Vec<_> =
            [json!(0), json!(0.001), json!(1), json!(9.5), json!(13), json!(990), json!(20_000_000)].map(Lie::Rate).into();
        lies.extend([Lie::Rate(Value::Null), Lie::Rate(json!("x")), Lie::Status(500), Lie::Status(429), Lie::Silent]);
        for lie in lies {
            for place in 0..3 {
                let found = paid(&servers(&ledger, Some((place, &lie))), stage, &first).await;
                assert!(found.is_some_and(|rate| (10..=12).contains(&rate)), "{stage:?}, {lie:?} at {place}: {found:?}");
            }
        }
    }
}

/// Where one of three endpoints is silent, another one does not lower the rate of what makes a secret public.
#[tokio::test(start_paused = true)]
async fn of_two_endpoints_none_lowers_the_rate_of_a_redemption() {
    let (ledger, _, first) = funded();
    for (silent, liar) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        for lie in [json!(0.1), json!(1)].map(Lie::Rate) {
            let servers = servers(&ledger, [(silent, &Lie::Silent), (liar, &lie)]);
            let found = paid(&servers, Stage::Redemption, &first).await;
            assert!(found.is_some_and(|rate| (10..=12).contains(&rate)), "{lie:?} at {liar}: {found:?}");
        }
    }
}

/// On a quiet day nodes of today relay 0.3 sat/vB. What shows no secret pays that, without a warning. A redemption pays what older nodes relay.
#[tokio::test(start_paused = true)]
async fn on_a_quiet_day_only_a_redemption_pays_what_older_nodes_ask_for() {
    let (ledger, ..) = funded();
    let quiet = HOSTS.into_iter().fold(Servers::default(), |servers, host| {
        servers.with(host, &ledger).lying(host, |path, answer| Ok(at_rate(path, answer, &json!(0.3))))
    });
    let (nodes, policy) = (quiet.connect(2), Policy::default());
    let bitcoin = nodes.bitcoin(CHAIN).unwrap();
    let estimate = bitcoin.fee_rate(Speed::Normal, &policy).await.unwrap();
    assert_eq!((estimate.rate.to_string().as_str(), estimate.is_floor), ("0.3", false));
    assert!(bitcoin.wallet(&owner(), Speed::Normal, &policy).await.unwrap().rate_from_nodes);
    for (secret, rate) in [(None, "0.3"), (Some(&SECRET), "1")] {
        let order = prepare(&nodes, &recovery(secret, ""), &policy).await.unwrap();
        assert_eq!(order.payloads().payment.as_ref().unwrap().fee_rate.to_string(), rate);
        assert!(order.warnings().into_iter().all(|warning| warning.code() != Code::FeeTooLow), "{rate}: {:?}", order.warnings());
    }
}

/// A server makes up a transaction that spends the payment and pays half of it in fees: nothing has to outbid that.
#[tokio::test(start_paused = true)]
async fn a_rival_that_one_endpoint_shows_raises_no_fee() {
    let (ledger, payment, first) = funded();
    let mut rival = spend(&payment, Leaf::Refund, &[]);
    for output in &mut rival.output {
        output.value = Amount::from_sat(AMOUNT / 2);
    }
    let (id, hex) = (rival.compute_txid().to_string(), serialize_hex(&rival));
    for stage in [Stage::Redemption, Stage::Urgent, Stage::Refund, Stage::Replacement] {
        for host in &HOSTS[..2] {
            let (id, hex, bytes) = (id.clone(), hex.clone(), countersign::bitcoin::bitcoin::consensus::encode::serialize(&rival));
            let lying = servers(&ledger, None).lying(host, move |path, answer| {
                Ok(match path {
                    path if path.contains("/outspend/") => {
                        let spend = json!({"spent": true, "txid": id, "vin": 0, "status": {"confirmed": false}});
                        (200, spend.to_string().into_bytes())
                    }
                    path if path == format!("/tx/{id}/raw") => (200, bytes.clone()),
                    path if path == format!("/tx/{id}/hex") => (200, hex.clone().into_bytes()),
                    _ => at_rate(path, answer, &json!(11)),
                })
            });
            let found = paid(&lying, stage, &first).await;
            assert!(found.is_some_and(|rate| (10..=12).contains(&rate)), "{stage:?}, {host}: {found:?}");
        }
    }
}

/// What was sent pays so much that four times the median are less. It does not wait because of its fee.
#[tokio::test(start_paused = true)]
async fn an_overdue_transaction_is_raised_to_four_times_the_median_at_most() {
    let (ledger, payment, _) = funded();
    let outpoint = OutPoint { txid: payment.compute_txid(), vout: 1 };
    let sent = |rate: u64| {
        let by_hand =
            Payout::new([Funding::new(outpoint, Amount::from_sat(AMOUNT))], owner().as_str(), Fee::Deducted(FeeRate::from_whole(rate)));
        signed(recovery(Some(&SECRET), "").prepare(by_hand).unwrap(), REDEEMER)
    };
    let servers = servers(&ledger, None);
    // No endpoint has it: nothing has to be outbid, and the median is paid.
    assert_eq!(paid(&servers, Stage::Replacement, &sent(300)).await, Some(10));
    for (rate, offered) in [(20, Some(21..=22)), (38, Some(39..=40)), (300, None)] {
        let first = sent(rate);
        ledger.lock().unwrap().mempool.clear();
        ledger.lock().unwrap().offer(&first).unwrap();
        let found = paid(&servers, Stage::Replacement, &first).await;
        assert_eq!(found.is_some(), offered.is_some(), "{rate}: {found:?}");
        assert!(found.is_none_or(|found| offered.unwrap().contains(&found)), "{rate}: {found:?}");
    }
}

/// A server hides coins, or lists one that does not exist, with a transaction that creates it.
#[tokio::test(start_paused = true)]
async fn a_payment_spends_only_coins_that_enough_endpoints_show() {
    let script = chain("bitcoin").script(&owner(), "/owner").unwrap();
    let coin = |number, value| pay(outpoint(number), &[vec![1; 64]], &[(value, script.clone())]);
    let (mut ledger, real, invented) = (Ledger::new(), coin(7, 90_000), coin(8, 5_000_000));
    ledger.mempool.push(real.clone());
    ledger.mine(3);
    let ledger = shared(ledger);
    let id = invented.compute_txid();
    let raw = countersign::bitcoin::bitcoin::consensus::encode::serialize(&invented);
    let entry = json!({"txid": id.to_string(), "vout": 0, "value": 5_000_000, "status": {"confirmed": true, "block_height": 1}});
    for host in &HOSTS[..2] {
        for lists in [json!([]), json!([entry])] {
            let raw = raw.clone();
            let lying = servers(&ledger, None).lying(host, move |path, answer| {
                Ok(match path {
                    path if path.ends_with("/utxo") => (200, lists.to_string().into_bytes()),
                    path if path == format!("/tx/{id}/raw") => (200, raw.clone()),
                    _ => answer,
                })
            });
            let nodes = lying.connect(2);
            let coins = nodes.bitcoin(CHAIN).unwrap().coins(&owner()).await.unwrap();
            assert_eq!(coins.iter().map(|coin| coin.outpoint().txid).collect::<Vec<_>>(), [real.compute_txid()], "{host}");
        }
    }
}
