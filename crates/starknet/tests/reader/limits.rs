//! Tests how much an endpoint may return, and reading at the limits: in the newest block, and at a block that is only
//! partly marked.

use countersign_core::reader::{Answer, Fault, Known, Observation, Request};
use countersign_core::{Finding, HtlcState, HtlcTerms};
use countersign_starknet::reader::{
    Amount, AmountQuery, Context, Contract, ContractQuery, HeadQuery, Htlc, NewestBlock, STRK, Sender, chain_id,
};
use countersign_starknet::{Felt, read};
use countersign_testkit::chain::starknet::{CLASS, Chain, INITIATED, LATEST, READABLE, SECRET, chain_of, hash_of, hex, redeemed_data};
use serde_json::{Value, json};

use crate::reader::{NEWEST, USUAL, assert_unclear, destination, drive, error, lying, params, read_of, read_usual};

fn is_malformed(outcome: &Result<Finding, Fault>) -> bool {
    matches!(outcome, Err(Fault::Malformed(_)))
}

#[test]
fn at_most_eight_events_of_an_order_are_read() {
    for pages in [None, Some(0)] {
        let with = |count| {
            let chain = chain_of(USUAL).redeemed(&SECRET);
            Chain { events: vec![chain.events[0].clone(); count], empty_pages: pages, ..chain }
        };
        assert_unclear(read_usual(&with(8)), "more than once");
        assert!(is_malformed(&read_usual(&with(9))), "{pages:?}");
    }
}

#[test]
fn a_continuation_token_has_at_most_1024_bytes() {
    for (length, is_followed) in [(1_024, true), (1_025, false)] {
        let token = "x".repeat(length);
        let chain = chain_of(USUAL).redeemed(&SECRET);
        let events = chain.events.clone();
        let chain = chain.lying(move |_, method, params| {
            let is_next = params["filter"]["continuation_token"] == json!(token);
            let page = if is_next { json!({ "events": events }) } else { json!({"events": [], "continuation_token": token}) };
            (method == "starknet_getEvents").then_some(page)
        });
        let outcome = read_usual(&chain);
        assert_eq!(matches!(&outcome, Ok(Finding { state: HtlcState::Redeemed { .. }, .. })), is_followed, "{outcome:?}");
        assert_eq!(is_malformed(&outcome), !is_followed, "{outcome:?}");
    }
}

#[test]
fn a_call_returns_at_most_64_felts() {
    let with = |count| {
        let is_order = |params: &Value| params["request"]["entry_point_selector"] == hex(read::GET_ORDER);
        lying(chain_of(USUAL), "starknet_call", is_order, json!(vec!["0x1"; count]))
    };
    assert_unclear(read_usual(&with(64)), "layout");
    assert!(is_malformed(&read_usual(&with(65))));
}

/// An event belongs to the order and the contract that were asked for, and has the name that was asked for.
#[test]
fn an_event_of_another_order_or_kind_is_a_fault() {
    for id in READABLE {
        let chain = chain_of(id);
        let data = redeemed_data(chain.generation, &SECRET);
        let ended = |keys: &[Felt], data: &[Felt]| {
            let event = chain.event(keys, data, LATEST - 95);
            read_of(id, &chain_of(id).ended(LATEST - 95, vec![event]))
        };
        assert!(matches!(ended(&[read::REDEEMED, chain.id], &data).unwrap().state, HtlcState::Redeemed { .. }), "{id}");
        assert!(matches!(ended(&[read::REFUNDED, chain.id], &[]).unwrap().state, HtlcState::Refunded { .. }), "{id}");
        for (keys, data) in [
            (&[read::REDEEMED, Felt::ONE][..], &data[..]),
            (&[read::REFUNDED, Felt::ONE], &[]),
            (&[read::TRANSFER, chain.id], &[]),
            (&[], &[]),
        ] {
            assert!(is_malformed(&ended(keys, data)), "{id} {keys:?}");
        }
        // A funding does not say how the order ended.
        let mut funding = chain.initiated(destination(id).secret_hash, destination(id).amount);
        funding["block_number"] = json!(LATEST - 95);
        funding["block_hash"] = json!(hash_of(LATEST - 95));
        assert!(is_malformed(&read_of(id, &chain_of(id).ended(LATEST - 95, vec![funding]))), "{id}");
    }
}

