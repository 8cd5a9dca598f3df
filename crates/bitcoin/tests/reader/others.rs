//! Tests readings other than of an HTLC: sending and fees.

use countersign_bitcoin::Chain;
use countersign_bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::reader::{Broadcast, FeeQuote, NamedChain, VersionCheck, fees, version};
use countersign_core::Code;
use countersign_core::chains::{BitcoinNet, Coin};
use countersign_core::reader::{Answer, Fault, Observation, Request, RpcError, Sent, Submission};
use countersign_testkit::chain::bitcoin::{Ledger, SECRET, spend, terms};

use super::{asks, drive, protocol};

#[test]
fn a_transaction_is_not_sent_to_another_chain() {
    let (ledger, transaction) = Ledger::funded(3);
    let redeem = spend(&transaction, Leaf::Redeem, &SECRET);
    let submission = Submission::new(&terms("bitcoin").network, &redeem.compute_txid().to_string(), &serialize_hex(&redeem));
    for is_rpc in [false, true] {
        let other = Ledger { is_litecoin: true, ..ledger.clone() };
        let (outcome, rounds, requests) = drive::<Broadcast>(&submission, &protocol(is_rpc), |_, _, request| other.answer(request));
        assert!(matches!(outcome, Err(Fault::WrongChain { .. })));
        assert_eq!((rounds, requests), (1, 0));
        let send = |ledger: &Ledger, submission: &Submission| {
            drive::<Broadcast>(submission, &protocol(is_rpc), |_, _, request| ledger.answer(request)).0.unwrap().into_output()
        };
        assert_eq!(send(&ledger, &submission), Sent::Accepted);
        let mut spent = ledger.clone();
        spent.mempool.push(redeem.clone());
        assert_eq!(send(&spent, &submission), Sent::Accepted, "it is known already");
        let rival = spend(&transaction, Leaf::Refund, &[]);
        let rival = Submission::new(&terms("bitcoin").network, &rival.compute_txid().to_string(), &serialize_hex(&rival));
        assert!(matches!(send(&spent, &rival), Sent::Rejected(why) if why.contains("insufficient fee")));
    }
}

/// Bitcoin Core's codes: what cannot be decoded (-22), whose inputs are missing (-25), and what breaks a rule (-26). Any other error says
/// nothing about the transaction.
#[test]
fn a_node_rejects_a_transaction_by_the_code_of_its_error() {
    let (ledger, transaction) = Ledger::funded(3);
    let redeem = spend(&transaction, Leaf::Redeem, &SECRET);
    let submission = Submission::new(&terms("bitcoin").network, &redeem.compute_txid().to_string(), &serialize_hex(&redeem));
    for (code, is_rejected) in [(-22, true), (-25, true), (-26, true), (-28, false), (-1, false), (22, false), (25, false), (26, false)] {
        let error = RpcError::new(code, "no", None);
        // The node does not know the transaction either, so it was not sent before.
        let answer = |_, _: usize, request: &Request| match request {
            sent if asks(sent, "sendrawtransaction") => Answer::Error(error.clone()),
            find if asks(find, "getrawtransaction") => Answer::Error(RpcError::new(-5, "No such mempool transaction", None)),
            other => ledger.answer(other),
        };
        let outcome = drive::<Broadcast>(&submission, &protocol(true), answer).0.map(Observation::into_output);
        let expected = if is_rejected { Ok(Sent::Rejected("no".into())) } else { Err(Fault::Rpc(error.clone())) };
        assert_eq!(outcome, expected, "{code}");
    }
}

fn quote(estimate: &str, floor: &str) -> FeeQuote {
    let rate = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
    FeeQuote { estimate: rate(estimate), floor: rate(floor) }
}

