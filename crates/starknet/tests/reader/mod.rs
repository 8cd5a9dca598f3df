//! Tests the readers without I/O. No answer of an endpoint may make an HTLC look funded or redeemed if the chain does
//! not show it so.

mod fate;
mod funds;
mod lies;
mod limits;
mod send;
mod wallet;

use countersign_core::reader::{Agree, Answer, Fault, Known, Machine, Next, Observation, Quorum, Reader, Request, Verdict};
use countersign_core::{Finding, HtlcState, HtlcTerms, SecretHash, StarknetGeneration, U256};
use countersign_starknet::reader::{Htlc, MAX_ROUNDS};
use countersign_starknet::{Felt, felt, read};
use countersign_testkit::cairo;
use countersign_testkit::chain::starknet::{
    CLASS, Chain, INITIATED, LATEST, NOW, READABLE, SECRET, chain_of, hash_of, hex, redeemed_data, terms,
};
use serde_json::{Value, json};

const USUAL: &str = "starknet-to-2025-11";
/// Its ids do not prove the secret hash.
const NEWEST: &str = "starknet-to-client-3-1-3";
/// Its orders are read from storage.
const OLDEST: &str = "starknet-to-2025-02";

/// How a reading ended, and the requests of each round.
struct Drive<M: Machine> {
    outcome: Result<Observation<M>, Fault>,
    asked: Vec<Vec<Request>>,
}

/// Drives a reader. `answer` gets the round, the place and the request.
fn drive<M: Machine>(subject: &M::Subject, known: &Known, answer: impl Fn(usize, usize, &Request) -> Answer) -> Drive<M> {
    let mut reader = Reader::<M>::new(subject, known).unwrap();
    let mut asked = Vec::new();
    while let Next::Ask(requests) = reader.next() {
        let round = asked.len();
        let answers: Vec<_> = requests.iter().enumerate().map(|(place, request)| answer(round, place, request)).collect();
        asked.push(requests.to_vec());
        assert!(asked.len() <= M::MAX_ROUNDS);
        reader.answer(&answers).unwrap();
    }
    Drive { outcome: reader.finish(), asked }
}

fn destination(id: &str) -> HtlcTerms {
    terms(id).destination
}

fn read_of(id: &str, chain: &Chain) -> Result<Finding, Fault> {
    drive::<Htlc>(&destination(id), &Known::default(), |_, _, request| chain.answer(request)).outcome.map(Observation::into_output)
}

fn read_usual(chain: &Chain) -> Result<Finding, Fault> {
    read_of(USUAL, chain)
}

#[track_caller]
fn assert_unclear(outcome: Result<Finding, Fault>, why: &str) {
    match outcome.unwrap().state {
        HtlcState::Unclear(text) if text.contains(why) => {}
        other => panic!("{other:?}"),
    }
}

fn method(request: &Request) -> String {
    format!("{request:?}").trim_end_matches("(..)").to_owned()
}

fn methods(requests: &[Request]) -> Vec<String> {
    requests.iter().map(method).collect()
}

fn params(request: &Request) -> Value {
    let Request::JsonRpc { params, .. } = request else { panic!("{request:?}") };
    serde_json::from_str(params).unwrap()
}

/// Lies about one method, which `is_meant` may narrow.
fn lying(chain: Chain, method: &'static str, is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static, answer: Value) -> Chain {
    chain.lying(move |_, asked, params| (asked == method && is_meant(params)).then(|| answer.clone()))
}

fn error(code: i64) -> Value {
    json!({"error": {"code": code, "message": "no"}})
}

#[test]
fn an_open_htlc_takes_three_rounds() {
    for (id, order, funding) in [(OLDEST, 7, 1), (USUAL, 1, 1), (NEWEST, 1, 2)] {
        let chain = chain_of(id);
        let first = drive::<Htlc>(&destination(id), &Known::default(), |_, _, request| chain.answer(request));
        let counts: Vec<_> = first.asked.iter().map(Vec::len).collect();
        // Each round asks for the chain id. The class is asked once.
        assert_eq!(counts, [4, 1 + 3 + 2 * order + 1, 1 + funding], "{id}");
        assert_eq!(
            methods(&first.asked[0])[1..],
            ["starknet_specVersion", "starknet_getBlockWithTxHashes", "starknet_getBlockWithTxHashes"]
        );
        let observation = first.outcome.unwrap();
        // G4: an observation is tied to the terms.
        assert_eq!(*observation.subject(), destination(id));
        assert!(matches!(&observation.output().state, HtlcState::Locked(_)), "{observation:?}");
        let known = observation.known();
        let second = drive::<Htlc>(&destination(id), known, |_, _, request| chain.answer(request));
        assert_eq!(second.asked[1].len(), 1 + 3 + 2 * order, "{id}");
        assert_eq!(second.outcome.unwrap().output(), observation.output());
        // The end takes three rounds as well where one page has it.
        let ended = chain_of(id).redeemed(&SECRET);
        assert_eq!(drive::<Htlc>(&destination(id), known, |_, _, request| ended.answer(request)).asked.len(), 3);
    }
}

