//! A table of lies, each told in every place.

use countersign_core::reader::{Answer, FailureKind, Known, Machine, Next, Request, RpcError};
use countersign_core::{Finding, HtlcState, HtlcTerms, SecretHash, U256};
use countersign_evm::address;
use countersign_evm::alloy_primitives::Address;
use countersign_evm::reader::{Htlc, HtlcReader};
use countersign_testkit::chain::evm::{Evm as EvmChain, SECRET};
use proptest::prelude::{any, prop_assert, proptest};

use super::{chain, drive, leg, unbound, with_event};

/// The answers that no request can have, and the code of the fault; none where it may also be unclear.
fn lies() -> Vec<(&'static str, Answer)> {
    let text = |text: String| Answer::result(text.into_bytes());
    let error = |code, message, data| Answer::Error(RpcError::new(code, message, data));
    vec![
        ("missing", text("null".to_owned())),
        ("a boolean", text("true".to_owned())),
        ("a number", text("7".to_owned())),
        ("a text", text("\"soon\"".to_owned())),
        ("nothing in hex", text("\"0x\"".to_owned())),
        ("too long for a number", text(format!("\"0x{}\"", "f".repeat(1_000)))),
        ("too long for an answer", text(format!("\"0x{}\"", "00".repeat(10_000)))),
        ("too deep", text(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)))),
        ("an empty object", text("{}".to_owned())),
        ("an empty list", text("[]".to_owned())),
        ("a list of nothing", text("[null]".to_owned())),
        ("a member twice", text(r#"{"number":"0x1","number":"0x2","hash":"0x"}"#.to_owned())),
        ("not JSON", text("<html>".to_owned())),
        ("no text", text(String::new())),
        ("an error", error(-32_000, "header not found", None)),
        ("a rate limit", error(-32_005, "limit exceeded", None)),
        ("a revert", error(3, "execution reverted", Some(vec![8, 0xc3, 0x79, 0xa0]))),
        ("a timeout", Answer::Failed(FailureKind::Timeout.into())),
        ("a broken connection", Answer::Failed(FailureKind::Interrupted.into())),
        ("a status", Answer::Failed(FailureKind::Status(503).into())),
        ("another protocol", Answer::http(200, *b"\"0x1\"")),
    ]
}

/// The readings of the table: an open order whose id commits to the hash, one whose id does not, and the two ends.
fn readings() -> Vec<(EvmChain, HtlcTerms)> {
    let terms = leg();
    vec![
        (chain(), leg()),
        (with_event(), unbound()),
        (chain().proving(&terms), leg()),
        (chain().redeemed(&terms, SECRET), leg()),
        (chain().refunded(&terms), leg()),
    ]
}

/// Checks that the finding equals what the chain stores.
fn assert_own(chain: &EvmChain, terms: &HtlcTerms, finding: &Finding, why: &str) {
    match &finding.state {
        HtlcState::Locked(locked) => {
            let account = |word: U256| address::to_account(Address::from_word(word.into()));
            let [initiator, redeemer, _, timelock, amount, end] = chain.order.unwrap();
            assert!(end.is_zero(), "{why}");
            assert_eq!((&locked.initiator, &locked.redeemer), (&account(initiator), &account(redeemer)), "{why}");
            assert_eq!((locked.amount, U256::from(locked.timelock)), (amount, timelock), "{why}");
        }
        HtlcState::Redeemed { secret, .. } => assert_eq!(secret.map(|secret| SecretHash::of(&secret)), Some(terms.secret_hash), "{why}"),
        _ => {}
    }
}

#[test]
fn a_lie_is_a_fault_or_unclear() {
    let mut cases = 0;
    for (chain, terms) in readings() {
        let (_, asked) = drive::<Htlc>(&terms, &Known::default(), |_, _, request| chain.answer(request));
        for (round, requests) in asked.into_iter().enumerate() {
            for place in 0..requests {
                for (why, lie) in lies() {
                    let answer = |now: usize, at: usize, request: &Request| {
                        if (now, at) == (round, place) { lie.clone() } else { chain.answer(request) }
                    };
                    let (outcome, _) = drive::<Htlc>(&terms, &Known::default(), answer);
                    let why = format!("{why} at {round}/{place}");
                    cases += 1;
                    let Ok(observation) = outcome else { continue };
                    let finding = observation.into_output();
                    assert_own(&chain, &terms, &finding, &why);
                    let is_read = matches!(finding.state, HtlcState::Locked(_) | HtlcState::Redeemed { .. } | HtlcState::Refunded { .. });
                    match (round, place) {
                        // Without its answer the order is not marked. What is final is safe.
                        (0, 2) | (1, 5) => assert!(finding.seen.is_safe == finding.seen.is_finalized || !is_read, "{why}"),
                        (0, 3) | (1, 6) => assert!(!finding.seen.is_finalized || !is_read, "{why}"),
                        // Not every node has proofs, and some answer with something else.
                        (1, 4) => {}
                        // The event of the funding: without it the hash is unknown, and a judgement holds the secret.
                        (2, 2) => assert!(matches!(&finding.state, HtlcState::Locked(locked) if locked.secret_hash.is_none()), "{why}"),
                        _ => assert!(matches!(finding.state, HtlcState::Unclear(_)), "{why}: {:?}", finding.state),
                    }
                }
            }
        }
    }
    assert!(cases > 1_000, "{cases}");
}

#[test]
fn an_answer_to_another_request_shows_no_other_order() {
    for (chain, terms) in readings() {
        for round in 0..3 {
            for shift in 1..7 {
                let mut reader = HtlcReader::new(&terms, &Known::default()).unwrap();
                let mut now = 0;
                while let Next::Ask(requests) = reader.next() {
                    let mut answers: Vec<_> = requests.iter().map(|request| chain.answer(request)).collect();
                    if now == round {
                        let count = answers.len();
                        answers.rotate_left(shift % count);
                    }
                    now += 1;
                    reader.answer(&answers).unwrap();
                }
                if let Ok(observation) = reader.finish() {
                    assert_own(&chain, &terms, observation.output(), &format!("round {round}, shifted by {shift}"));
                }
            }
        }
    }
}

proptest! {
    /// A byte of an answer is changed: nothing panics, and no round is added.
    #[test]
    fn a_changed_byte_does_no_harm(which in 0_usize..5, round in 0_usize..3, place in 0_usize..8, at in any::<usize>(), byte in any::<u8>()) {
        let (chain, terms) = readings().swap_remove(which);
        let answer = |now: usize, there: usize, request: &Request| match chain.answer(request) {
            Answer::Result(text) if (now, there) == (round, place) => {
                let mut text = text.to_vec();
                let at = at % text.len();
                text[at] = byte;
                Answer::result(text)
            }
            other => other,
        };
        let (_, asked) = drive::<Htlc>(&terms, &Known::default(), answer);
        prop_assert!(asked.len() <= Htlc::MAX_ROUNDS);
    }
}