#[test]
fn one_endpoint_does_not_set_a_fee() {
    let rate = |quotes: &[FeeQuote]| fees::middle(quotes, false).map(|quote| quote.rate().to_string());
    let honest = [quote("7.5", ""), quote("8", "3")];
    for lie in [quote("900", ""), quote("0.1", ""), quote("", "900"), quote("18446744073709551615", "0"), FeeQuote::default()] {
        for place in 0..3 {
            let mut three = honest.to_vec();
            three.insert(place, lie);
            let found = rate(&three).unwrap();
            assert!(["7.5", "8"].contains(&found.as_str()), "{lie:?} at {place}: {found}");
        }
    }
    assert_eq!(rate(&[quote("9", ""), quote("4", "")]).as_deref(), Some("4"), "the lower one of two");
    let revealing = fees::middle(&[quote("9", ""), quote("4", "")], true).map(|quote| quote.rate().to_string());
    assert_eq!(revealing.as_deref(), Some("9"), "the higher one, for what makes a secret public");
    assert_eq!(rate(&[]), None);
}

/// What a node takes is what it says, and an estimate is never below it. Nodes relay nothing below 0.1 sat/vB by default, however little is
/// missing.
#[test]
fn a_rate_is_at_least_the_one_that_nodes_relay() {
    let rate = |text: &str| quote(text, "").rate().to_string();
    for (quoted, paid) in
        [("0.025", "0.1"), ("0.0999999999", "0.1"), ("0.1", "0.1"), ("0.25", "0.25"), ("0.9995", "0.9995"), ("1.5", "1.5")]
    {
        assert_eq!(rate(quoted), paid);
    }
    assert_eq!(FeeQuote::default().rate().to_string(), "1");
    // Nor below what a full node takes, whatever it estimates. Without an estimate, older nodes relay it too.
    let quotes = [("2", "3.5", "3.5"), ("", "3.5", "3.5"), ("4", "3.5", "4"), ("", "0.1", "1"), ("0.3", "0.1", "0.3"), ("0.3", "1", "1")];
    for (estimate, floor, paid) in quotes {
        assert_eq!(quote(estimate, floor).rate().to_string(), paid);
    }
}

/// An older node follows whatever chain its rules allow. An Esplora server does not name its node, and test networks have no such rule.
#[test]
fn a_litecoin_node_without_the_rules_in_force_is_refused() {
    const MAIN: &str = "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2";
    let check = |is_rpc: bool, version: &str| {
        let subject = NamedChain::new(Chain { coin: Coin::Litecoin, net: BitcoinNet::Main }, "litecoin");
        let answer = |_, place: usize, _: &Request| match (place, is_rpc) {
            (0, true) => Answer::result(format!("\"{MAIN}\"").into_bytes()),
            (0, false) => Answer::http(200, MAIN.as_bytes()),
            (_, true) => Answer::result(format!(r#"{{"version":{version},"subversion":"/LitecoinCore:0.21/"}}"#).into_bytes()),
            (_, false) => Answer::http(200, &b"[]"[..]),
        };
        drive::<VersionCheck>(&subject, &protocol(is_rpc), answer).0.map(|seen| seen.into_output().0.map_err(|refusal| refusal.code()))
    };
    // 0.21.5.8, 0.21.5.9, 0.22 and 26.0.
    for version in ["210508", "210509", "220000", "260000"] {
        assert_eq!(check(true, version), Ok(Ok(())), "{version}");
    }
    for version in ["210507", "210506", "180100", "0"] {
        assert_eq!(check(true, version), Ok(Err(Code::NodeOutdated)), "{version}");
    }
    for version in ["-1", "null", "{}"] {
        assert!(matches!(check(true, version), Err(Fault::Malformed(_))), "{version}");
    }
    assert_eq!(check(false, "1"), Ok(Ok(())));
    let others = [(Coin::Litecoin, BitcoinNet::Regtest), (Coin::Litecoin, BitcoinNet::Test), (Coin::Bitcoin, BitcoinNet::Main)];
    assert!(others.into_iter().all(|(coin, net)| version::least(Chain { coin, net }).is_none()));
}
