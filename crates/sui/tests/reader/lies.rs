//! A table of lies: each answer of each round is replaced by one that an honest node never gives.

use countersign_core::HtlcState;
use countersign_core::reader::{Answer, Failure, FailureKind, Fault, Known, Observation, RpcError};
use countersign_sui::reader::Htlc;
use countersign_testkit::chain::sui::proto::{Message, answer, error, frame};
use countersign_testkit::chain::sui::{Ledger, terms};
use proptest::prelude::*;

use crate::reader::{drive, method};

/// Reads the order from a node that lies about one method.
pub(crate) fn lied(ledger: &Ledger, about: &str, lie: &Answer) -> Result<HtlcState, Fault> {
    let found = drive::<Htlc>(
        &terms(),
        &Known::default(),
        |_, request| {
            if method(request) == about { lie.clone() } else { ledger.answer(request) }
        },
    );
    found.0.map(|observation: Observation<Htlc>| observation.into_output().state)
}

pub(crate) const METHODS: [&str; 4] = ["GetServiceInfo", "BatchGetObjects", "GetTransaction", "GetCheckpoint"];

pub(crate) fn http(body: impl Into<Vec<u8>>) -> Answer {
    Answer::http(200, body.into())
}

pub(crate) fn with_header(body: Vec<u8>, status: &str) -> Answer {
    Answer::Http { status: 200, body: body.into(), grpc_status: Some(status.to_owned()) }
}

/// The honest body of a method.
pub(crate) fn honest(ledger: &Ledger, about: &str) -> Vec<u8> {
    let mut body = Vec::new();
    drive::<Htlc>(&terms(), &Known::default(), |_, request| {
        let answer = ledger.answer(request);
        if let (true, Answer::Http { body: bytes, .. }) = (method(request) == about, &answer) {
            body = bytes.to_vec();
        }
        answer
    })
    .0
    .unwrap();
    body
}

/// Returns the message of a body of one message and its trailers.
pub(crate) fn message(body: &[u8]) -> Vec<u8> {
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap());
    body[5..5 + usize::try_from(length).unwrap()].to_vec()
}

/// Every lie about a method, with the code of its fault.
fn lies(ledger: &Ledger, about: &str) -> Vec<(&'static str, Answer, &'static str)> {
    let body = honest(ledger, about);
    let own = message(&body);
    let repeated = answer(&Message([&own[..], &own].concat()));
    let nested = (0..2_000).fold(Message::default(), |message, _| Message(frame_of(1, &message.0)));
    let base64 = b"AAAAAAgKBgoEdGV4dIAAAAAQZ3JwYy1zdGF0dXM6IDANCg==".to_vec();
    let malformed = "node_malformed";
    let mut all = vec![
        ("missing", http(Vec::new()), malformed),
        ("without its message", http(frame(0x80, b"grpc-status:0\r\n")), malformed),
        ("without its trailers", http(frame(0, &own)), malformed),
        ("null", http(*b"null"), malformed),
        ("an empty message", http(answer(&Message::default())), malformed),
        ("HTML", http(*b"<html>busy</html>"), malformed),
        ("base64", http(base64), malformed),
        ("a number for a message", http(answer(&Message::default().number(1, 7))), malformed),
        ("twice in frames", http([frame(0, &own), body.clone()].concat()), malformed),
        ("twice", http([&body[..], &body].concat()), malformed),
        ("too long", http(answer(&Message([&own[..], &Message::default().bytes(9_000, &vec![0; 1_100_000]).0].concat()))), malformed),
        ("too deep", http(answer(&nested)), malformed),
        ("compressed", http([frame(1, &own), frame(0x80, b"grpc-status:0\r\n")].concat()), malformed),
        ("an error", http(error(14, "busy")), "node_error"),
        ("not found", http(error(5, "not found")), "node_error"),
        ("an error after its message", http([frame(0, &own), error(13, "internal")].concat()), "node_error"),
        ("an error in the header", with_header(Vec::new(), "14"), "node_error"),
        ("another status in the header", with_header(body.clone(), "5"), malformed),
        ("no status", with_header(Vec::new(), "ok"), malformed),
        ("another HTTP status", Answer::http(503, body.clone()), "node_http_status"),
        ("a redirect", Answer::http(302, body.clone()), "node_http_status"),
        ("an answer of JSON-RPC", Answer::result(body.clone()), malformed),
        ("an error of JSON-RPC", Answer::Error(RpcError::new(-32_000, "no", None)), "node_error"),
        ("a timeout", Answer::Failed(FailureKind::Timeout.into()), "timeout"),
        ("no connection", Answer::Failed(Failure::new(FailureKind::Connect, "refused")), "no_connection"),
    ];
    if about != "BatchGetObjects" {
        // The list of objects is repeated, so that twice the field is another count.
        all.push(("twice in one message", http(repeated), malformed));
    } else {
        all.push(("twice as many objects", http(repeated), malformed));
    }
    for other in METHODS.into_iter().filter(|other| *other != about) {
        all.push(("for another request", http(honest(ledger, other)), malformed));
    }
    all
}