/// Only these errors come from the contract. Any other error proves nothing about it.
#[test]
fn a_call_that_failed_because_of_the_node_says_nothing_about_the_contract() {
    let is_order = |params: &Value| params["request"]["entry_point_selector"] == hex(read::GET_ORDER);
    for code in [20, 21, 40] {
        assert_unclear(read_usual(&lying(chain_of(USUAL), "starknet_call", is_order, error(code))), "does not have the function");
    }
    for code in [1, 24, 41, 63, -32_603] {
        let outcome = read_usual(&lying(chain_of(USUAL), "starknet_call", is_order, error(code)));
        assert!(matches!(outcome, Err(Fault::Rpc(_))), "{code}: {outcome:?}");
    }
}

#[test]
fn what_happened_in_the_newest_block_has_happened() {
    for id in READABLE {
        let chain = Chain { latest: INITIATED, on_l1: Some(INITIATED), ..chain_of(id) };
        let Finding { state, seen, .. } = read_of(id, &chain).unwrap();
        let HtlcState::Locked(locked) = state else { panic!("{id}: {state:?}") };
        assert_eq!((locked.elapsed, seen.depth, seen.is_safe, seen.is_finalized), (0, 1, true, true), "{id}");

        let chain = chain_of(id);
        let event = chain.event(&[read::REFUNDED, chain.id], &[], LATEST);
        let chain = Chain { on_l1: Some(LATEST), ..chain.ended(LATEST, vec![event]) };
        let Finding { state, seen, .. } = read_of(id, &chain).unwrap();
        assert!(matches!(state, HtlcState::Refunded { .. }), "{id}: {state:?}");
        assert_eq!((seen.depth, seen.is_safe, seen.is_finalized), (1, true, true), "{id}");
    }
}

/// Nothing has changed, so that no block can be safe or final.
#[test]
fn an_order_that_is_absent_or_unclear_has_no_mark() {
    let without_order = Chain { order: None, ..chain_of(USUAL) };
    let other_token = Chain { token: Felt::ONE, ..chain_of(USUAL) };
    for chain in [without_order, other_token] {
        let Finding { state, seen, .. } = read_usual(&chain).unwrap();
        assert!(matches!(state, HtlcState::Absent | HtlcState::Unclear(_)), "{state:?}");
        assert_eq!((seen.depth, seen.is_safe, seen.is_finalized), (0, false, false), "{state:?}");
    }
}

#[test]
fn a_funding_is_final_if_its_block_and_the_order_at_the_mark_say_so() {
    let funding = |on_l1| Chain { on_l1, ..chain_of(USUAL) }.block(INITIATED);
    let is_final = |block: Value| {
        let is_funding = |params: &Value| params["block_id"]["block_number"] == INITIATED;
        read_usual(&lying(chain_of(USUAL), "starknet_getBlockWithTxHashes", is_funding, block)).unwrap().seen.is_finalized
    };
    assert!(is_final(funding(Some(INITIATED))));
    assert!(!is_final(funding(None)), "L1 has not accepted the block");
}