/// E4: all parts of the answer are read at the hash of one block.
#[test]
fn everything_is_read_at_one_block() {
    for id in READABLE {
        let chain = chain_of(id);
        let drive = drive::<Htlc>(&destination(id), &Known::default(), |_, _, request| chain.answer(request));
        for request in &drive.asked[1][1..] {
            let at = params(request)["block_id"]["block_hash"].clone();
            assert!(at == hash_of(LATEST) || at == hash_of(INITIATED + 10), "{request:?} {at}");
        }
    }
    for (member, value) in [("block_hash", json!(hash_of(LATEST))), ("block_number", json!(1)), ("timestamp", json!(NOW))] {
        let mut block = chain_of(USUAL).block(INITIATED);
        block[member] = value;
        let lie = lying(chain_of(USUAL), "starknet_getBlockWithTxHashes", |params| params["block_id"]["block_number"] == INITIATED, block);
        assert!(matches!(read_usual(&lie), Err(Fault::Malformed(_))), "{member}");
    }
}

#[test]
fn locked_is_what_the_chain_shows() {
    for id in READABLE {
        for (field, value) in [(1, 0x1234_u64), (2, 0x1234), (4, 77), (5, 5), (3, INITIATED - 7)] {
            let mut chain = chain_of(id);
            let order = chain.order.as_mut().unwrap();
            order[field] = Felt::from(value);
            let order = *order;
            let locked = match read_of(id, &chain).map(|finding| finding.state) {
                Ok(HtlcState::Locked(locked)) => locked,
                // The event of the funding contradicts the order.
                Ok(HtlcState::Unclear(_)) | Err(Fault::Malformed(_)) if id == NEWEST => continue,
                other => panic!("{id} {field}: {other:?}"),
            };
            let stored = [locked.initiator, locked.redeemer].map(|party| Felt::from_bytes_be(&party.array().unwrap()));
            assert_eq!((stored, Felt::from(locked.timelock)), ([order[1], order[2]], order[4]), "{id} {field}");
            assert_eq!(felt::halves(locked.amount), [order[5], order[6]], "{id} {field}");
        }
    }
}

/// E1: a connection that changes its chain between two rounds is found out, too.
#[test]
fn the_chain_is_identified_in_every_round() {
    for wrong in 0..3 {
        let chain = chain_of(USUAL);
        let drive = drive::<Htlc>(&destination(USUAL), &Known::default(), |round, place, request| match (round, place) {
            (round, 0) if round == wrong => Answer::result(*b"\"0x534e5f5345504f4c4941\""),
            _ => chain.answer(request),
        });
        assert_eq!(drive.asked.len(), wrong + 1);
        let expected = Fault::WrongChain { expected: "SN_MAIN".to_owned(), actual: "SN_SEPOLIA".to_owned() };
        assert_eq!(drive.outcome.unwrap_err(), expected);
    }
    for version in ["0.8.1", "1.0.0", "0.90.0", ""] {
        assert!(matches!(read_usual(&Chain { version, ..chain_of(USUAL) }), Err(Fault::Malformed(_))), "{version}");
    }
}

/// E2, G1: height and time are those of the endpoint's newest block.
#[test]
fn the_newest_block_is_the_chains() {
    let finding = read_usual(&chain_of(USUAL)).unwrap();
    assert_eq!(
        (finding.seen.height.get(), finding.seen.hash.as_str(), finding.seen.head_time.as_secs()),
        (LATEST, hash_of(LATEST).as_str(), NOW - 5)
    );
    let chain = chain_of(USUAL);
    let read = |height: u64| {
        let known = Known::default().with_height(height.into());
        drive::<Htlc>(&destination(USUAL), &known, |_, _, request| chain.answer(request)).outcome
    };
    // Half a minute, in blocks of a second.
    assert_eq!(read(LATEST + 30).unwrap().known().height().get(), LATEST);
    assert_eq!(read(LATEST + 31).unwrap_err(), Fault::WentBack { before: (LATEST + 31).into(), now: LATEST.into() });
}

