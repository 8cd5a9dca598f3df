//! Tests what honest endpoints show of an order.

use countersign_core::reader::{Agree, Known, Next};
use countersign_core::{EvmGeneration, Finding, Generation, HtlcState, HtlcTerms, Network, SecretHash};
use countersign_evm::reader::{Htlc, HtlcReader};
use countersign_testkit::chain::evm::{Evm as EvmChain, INITIATED, LATEST, NOW, SECRET, hash_of};

use super::{chain, drive, leg, leg_with, read, unbound};

#[test]
fn an_open_order_is_read_in_three_rounds() {
    let terms = leg();
    let (observation, asked) = drive::<Htlc>(&terms, &Known::default(), |_, _, request| chain().answer(request));
    let observation = observation.unwrap();
    // Each round also asks for the identity.
    assert_eq!(asked, [1 + 3, 1 + 6, 1 + 1]);
    assert_eq!((observation.subject(), observation.known().height().get()), (&terms, LATEST));
    let Finding { state, origin, seen, .. } = observation.output();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((&locked.initiator, &locked.redeemer), (&terms.initiator, &terms.redeemer));
    assert_eq!((locked.amount, locked.timelock, locked.covered), (terms.amount, terms.timelock, true));
    // The elapsed time, the height and the time are the chain's own (G1, G2).
    assert_eq!((locked.elapsed, locked.least_elapsed, seen.height.get(), seen.head_time.as_secs()), (99, 99, LATEST, NOW - 5));
    assert_eq!((seen.hash.as_str(), seen.depth), (hash_of(LATEST).to_string().as_str(), 100));
    assert_eq!((seen.is_safe, seen.is_finalized, seen.agreed, seen.needed), (true, true, 1, 1));
    // Endpoints agree on the hash of the funding's block (E7).
    assert_eq!(origin.as_slice(), hash_of(INITIATED).as_slice());
}

#[test]
fn an_order_that_has_ended_is_read_in_three_rounds() {
    let terms = leg();
    for (chain, is_redeemed) in [(chain().redeemed(&terms, SECRET), true), (chain().refunded(&terms), false)] {
        let (observation, asked) = drive::<Htlc>(&terms, &Known::default(), |_, _, request| chain.answer(request));
        let Finding { state, origin, .. } = observation.unwrap().into_output();
        assert_eq!(asked, [1 + 3, 1 + 6, 1 + 1]);
        let block = chain.order.unwrap()[5].to::<u64>();
        assert_eq!(origin.as_slice(), hash_of(block).as_slice());
        let transaction = Some(hash_of(block + 1_000_000_000).to_string());
        let expected =
            if is_redeemed { HtlcState::Redeemed { secret: Some(SECRET), transaction } } else { HtlcState::Refunded { transaction } };
        assert_eq!(state, expected);
    }
}

#[test]
fn an_order_that_does_not_exist_takes_two_rounds() {
    let chain = EvmChain { order: None, ..chain() };
    let (observation, asked) = drive::<Htlc>(&leg(), &Known::default(), |_, _, request| chain.answer(request));
    assert_eq!((observation.unwrap().into_output().state, asked), (HtlcState::Absent, vec![4, 7]));
}

#[test]
fn terms_that_name_no_order_are_refused() {
    type Change = (fn(&mut HtlcTerms), &'static str);
    let changes: [Change; 4] = [
        (|terms| terms.htlc = None, "/htlc"),
        (|terms| terms.token = Some("USDC".to_owned()), "/token"),
        (|terms| terms.swap_id = "0x12".to_owned(), "/swap_id"),
        (|terms| terms.network = Network::Tron(1), "/network"),
    ];
    for (change, at) in changes {
        assert_eq!(HtlcReader::new(&leg_with(change), &Known::default()).unwrap_err().location(), at);
    }
}

#[test]
fn endpoints_at_different_heights_agree() {
    let ahead = EvmChain { latest: LATEST + 3, time: NOW + 31, ..chain() };
    let (one, other) = (read(&chain(), &leg()).unwrap(), read(&ahead, &leg()).unwrap());
    assert_ne!(one, other);
    assert_eq!(one.key(), other.key());
}

/// The stamp identifies what is still to be read. It changes with the order and with each of the three blocks.
#[test]
fn a_stamp_is_of_one_order_at_three_blocks() {
    let stamp = |chain: &EvmChain, terms: &HtlcTerms| {
        let mut reader = HtlcReader::new(terms, &Known::default()).unwrap();
        assert_eq!(reader.stamp(), None);
        let Next::Ask(requests) = reader.next() else { panic!("{reader:?}") };
        let answers: Vec<_> = requests.iter().map(|request| chain.answer(request)).collect();
        reader.answer(&answers).unwrap();
        reader.stamp().unwrap()
    };
    let first = stamp(&chain(), &leg());
    let observation = drive::<Htlc>(&leg(), &Known::default(), |_, _, request| chain().answer(request)).0.unwrap();
    assert_eq!((stamp(&chain(), &leg()), observation.stamp()), (first.clone(), Some(first.as_slice())));
    let other_id = leg_with(|terms| terms.swap_id = "11".repeat(32));
    let other_hash = leg_with(|terms| terms.secret_hash = SecretHash([1; 32]));
    let pinned = leg_with(|terms| terms.generation = Some(Generation::Evm(EvmGeneration::V3)));
    for terms in [other_id, other_hash, pinned, unbound(), leg_with(|terms| terms.token = None)] {
        assert_ne!(stamp(&chain(), &terms), first);
    }
    for chain in [
        EvmChain { latest: LATEST + 1, ..chain() },
        EvmChain { safe: None, ..chain() },
        EvmChain { finalized: Some(LATEST - 65), ..chain() },
    ] {
        assert_ne!(stamp(&chain, &leg()), first);
    }
}
