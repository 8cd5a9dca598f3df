//! The table of lies: each answer of each round, replaced by something else.

use std::sync::Arc;

use countersign_core::reader::{Answer, FailureKind, Fault, Known, Next, RpcError};
use countersign_core::{Finding, HtlcState, LockedHtlc};
use countersign_testkit::chain::tron::{SECRET, returned, reverted, terms};
use countersign_tron::Address;
use countersign_tron::alloy_primitives::{Address as AbiAddress, U256};
use countersign_tron::reader::HtlcReader;
use serde_json::json;

use super::{HOLDS, LOGS, ORDER, TOKEN, drive, locked, read, read_lie, tron};

/// The possible false answers, and whether one is a fault wherever it occurs.
fn lies() -> Vec<(&'static str, Answer)> {
    let json = |text: &str| Answer::http(200, text.as_bytes());
    let long: Arc<[u8]> = vec![b' '; 16 * 1024 * 1024 + 1].into();
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    vec![
        ("null", json("null")),
        ("a number", json("7")),
        ("a string", json("\"00\"")),
        ("not JSON", json("<html>")),
        ("nothing", json("")),
        ("twice", json("{\"blockID\": 1, \"blockID\": 1}")),
        ("two values", json("{}{}")),
        ("too long", Answer::http(200, long)),
        ("too deep", Answer::http(200, deep)),
        ("the node's error", json("{\"Error\": \"class java.lang.NullPointerException : null\"}")),
        ("a JSON-RPC error", Answer::Error(RpcError::new(-32601, "no", None))),
        ("a JSON-RPC result", Answer::result(*b"{}")),
        ("busy", Answer::http(429, *b"{}")),
        ("failed", Answer::http(500, *b"[]")),
        ("not found", Answer::http(404, *b"")),
        ("timed out", Answer::Failed(FailureKind::Timeout.into())),
        ("interrupted", Answer::Failed(FailureKind::Interrupted.into())),
    ]
}

#[test]
fn no_answer_can_be_replaced_by_something_else() {
    let terms = terms(TOKEN);
    for chain in [tron(), tron().redeemed(&terms, SECRET), tron().refunded(&terms)] {
        for (round, requests) in [3, 5, 4].into_iter().enumerate() {
            for at in 0..requests {
                for (name, lie) in lies() {
                    let reader = HtlcReader::new(&terms, &Known::default()).unwrap();
                    let outcome = drive(
                        reader,
                        |asked, place, request| if (asked, place) == (round, at) { lie.clone() } else { chain.answer(request) },
                    );
                    assert!(outcome.is_err(), "{name} at {round}/{at}: {outcome:?}");
                }
                // An answer without content. A block without transactions shows no event.
                for (name, empty) in [("empty object", json!({})), ("empty list", json!([]))] {
                    match read_lie(&chain, (round, at), |_| empty.clone()) {
                        Err(Fault::Malformed(_)) => assert_ne!((round, at), LOGS, "{name}"),
                        Ok(Finding { state: HtlcState::Locked(LockedHtlc { secret_hash: None, .. }) | HtlcState::Unclear(_), .. }) => {
                            assert_eq!((round, at), LOGS, "{name}");
                        }
                        other => panic!("{name} at {round}/{at}: {other:?}"),
                    }
                }
            }
        }
    }
}

/// Answers to other requests of the same round, to other orders, and calls that return something else.
#[test]
fn answers_to_other_requests_never_change_the_terms_of_an_order() {
    let terms = terms(TOKEN);
    let honest = locked(read(&tron()).unwrap());
    for (round, requests) in [3, 5, 4].into_iter().enumerate() {
        for (at, from) in (0..requests).flat_map(|at| (0..requests).map(move |from| (at, from))).filter(|(at, from)| at != from) {
            let mut reader = HtlcReader::new(&terms, &Known::default()).unwrap();
            while let Next::Ask(asked) = reader.next() {
                let mut answers: Vec<_> = asked.iter().map(|request| tron().answer(request)).collect();
                if reader.rounds() - 1 == round {
                    answers[at] = answers[from].clone();
                }
                reader.answer(&answers).unwrap();
            }
            if let Ok(observation) = reader.finish() {
                match observation.into_output().state {
                    HtlcState::Locked(other) => {
                        let same = other.clone().with_elapsed(honest.least_elapsed, honest.elapsed).with_covered(true);
                        assert_eq!(same, honest, "{round}: {from} for {at}");
                    }
                    HtlcState::Unclear(_) => {}
                    other => panic!("{round}: {from} for {at}: {other:?}"),
                }
            }
        }
    }
    // The contract's words, one changed at a time: the chain's own words are shown, and nothing else.
    for field in 0..6 {
        for value in [U256::ZERO, U256::ONE, U256::from(12_345), U256::MAX] {
            let mut order = tron().order.unwrap();
            order[field] = value;
            let words: Vec<_> = order.iter().flat_map(U256::to_be_bytes::<32>).collect();
            if let Ok(Finding { state: HtlcState::Locked(shown), .. }) = read_lie(&tron(), ORDER, |_| returned(&words)) {
                let account = |word: U256| Address::from(AbiAddress::from_word(word.into())).to_account();
                assert_eq!((&shown.initiator, &shown.redeemer), (&account(order[0]), &account(order[1])));
                assert_eq!((shown.amount, U256::from(shown.timelock)), (order[4], order[3]));
            }
        }
    }
    // A balance that is missing does not cover.
    for lie in [reverted(&[]), returned(&[]), returned(&[0; 32]), returned(&[1; 64])] {
        assert!(!locked(read_lie(&tron(), HOLDS, |_| lie.clone()).unwrap()).covered);
    }
}
