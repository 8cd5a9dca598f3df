//! Every answer of a reading, replaced by every lie.

use countersign_core::reader::{Agree, Answer, Failure, FailureKind, Known, RpcError};
use countersign_core::{Finding, HtlcState};
use countersign_starknet::reader::Htlc;
use countersign_testkit::chain::starknet::{Chain, INITIATED, READABLE, SECRET, chain_of, hash_of};
use serde_json::json;

use crate::reader::{USUAL, destination, drive, params};

/// A false answer of an endpoint.
pub(crate) fn lies() -> Vec<Answer> {
    let deep = ["[".repeat(1_000), "]".repeat(1_000)].concat();
    let texts = ["null", "7", "\"x\"", "\"0x\"", "[]", "{}", "true", "[\"x\"]", "1e400", "[", "", &deep];
    let long = json!(vec!["0x1"; 65]).to_string();
    let mut lies: Vec<_> = texts.into_iter().chain([long.as_str()]).map(|text| Answer::result(text.as_bytes())).collect();
    lies.extend([20, 21, 24, 40, -32_603].map(|code| Answer::Error(RpcError::new(code, "no", None))));
    lies.extend([FailureKind::Timeout, FailureKind::Status(429), FailureKind::NotJsonRpc].map(|kind| Answer::Failed(Failure::from(kind))));
    lies.push(Answer::http(200, *b"[]"));
    lies
}

/// Returns whether the chain shows that the HTLC holds or has paid its funds.
const fn is_evidence(finding: &Finding) -> bool {
    matches!(finding.state, HtlcState::Locked(_) | HtlcState::Redeemed { .. } | HtlcState::Refunded { .. })
}

fn scenarios() -> Vec<(&'static str, Chain)> {
    let all = READABLE.into_iter().flat_map(|id| [(id, chain_of(id)), (id, chain_of(id).redeemed(&SECRET))]);
    all.chain([(USUAL, chain_of(USUAL).refunded())]).collect()
}

#[test]
fn no_lie_makes_evidence() {
    for (id, chain) in scenarios() {
        let terms = destination(id);
        let honest = drive::<Htlc>(&terms, &Known::default(), |_, _, request| chain.answer(request));
        let truth = honest.outcome.unwrap().into_output();
        assert!(is_evidence(&truth) && truth.seen.is_finalized, "{id}: {truth:?}");
        for (round, requests) in honest.asked.iter().enumerate() {
            let truths: Vec<_> = requests.iter().map(|request| chain.answer(request)).collect();
            for (place, request) in requests.iter().enumerate() {
                // These parts say only whether the state is final.
                let params = params(request);
                let is_mark = params["block_id"] == "l1_accepted" || params["block_id"]["block_hash"] == hash_of(INITIATED + 10);
                let tell = |lie: &Answer| {
                    let answer = |at, here, asked: &countersign_core::reader::Request| {
                        if (at, here) == (round, place) { lie.clone() } else { chain.answer(asked) }
                    };
                    drive::<Htlc>(&terms, &Known::default(), answer).outcome
                };
                for lie in lies() {
                    if let Ok(observation) = tell(&lie) {
                        let finding = observation.output();
                        assert!(!is_evidence(finding) || is_mark, "{id} {request:?} {lie:?}: {finding:?}");
                        assert!(!finding.seen.is_finalized, "{id} {request:?} {lie:?}: {finding:?}");
                    }
                }
                // The answer to another request of the round may have the right type. It shows an older block, or endpoints do not agree.
                for other in truths.iter().filter(|other| **other != truths[place]) {
                    if let Ok(observation) = tell(other) {
                        let finding = observation.output();
                        let is_older = finding.seen.height < truth.seen.height;
                        assert!(finding.key() != truth.key() || !finding.seen.is_finalized || is_older, "{id} {request:?}: {finding:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn answers_that_are_too_long_are_refused() {
    let chain = chain_of(USUAL);
    let long = Answer::result(vec![b' '; countersign_core::json::MAX_BYTES + 1]);
    for round in 0..3 {
        let drive = drive::<Htlc>(&destination(USUAL), &Known::default(), |at, place, request| {
            if (at, place) == (round, 1) { long.clone() } else { chain.answer(request) }
        });
        assert_eq!(drive.outcome.unwrap_err().code().name(), "node_malformed");
    }
}