/// S1, S2: the class has the interface of the pinned generation, and stays.
#[test]
fn the_class_is_that_of_the_generation_and_stays() {
    for (id, own) in
        READABLE.into_iter().zip([StarknetGeneration::FEBRUARY_2025, StarknetGeneration::NOVEMBER_2025, StarknetGeneration::CLIENT_3_1_3])
    {
        for other in StarknetGeneration::ALL.iter().filter(|other| **other != own && **other != StarknetGeneration::JULY_2025) {
            let chain = Chain { abi: cairo::abi(other).to_string(), ..chain_of(id) };
            let reading = drive::<Htlc>(&destination(id), &Known::default(), |_, _, request| chain.answer(request)).outcome.unwrap();
            assert_eq!(reading.known(), &Known::default().with_height(LATEST.into()), "a wrong class is not remembered");
            assert_unclear(Ok(reading.into_output()), "interface");
        }
        let chain = chain_of(id);
        let first = drive::<Htlc>(&destination(id), &Known::default(), |_, _, request| chain.answer(request)).outcome.unwrap();
        let changed = Chain { class: CLASS + 1, ..chain_of(id) };
        for (known, is_same) in [(first.known(), true), (&Known::default(), false)] {
            let outcome = drive::<Htlc>(&destination(id), known, |_, _, request| changed.answer(request)).outcome.unwrap();
            assert_eq!(matches!(&outcome.output().state, HtlcState::Unclear(why) if why.contains("changed")), is_same);
            assert_ne!(outcome.key(), first.key(), "endpoints with different classes do not agree");
        }
    }
    assert_unclear(read_usual(&lying(chain_of(USUAL), "starknet_getClassHashAt", |_| true, error(20))), "no contract");
}

/// S3: another contract's "no such order" proves nothing.
#[test]
fn absent_is_said_by_the_contract_with_the_token_alone() {
    for id in READABLE {
        assert_eq!(read_of(id, &Chain { order: None, ..chain_of(id) }).unwrap().state, HtlcState::Absent);
        assert_unclear(read_of(id, &Chain { order: None, token: Felt::ONE, ..chain_of(id) }), "token");
    }
}

/// S4: an event belongs to a block of the chain that was read.
#[test]
fn an_event_is_of_the_block_of_its_change() {
    let own = chain_of(NEWEST).events.remove(0);
    let with = |events: Vec<Value>| read_of(NEWEST, &Chain { events, ..chain_of(NEWEST) });
    let changed = |member: &str, value: Value| {
        let mut event = own.clone();
        event[member] = value;
        event
    };
    assert_unclear(with(vec![changed("block_hash", json!(hash_of(7)))]), "no event");
    assert!(matches!(with(vec![changed("block_hash", json!(hash_of(LATEST)))]), Err(Fault::Malformed(_))));
    assert!(matches!(with(vec![changed("block_number", json!(INITIATED + 1))]), Err(Fault::Malformed(_))));
    for events in [vec![], vec![own.clone(), own.clone()]] {
        assert_unclear(with(events), "no event");
    }
    let other = chain_of(NEWEST);
    let HtlcState::Locked(locked) = with(vec![other.initiated(SecretHash([7; 32]), destination(NEWEST).amount)]).unwrap().state else {
        panic!()
    };
    assert_eq!(locked.secret_hash, Some(SecretHash([7; 32])), "the chain's own hash, which the terms are compared with");
}

/// S5: a redemption with a secret of another hash contradicts the order's id.
#[test]
fn a_foreign_secret_is_a_fault() {
    for id in READABLE {
        let chain = chain_of(id).redeemed(&[0x11; 32]);
        assert!(matches!(read_of(id, &chain), Err(Fault::Malformed(_))), "{id}");
        // A hash that is not that of the secret.
        let chain = chain_of(id);
        let mut data = redeemed_data(chain.generation, &SECRET);
        data[0] += Felt::ONE;
        let event = chain.event(&[read::REDEEMED, chain.id], &data, LATEST - 95);
        assert!(matches!(read_of(id, &chain.ended(LATEST - 95, vec![event])), Err(Fault::Malformed(_))), "{id}");
    }
}