fn frame_of(field: u8, content: &[u8]) -> Vec<u8> {
    Message::default().bytes(field.into(), content).0
}

#[test]
fn no_lie_makes_a_state() {
    for ledger in [Ledger::funded(), Ledger::ended("Redeemed"), Ledger::ended("Refunded")] {
        for about in METHODS {
            for (lie, answer, code) in lies(&ledger, about) {
                match lied(&ledger, about, &answer) {
                    Err(fault) if code == "no_connection" => assert!(matches!(fault, Fault::Unanswered(_)), "{about}: {lie}: {fault}"),
                    Err(fault) => {
                        // Another method's first field may be a text or a number where a message is expected, and the other way round.
                        let is_other_chain = lie == "for another request" && matches!(fault, Fault::WrongChain { .. });
                        assert!(fault.code().name() == code || is_other_chain, "{about}: {lie}: {fault:?}");
                    }
                    Ok(HtlcState::Unclear(_)) => {}
                    Ok(state) => panic!("{about}: {lie}: {state:?}"),
                }
            }
        }
    }
}

#[test]
fn an_honest_answer_that_is_cut_off_is_a_fault() {
    for ledger in [Ledger::funded(), Ledger::ended("Redeemed")] {
        for about in METHODS {
            let body = honest(&ledger, about);
            for length in (0..body.len()).step_by(1 + body.len() / 150) {
                assert!(lied(&ledger, about, &http(&body[..length])).is_err(), "{about}: {length}");
            }
            // The same bytes in a frame of that length. The identity comes first in its message, and stands without the rest.
            let own = if about == "GetServiceInfo" { message(&body)[..46].to_vec() } else { message(&body) };
            for length in (0..own.len()).step_by(1 + own.len() / 150) {
                let cut = lied(&ledger, about, &http(answer(&Message(own[..length].to_vec()))));
                assert!(matches!(cut, Err(_) | Ok(HtlcState::Unclear(_))), "{about}: {length}: {cut:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic_or_make_a_state(
        about in 0..4_usize,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        is_framed in any::<bool>(),
    ) {
        let body = if is_framed { answer(&Message(bytes)) } else { bytes };
        let state = lied(&Ledger::funded(), METHODS[about], &http(body));
        prop_assert!(matches!(state, Err(_) | Ok(HtlcState::Unclear(_))), "{:?}", state);
    }

    #[test]
    fn a_changed_byte_gives_no_other_end(
        about in 0..4_usize,
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (ledger, about) = (Ledger::ended("Redeemed"), METHODS[about]);
        let expected = lied(&ledger, "nothing", &http(Vec::new())).unwrap();
        let mut body = honest(&ledger, about);
        let at = at.index(body.len());
        body[at] = byte;
        match lied(&ledger, about, &http(body)) {
            Ok(HtlcState::Redeemed { secret, .. }) => {
                let HtlcState::Redeemed { secret: own, .. } = &expected else { panic!("{expected:?}") };
                prop_assert_eq!(own, &secret);
            }
            Ok(HtlcState::Unclear(_) | HtlcState::Absent) | Err(_) => {}
            // The byte that says whether the order has ended, if the order still held coins.
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