/// A class is checked for one contract and one generation.
#[test]
fn a_remembered_class_says_nothing_about_another_contract_or_generation() {
    let chain = chain_of(USUAL);
    let first = drive::<Htlc>(&destination(USUAL), &Known::default(), |_, _, request| chain.answer(request)).outcome.unwrap();
    let read = |terms: &HtlcTerms, chain: &Chain| {
        let drive = drive::<Htlc>(terms, first.known(), |_, _, request| chain.answer(request));
        let is_asked = drive.asked[1].iter().any(|request| crate::reader::method(request) == "starknet_getClassAt");
        (drive.outcome.map(Observation::into_output), is_asked)
    };
    assert!(!read(&destination(USUAL), &chain).1);
    // Another contract, with another class.
    let other = Chain { class: CLASS + 1, ..chain_of(NEWEST) };
    assert_ne!(chain.htlc, other.htlc);
    let (outcome, is_asked) = read(&destination(NEWEST), &other);
    assert!(matches!(outcome.unwrap().state, HtlcState::Locked(_)) && is_asked);
    // The same contract, pinned as another generation.
    let mut terms = destination(USUAL);
    terms.generation = destination(NEWEST).generation;
    let (outcome, is_asked) = read(&terms, &chain);
    assert_unclear(outcome, "interface");
    assert!(is_asked);
}

/// So that an endpoint which falls behind later is noticed.
#[test]
fn every_reading_of_the_newest_block_remembers_its_height() {
    let chain = chain_of(USUAL);
    let chain_id = chain_id(&destination(USUAL).network).unwrap();
    let answer = |_, _, request: &Request| chain.answer(request);
    let none = Known::default();
    let (head, contract) = (HeadQuery { chain_id }, ContractQuery { chain_id, address: chain.htlc });
    let sender = Sender { chain_id, address: Felt::from(5), calls: Some(Vec::new()) };
    let learned = [
        drive::<NewestBlock>(&head, &none, answer).outcome.unwrap().known().height(),
        drive::<Contract>(&contract, &none, answer).outcome.unwrap().known().height(),
        drive::<Context>(&sender, &none, answer).outcome.unwrap().known().height(),
    ];
    assert_eq!(learned.map(|height| height.get()), [LATEST; 3]);
    let known = |height: u64| Known::default().with_height(height.into());
    let went_back = |height: u64| Fault::WentBack { before: height.into(), now: LATEST.into() };
    assert!(drive::<Context>(&sender, &known(LATEST + 30), answer).outcome.is_ok());
    assert_eq!(drive::<Context>(&sender, &known(LATEST + 31), answer).outcome.unwrap_err(), went_back(LATEST + 31));
    assert_eq!(drive::<Contract>(&contract, &known(LATEST + 31), answer).outcome.unwrap_err(), went_back(LATEST + 31));
    assert_eq!(drive::<NewestBlock>(&head, &known(LATEST + 31), answer).outcome.unwrap_err(), went_back(LATEST + 31));
}

#[test]
fn an_allowance_is_that_of_the_spender() {
    let chain = Chain { allowance: countersign_core::U256::from(77), ..chain_of(USUAL) };
    let chain_id = chain_id(&destination(USUAL).network).unwrap();
    let query = |spender| AmountQuery { chain_id, token: STRK, owner: Felt::from(5), spender };
    for (spender, selector, calldata, amount) in [
        (None, read::BALANCE_OF, json!(["0x5"]), chain.balance),
        (Some(Felt::from(6)), read::ALLOWANCE, json!(["0x5", "0x6"]), chain.allowance),
    ] {
        let drive = drive::<Amount>(&query(spender), &Known::default(), |_, _, request| chain.answer(request));
        let asked = params(drive.asked[0].last().unwrap());
        assert_eq!((&asked["request"]["entry_point_selector"], &asked["block_id"]), (&json!(hex(selector)), &json!("latest")));
        assert_eq!((&asked["request"]["contract_address"], &asked["request"]["calldata"]), (&json!(hex(STRK)), &calldata));
        assert_eq!(drive.outcome.unwrap().output().0, amount);
    }
    let other = Answer::result(*b"[\"0x1\", \"0x0\", \"0x0\"]");
    let lie = |_, place, request: &Request| if place == 2 { other.clone() } else { chain.answer(request) };
    assert!(drive::<Amount>(&query(None), &Known::default(), lie).outcome.is_err());
}