/// S6: a mark is the chain's, and counts only if the order was the same at the marked block.
#[test]
fn final_is_what_was_the_same_when_l1_accepted_it() {
    let is_final = |chain: &Chain| {
        let finding = read_usual(chain).unwrap();
        assert!(matches!(finding.state, HtlcState::Locked(_)) && finding.seen.is_safe);
        finding.seen.is_finalized
    };
    assert!(is_final(&chain_of(USUAL)));
    assert!(!is_final(&Chain { on_l1: None, ..chain_of(USUAL) }));
    assert!(!is_final(&Chain { on_l1: Some(INITIATED - 1), ..chain_of(USUAL) }));
    let mark = |change: &dyn Fn(&mut Value)| {
        let mut block = chain_of(USUAL).block(INITIATED + 10);
        change(&mut block);
        lying(chain_of(USUAL), "starknet_getBlockWithTxHashes", |params| params["block_id"] == "l1_accepted", block)
    };
    assert!(!is_final(&mark(&|block| block["status"] = json!("ACCEPTED_ON_L2"))));
    assert!(!is_final(&mark(&|block| block["block_number"] = json!(LATEST + 1))));
    assert!(!is_final(&mark(&|block| block["block_number"] = json!(LATEST))), "another block at the same height");
    // An end is final once the contract shows it at the marked block.
    for (on_l1, expected) in [(LATEST - 96, true), (INITIATED - 1, false)] {
        let chain = Chain { on_l1: Some(on_l1), ..chain_of(USUAL).redeemed(&SECRET) };
        assert_eq!(read_usual(&chain).unwrap().seen.is_finalized, expected);
    }
}

/// S7: pages are followed, but not for ever.
#[test]
fn pages_are_followed_to_a_limit() {
    for id in READABLE {
        for (empty, rounds, is_found) in [(0, 3, true), (15, 18, true), (16, 18, false), (1_000, 18, false)] {
            let chain = Chain { empty_pages: Some(empty), ..chain_of(id).redeemed(&SECRET) };
            let drive = drive::<Htlc>(&destination(id), &Known::default(), |_, _, request| chain.answer(request));
            assert_eq!((drive.asked.len(), MAX_ROUNDS), (rounds, 18), "{id} {empty}");
            let state = drive.outcome.unwrap().into_output().state;
            assert_eq!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), is_found, "{state:?}");
            assert_eq!(matches!(state, HtlcState::Unclear(_)), !is_found, "{state:?}");
        }
        // On an endless list, a refund may be contradicted. A secret proves itself.
        let endless = |chain: Chain| {
            let page = json!({"events": [], "continuation_token": "next"});
            let first = json!({"events": chain.events, "continuation_token": "next"});
            chain.lying(move |_, method, params| {
                let is_first = params["filter"]["continuation_token"].is_null();
                (method == "starknet_getEvents").then(|| if is_first { first.clone() } else { page.clone() })
            })
        };
        assert_unclear(read_of(id, &endless(chain_of(id).refunded())), "too many pages");
        assert!(matches!(read_of(id, &endless(chain_of(id).redeemed(&SECRET))).unwrap().state, HtlcState::Redeemed { .. }));
        let mut both = chain_of(id).redeemed(&SECRET);
        both.events.push(both.event(&[read::REFUNDED, both.id], &[], LATEST - 95));
        assert_unclear(read_of(id, &both), "more than once");
        let mut twice = chain_of(id).redeemed(&SECRET);
        twice.events = vec![twice.events[0].clone(); 2];
        assert_unclear(read_of(id, &twice), "more than once");
        twice.events = vec![twice.events[0].clone(); 9];
        assert!(matches!(read_of(id, &twice), Err(Fault::Malformed(_))));
        assert_unclear(read_of(id, &Chain { events: Vec::new(), ..chain_of(id).refunded() }), "no event");
    }
}

/// E10: a progress that is not known is not an end.
#[test]
fn an_unknown_layout_is_unclear() {
    for (id, field, value) in [(OLDEST, 0, 2), (USUAL, 0, INITIATED - 1), (NEWEST, 4, 0), (USUAL, 1, 0), (NEWEST, 3, 0)] {
        let mut chain = chain_of(id);
        chain.order.as_mut().unwrap()[field] = Felt::from(value);
        assert!(matches!(read_of(id, &chain).unwrap().state, HtlcState::Unclear(_)), "{id} {field}");
    }
    for answer in [json!([]), json!(vec!["0x1"; 6]), json!(vec!["0x1"; 8]), error(20), error(21), error(40)] {
        let is_order = |params: &Value| params["request"]["entry_point_selector"] == hex(read::GET_ORDER);
        assert!(matches!(read_usual(&lying(chain_of(USUAL), "starknet_call", is_order, answer)).unwrap().state, HtlcState::Unclear(_)));
    }
    let mut unpinned = destination(USUAL);
    unpinned.generation = None;
    let chain = chain_of(USUAL);
    let drive = drive::<Htlc>(&unpinned, &Known::default(), |_, _, request| chain.answer(request));
    assert_eq!(drive.asked.len(), 1);
    assert_unclear(drive.outcome.map(Observation::into_output), "not known");
}

