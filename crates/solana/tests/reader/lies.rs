//! Tests a table of lies: every answer of every round is replaced by everything else that it could be.

use countersign_core::reader::{Failure, FailureKind, RpcError};

use super::*;

/// A cluster, and what it is used for.
fn scenes(form: &str) -> Vec<(&'static str, Chain)> {
    let terms = of(form);
    let (_, _, address) = parts(&terms);
    let mut crowded = refunded(&terms);
    let end = crowded.mined.pop().unwrap();
    crowded.mined.extend(crowd(INITIATED + 1, address, 1_010));
    crowded.mined.push(end);
    crowded.mined.truncate(1_011);
    let mut dusted = redeemed(&terms);
    dusted.mined.extend(crowd(INITIATED + 50, address, 2));
    let mut scenes = vec![("open", Chain::funded(&terms)), ("redeemed", dusted), ("refunded", refunded(&terms))];
    if form == FORMS[1] {
        scenes.push(("crowded", crowded));
    }
    scenes
}

/// The honest answer to each request of each round.
fn honest(chain: &Chain, terms: &HtlcTerms) -> (Finding, Vec<Vec<(Request, Answer)>>) {
    let Reading { outcome, rounds } = read(chain, terms);
    let rounds = rounds.into_iter().map(|round| round.into_iter().map(|request| (request.clone(), chain.answer(&request))).collect());
    (outcome.unwrap().into_output(), rounds.collect())
}

/// Reads the chain with another answer at one place.
fn with_answer(rounds: &[Vec<(Request, Answer)>], chain: &Chain, terms: &HtlcTerms, at: (usize, usize), lie: &Answer) -> Reading<Htlc> {
    drive(terms, &Known::default(), |round, place, request| {
        if (round, place) == at {
            return lie.clone();
        }
        let known = rounds.get(round).and_then(|round| round.get(place)).filter(|(known, _)| known == request);
        known.map_or_else(|| chain.answer(request), |(_, answer)| answer.clone())
    })
}

fn result(value: &Value) -> Answer {
    Answer::result(value.to_string().into_bytes())
}

fn text(answer: &Answer) -> Value {
    let Answer::Result(text) = answer else { panic!("{answer:?}") };
    serde_json::from_slice(text).unwrap()
}

/// A lie may hide what an endpoint knows. It may never make a swap look better than it is.
fn assert_harmless(truth: &Finding, told: &Result<Observation<Htlc>, Fault>, what: &str) {
    let Ok(told) = told else { return };
    match (&told.output().state, &truth.state) {
        (HtlcState::Locked(told), HtlcState::Locked(truth)) => {
            let of = |locked: &LockedHtlc| (locked.initiator.clone(), locked.redeemer.clone(), locked.amount, locked.timelock);
            assert_eq!(of(told), of(truth), "{what}");
            assert_eq!((&told.token, told.secret_hash), (&truth.token, truth.secret_hash), "{what}");
        }
        (HtlcState::Redeemed { secret, .. }, HtlcState::Redeemed { .. }) => assert_eq!(*secret, Some(SECRET), "{what}"),
        (told @ (HtlcState::Locked(_) | HtlcState::Redeemed { .. }), truth) => panic!("{what}: {told:?} instead of {truth:?}"),
        _ => {}
    }
}

#[test]
fn a_whole_answer_that_is_something_else_is_unknown() {
    for form in FORMS {
        let terms = of(form);
        for (scene, chain) in scenes(form) {
            let (truth, rounds) = honest(&chain, &terms);
            // The crowd adds a page and a second round of transactions.
            let tested = rounds.iter().enumerate().filter(|(round, _)| scene != "crowded" || [1, 3].contains(round));
            for (round, requests) in tested {
                // One transaction of many is enough.
                for (place, (request, answer)) in requests.iter().enumerate().take(if scene == "crowded" { 2 } else { 4 }) {
                    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
                    let long = json!(vec![text(answer); 1_001]);
                    let other = requests.iter().map(|(_, other)| other).find(|other| *other != answer).unwrap();
                    let mut truncated = text(answer).to_string().into_bytes();
                    truncated.pop();
                    let lies = [
                        result(&Value::Null),
                        result(&json!(7)),
                        result(&json!("7")),
                        result(&json!(true)),
                        result(&json!({})),
                        result(&json!([[]])),
                        result(&long),
                        Answer::result(deep.into_bytes()),
                        Answer::result(truncated),
                        other.clone(),
                        Answer::http(200, b"{}".to_vec()),
                        Answer::Error(RpcError::new(-32_005, "Node is behind by 42 slots", None)),
                        Answer::Failed(Failure::new(FailureKind::Timeout, "")),
                    ];
                    for (index, lie) in lies.iter().enumerate() {
                        let what = format!("{form} {scene}, round {round}, {request:?} {place}, lie {index}");
                        let told = with_answer(&rounds, &chain, &terms, (round, place), lie).outcome;
                        assert_harmless(&truth, &told, &what);
                        // An open swap whose account contains everything needs no list, a slot is a number, and a transaction that is not
                        // the end may be missing.
                        let is_needed = match method(request) {
                            "getSignaturesForAddress" => scene != "open" || form == FORMS[1],
                            "getTransaction" => scene == "open" || place == 1,
                            "getSlot" => ![1, 8].contains(&index),
                            _ => true,
                        };
                        if is_needed && let Ok(told) = &told {
                            let state = &told.output().state;
                            let is_shown = matches!(state, HtlcState::Redeemed { .. }) && !told.output().seen.is_finalized;
                            assert!(is_unclear(state) || is_shown, "{what}: {state:?}");
                        }
                    }
                }
            }
        }
    }
}

