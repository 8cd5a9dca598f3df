//! Every lie that a single answer can tell.

use countersign_bitcoin::bitcoin::consensus::encode::{serialize, serialize_hex};
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::reader::Htlc;
use countersign_core::HtlcState;
use countersign_core::reader::{Answer, FailureKind, Request, RpcError};
use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, SECRET, funding, spend, terms};

use super::{drive, protocol, read, read_known};

/// What an endpoint may return instead of an honest answer: missing, null, of another type, too long, too deep, for another request, twice,
/// an error for a result, a failure of the connection.
fn lies(honest: &Answer) -> Vec<Answer> {
    let deep = ["[".repeat(65), "]".repeat(65)].concat();
    let texts =
        ["null", "true", "[]", "{}", "\"\"", "\"00\"", "-1", "1e99", "[null]", "[{}]", "[[]]", "<html>", "", "{\"result\":1}", &deep];
    let other = serialize(&funding(9, AMOUNT));
    let long = vec![b'0'; 17 * 1024 * 1024];
    let bodies = texts.iter().map(|text| text.as_bytes().to_vec());
    let bodies = bodies.chain([other.clone(), serialize_hex(&funding(9, AMOUNT)).into_bytes(), "11".repeat(32).into_bytes(), long]);
    let mut lies = vec![Answer::Failed(FailureKind::Timeout.into()), Answer::Failed(FailureKind::TooLarge.into())];
    match honest {
        Answer::Http { .. } => {
            lies.extend([
                Answer::http(500, *b"{}"),
                Answer::http(429, *b""),
                Answer::result(*b"null"),
                Answer::Error(RpcError::new(-5, "", None)),
            ]);
            lies.extend(bodies.map(|body| Answer::http(200, body)));
        }
        _ => {
            lies.extend([Answer::Error(RpcError::new(-1, "", None)), Answer::http(200, *b"null")]);
            lies.extend(bodies.map(Answer::result));
            lies.push(Answer::result(format!("\"{}\"", serialize_hex(&funding(9, AMOUNT))).into_bytes()));
        }
    }
    // Twice, with something after it, and cut off.
    if let Answer::Http { status: 200, body, .. } = honest {
        lies.extend(
            [[&body[..], &body[..]].concat(), [&body[..], &[1]].concat(), body[..body.len() - 1].to_vec()]
                .map(|body| Answer::http(200, body)),
        );
    }
    if let Answer::Result(text) = honest {
        lies.extend([[&text[..], &text[..]].concat(), text[..text.len() - 1].to_vec()].map(Answer::result));
    }
    lies
}

#[test]
fn no_single_lie_makes_a_state() {
    let (open, transaction) = Ledger::funded(3);
    let mut ended = open.clone();
    ended.mempool.push(spend(&transaction, Leaf::Redeem, &SECRET));
    let mut mined = ended.clone();
    mined.mine(2);
    let earlier = read_known(&open, &terms("bitcoin"), &protocol(false)).known().clone();
    let (mut lies_told, hint) = (0, format!("outpoint {}", terms("bitcoin").swap_id));
    assert!(earlier.hint(&hint).is_some());
    for (name, ledger) in [("open", &open), ("ended", &ended), ("mined", &mined)] {
        let expected = read(ledger, false).state;
        for known in [protocol(false), protocol(true)].into_iter().flat_map(|known| {
            let mut later = known.clone();
            later.learn(&earlier);
            [known, later]
        }) {
            let mut asked = Vec::new();
            drive::<Htlc>(&terms("bitcoin"), &known, |round, place, request| {
                asked.push((round, place, request.clone()));
                ledger.answer(request)
            })
            .0
            .unwrap();
            for (at, index, request) in &asked {
                for lie in lies(&ledger.answer(request)) {
                    lies_told += 1;
                    let answer = |round, place, request: &Request| {
                        if (round, place) == (*at, *index) { lie.clone() } else { ledger.answer(request) }
                    };
                    let (outcome, ..) = drive::<Htlc>(&terms("bitcoin"), &known, answer);
                    let Ok(observation) = outcome else { continue };
                    let state = &observation.output().state;
                    let is_harmless = match state {
                        HtlcState::Unclear(_) | HtlcState::Absent => true,
                        // One list may be empty if the other shows the output. That nothing spends an output cannot be proven.
                        HtlcState::Locked(_) => {
                            expected == *state || format!("{request:?}").contains("gettxout") || format!("{request:?}").contains("/utxo")
                        }
                        HtlcState::Redeemed { secret, .. } => *secret == Some(SECRET) && expected == *state,
                        _ => false,
                    };
                    assert!(is_harmless, "{name}, {request:?} in round {at}: {lie:?} gives {state:?}");
                    // Without an earlier reading, only the history shows an output that is spent.
                    let is_history = format!("{request:?}").ends_with("/txs") && name != "open" && known.hint(&hint).is_none();
                    assert!(
                        *state != HtlcState::Absent || is_history,
                        "{name}, {request:?} in round {at}: a single answer hides the output"
                    );
                }
            }
        }
    }
    assert!(lies_told > 1_000, "{lies_told}");
}