/// E11: what happened after the newest block has not happened.
#[test]
fn an_order_from_the_future_is_a_fault() {
    for id in READABLE {
        let mut chain = chain_of(id);
        chain.order.as_mut().unwrap()[3] = Felt::from(LATEST + 1);
        assert!(matches!(read_of(id, &chain), Err(Fault::Malformed(_))), "{id}");
    }
    let chain = chain_of(USUAL).ended(LATEST + 1, Vec::new());
    assert!(matches!(read_usual(&chain), Err(Fault::Malformed(_))));
}

/// G2, G3: each endpoint is asked alone, and an endpoint counts once.
#[test]
fn a_question_is_put_to_each_endpoint_alone() {
    let observe = |latest: u64, holds: Option<U256>| {
        let chain = chain_of(USUAL);
        let chain = Chain { latest, holds: holds.unwrap_or(chain.holds), ..chain };
        drive::<Htlc>(&destination(USUAL), &Known::default(), |_, _, request| chain.answer(request)).outcome
    };
    let left = |observation: &Observation<Htlc>| match &observation.output().state {
        HtlcState::Locked(locked) if locked.covered => Ok(locked.left()),
        _ => Err("not covered"),
    };
    let timelock = destination(USUAL).timelock;
    let mut quorum = Quorum::new(["a", "b", "c"], 2).unwrap();
    quorum.hear("a", observe(LATEST, Some(U256::ZERO)));
    quorum.hear("b", observe(LATEST, None));
    quorum.hear("b", observe(LATEST, None));
    assert!(matches!(quorum.ask(left), Verdict::Open(_)), "one endpoint is not two");
    quorum.hear("c", observe(LATEST - 20, None));
    let Verdict::Stands(left, _) = quorum.ask(left) else { panic!() };
    assert_eq!(left, timelock - 99, "the worst of the best two");
    assert!(Quorum::<Observation<Htlc>>::new(["a", "a"], 2).is_err());
}

type Change = fn(&mut HtlcTerms);

/// A stamp names everything that is read after the first round.
#[test]
fn a_stamp_is_of_one_order_at_one_block() {
    let stamp = |terms: &HtlcTerms, known: &Known, chain: &Chain| {
        let mut reader = Reader::<Htlc>::new(terms, known).unwrap();
        assert_eq!(reader.stamp(), None);
        let Next::Ask(requests) = reader.next() else { panic!() };
        let answers: Vec<_> = requests.iter().map(|request| chain.answer(request)).collect();
        reader.answer(&answers).unwrap();
        reader.stamp().unwrap()
    };
    let (terms, none) = (destination(USUAL), Known::default());
    let first = stamp(&terms, &none, &chain_of(USUAL));
    assert_eq!(stamp(&terms, &none, &chain_of(USUAL)), first);
    let chain = chain_of(USUAL);
    let observation = drive::<Htlc>(&terms, &none, |_, _, request| chain.answer(request)).outcome.unwrap();
    assert_eq!(observation.stamp(), Some(first.as_slice()));
    let mut others = vec![
        stamp(&terms, observation.known(), &chain_of(USUAL)),
        stamp(&terms, &none, &Chain { latest: LATEST + 1, ..chain_of(USUAL) }),
        stamp(&terms, &none, &Chain { on_l1: Some(INITIATED + 11), ..chain_of(USUAL) }),
        stamp(&terms, &none, &Chain { on_l1: None, ..chain_of(USUAL) }),
    ];
    let changes: [Change; 4] = [
        |terms| terms.swap_id_recomputed = false,
        |terms| terms.secret_hash = SecretHash([1; 32]),
        |terms| terms.timelock += 1,
        |terms| terms.amount += U256::ONE,
    ];
    for change in changes {
        let mut changed = terms.clone();
        change(&mut changed);
        others.push(stamp(&changed, &none, &chain_of(USUAL)));
    }
    others.sort();
    others.dedup();
    assert!(others.len() == 8 && !others.contains(&first));
}

#[test]
fn terms_that_cannot_be_read_are_refused() {
    let changes: [(Change, &str); 5] = [
        (|terms| terms.htlc = None, "/htlc"),
        (|terms| terms.token = None, "/token"),
        (|terms| terms.token = Some("me".to_owned()), "/token"),
        (|terms| terms.swap_id = "0x".to_owned() + &"f".repeat(64), "/swap_id"),
        (|terms| terms.network = countersign_core::Network::Evm(1), "/network"),
    ];
    for (change, at) in changes {
        let mut terms = destination(USUAL);
        change(&mut terms);
        assert_eq!(Reader::<Htlc>::new(&terms, &Known::default()).unwrap_err().location(), at);
    }
}