/// Every member of every answer, one after the other, with every other kind of value.
#[test]
fn a_changed_member_never_makes_a_swap_look_better() {
    let others = [
        Value::Null,
        json!(true),
        json!(""),
        json!("AAAA"),
        json!("11111111111111111111111111111111"),
        json!(0),
        json!(FINALIZED + 5),
        json!(u64::MAX),
        json!(-1),
        json!(1.5),
        json!([]),
        json!({}),
    ];
    for form in FORMS {
        let terms = of(form);
        for (scene, chain) in scenes(form).into_iter().take(3) {
            let (truth, rounds) = honest(&chain, &terms);
            for (round, requests) in rounds.iter().enumerate() {
                for (place, (request, answer)) in requests.iter().enumerate() {
                    let truth_text = text(answer);
                    for pointer in pointers(&truth_text) {
                        for other in &others {
                            let mut changed = truth_text.clone();
                            *changed.pointer_mut(&pointer).unwrap() = other.clone();
                            let told = with_answer(&rounds, &chain, &terms, (round, place), &result(&changed)).outcome;
                            assert_harmless(&truth, &told, &format!("{form} {scene}, {request:?} {place}{pointer} = {other}"));
                        }
                    }
                }
            }
        }
    }
}

/// The pointers to all members and items of a value.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = |(key, value): (String, &Value)| {
        let own = format!("/{key}");
        let mut all: Vec<_> = pointers(value).iter().map(|pointer| format!("{own}{pointer}")).collect();
        all.push(own);
        all
    };
    children.into_iter().flat_map(below).collect()
}

/// A list from the future, in another order, or with a transaction twice.
#[test]
fn a_list_that_cannot_be_is_a_fault() {
    for form in FORMS {
        let terms = of(form);
        let chain = refunded(&terms);
        let (_, rounds) = honest(&chain, &terms);
        let list = text(&rounds[0][3].1);
        assert_eq!(list.as_array().unwrap().len(), 2);
        let (mut future, mut reversed, mut twice, mut long) = (list.clone(), list.clone(), list.clone(), list.clone());
        future[0]["slot"] = json!(NEWEST + 151);
        reversed.as_array_mut().unwrap().reverse();
        twice[1]["signature"] = twice[0]["signature"].clone();
        long = json!(vec![long[0].take(); 1_001]);
        for lie in [future, reversed, twice, long] {
            let told = with_answer(&rounds, &chain, &terms, (0, 3), &result(&lie)).outcome;
            assert!(matches!(told, Err(Fault::Malformed(_))), "{form}: {told:?}");
        }
    }
}

/// A page must be older than the one before.
#[test]
fn a_page_that_does_not_go_back_is_a_fault() {
    let terms = of(FORMS[3]);
    let (_, _, address) = parts(&terms);
    let mut chain = Chain::empty(&terms);
    chain.mined.extend(crowd(INITIATED, address, 500));
    chain.mined.extend(crowd(INITIATED + 1, address, 600));
    let first = chain.answer(&Request::json_rpc("getSignaturesForAddress", json!([address.to_string(), {"limit": 1_000}])));
    let reading = drive::<Htlc>(&terms, &Known::default(), |_, _, request| match method(request) {
        "getSignaturesForAddress" => first.clone(),
        _ => chain.answer(request),
    });
    assert!(matches!(reading.outcome, Err(Fault::Malformed(refusal)) if refusal.to_string().contains("older")));
    // The same page with an older slot has transactions twice.
    let mut chain = Chain::empty(&terms);
    chain.mined.extend(crowd(INITIATED, address, 1_100));
    let first = chain.answer(&Request::json_rpc("getSignaturesForAddress", json!([address.to_string(), {"limit": 1_000}])));
    let reading = drive::<Htlc>(&terms, &Known::default(), |_, _, request| match method(request) {
        "getSignaturesForAddress" => first.clone(),
        _ => chain.answer(request),
    });
    assert!(matches!(reading.outcome, Err(Fault::Malformed(refusal)) if refusal.to_string().contains("once")));
}

/// A swap from the future, and a clock of another bank.
#[test]
fn contradictions_are_faults() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, swap, _) = parts(&terms);
        let mut future = Chain::with_swap(&terms, &swap, FINALIZED + 1 + swap.timelock);
        future.mined = vec![mined(FINALIZED + 1, &initiate(&htlc, &swap))];
        if form == FORMS[0] {
            // The swap may also have a longer timelock than its terms.
            assert!(is_unclear(&finding(&future, &terms).state));
        } else {
            assert!(matches!(fault(&future, &terms), Fault::Malformed(_)), "{form}");
        }
        for slot in [0, FINALIZED - 151, FINALIZED + 151, u64::MAX] {
            let mut chain = Chain::funded(&terms);
            let data = [slot, 0, 0, 0, NOW].map(u64::to_le_bytes).concat();
            chain.account_mut(countersign_solana::read::CLOCK).data = data;
            assert!(matches!(fault(&chain, &terms), Fault::Malformed(_)), "{form} {slot}");
        }
    }
}
