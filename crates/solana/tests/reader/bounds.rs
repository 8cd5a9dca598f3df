//! Tests the last value that is accepted, and the first that is refused.

use countersign_core::U256;
use countersign_core::chains::Network;
use countersign_core::reader::{Sending, Submission};
use countersign_solana::address::{SYSTEM_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account};
use countersign_solana::read;
use countersign_solana::reader::{
    Balance, BalanceQuery, Context, ContextQuery, HeadQuery, NewestBlock, Program as Described, ProgramQuery, Sender, wallet_context,
};
use countersign_testkit::chain::solana::{Account, RENT};

use super::others::{devnet, drive_on, empty, signed};
use super::*;

/// The genesis block of a local cluster is another one at each start.
#[test]
fn a_local_cluster_is_every_cluster_but_the_public_ones() {
    let local = HeadQuery::new(&Network::Solana("localnet".to_owned()));
    let read = |genesis: &'static str| drive_on::<NewestBlock>(&local, &Chain { genesis, ..empty() }).outcome.map(|_| ());
    for own in ["11111111111111111111111111111111", "SysvarC1ock11111111111111111111111111111111"] {
        assert_eq!(read(own), Ok(()), "{own}");
    }
    for public in [
        "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
        "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
        "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY",
    ] {
        assert!(matches!(read(public), Err(Fault::WrongChain { .. })), "{public}");
    }
    assert!(matches!(read("local"), Err(Fault::Malformed(_))), "not a hash");
}

/// Some endpoints answer from a copy of the accounts that is older than the slot that they report.
#[test]
fn the_clock_is_at_most_150_slots_from_the_answer() {
    for (slot, is_near) in [(FINALIZED - 151, false), (FINALIZED - 150, true), (FINALIZED + 150, true), (FINALIZED + 151, false)] {
        let mut chain = empty();
        chain.account_mut(read::CLOCK).data = [slot, 0, 0, 0, NOW].map(u64::to_le_bytes).concat();
        let head = drive_on::<NewestBlock>(&HeadQuery::new(&devnet()), &chain).outcome.ok();
        assert_eq!(head.map(|head| head.output().height.get()), is_near.then_some(slot), "{slot}");
    }
}

#[test]
fn an_account_has_at_most_3_mib() {
    let (program, code) = (Address::from([0x54; 32]), Address::from([0x55; 32]));
    let loader = "BPFLoaderUpgradeab1e11111111111111111111111".parse().unwrap();
    let described = |length: usize| {
        let mut chain = empty();
        let mut data = [&[3, 0, 0, 0], 77_u64.to_le_bytes().as_slice(), &[0; 33]].concat();
        data.resize(length, 0);
        chain.accounts.insert(code, Account { lamports: 1, owner: loader, data });
        let data = [&[2, 0, 0, 0], code.as_ref()].concat();
        chain.accounts.insert(program, Account { lamports: 1, owner: loader, data });
        drive_on::<Described>(&ProgramQuery::new(&devnet(), program, None), &chain).outcome.map(Observation::into_output)
    };
    let limit = 3 * 1024 * 1024;
    assert_eq!(described(limit).unwrap().deploy_slot, Some(77));
    assert!(matches!(described(limit + 1), Err(Fault::Malformed(refusal)) if refusal.to_string().contains("at most 3145728 bytes")));
}

/// Anyone can send lamports to the address of a swap. Anything else there is an unknown state, and not "not funded".
#[test]
fn only_an_account_of_nothing_but_lamports_is_taken_for_none() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, _, address) = parts(&terms);
        let with = |owner: Address, data: &[u8]| {
            let mut chain = Chain::empty(&terms);
            chain.accounts.insert(address, Account { lamports: RENT, owner, data: data.to_vec() });
            finding(&chain, &terms).state
        };
        assert_eq!(with(SYSTEM_PROGRAM, &[]), HtlcState::Absent, "{form}");
        assert!(is_unclear(&with(htlc.program, &[])), "{form}: the program's");
        assert!(is_unclear(&with(SYSTEM_PROGRAM, &[0; 80])), "{form}: with data");
    }
}

#[test]
fn a_token_balance_is_the_sum_of_what_the_owner_has_of_the_mint() {
    let (owner, mint, other) = (Address::from([0x21; 32]), Address::from([0x22; 32]), Address::from([0x23; 32]));
    let balance = |held: Account| {
        let mut chain = empty();
        let extended = Account { owner: TOKEN_2022_PROGRAM, ..held };
        let classic = token_account(mint, owner, 12);
        for (program, account) in [(TOKEN_PROGRAM, classic), (TOKEN_2022_PROGRAM, extended)] {
            chain.accounts.insert(associated_token_account(owner, mint, program).unwrap(), account);
        }
        let query = BalanceQuery::new(&devnet(), owner, Some(mint));
        drive_on::<Balance>(&query, &chain).outcome.unwrap().into_output().0
    };
    assert_eq!(balance(token_account(mint, owner, 30)), U256::from(42));
    for held in [token_account(other, owner, 30), token_account(mint, other, 30), token_account(other, other, 30), system_account(30)] {
        assert_eq!(balance(held), U256::from(12));
    }
}

/// A swap that was initiated in the newest slot of the bank is not from the future.
#[test]
fn a_swap_of_the_newest_slot_is_locked() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, swap, _) = parts(&terms);
        let mut chain = Chain::with_swap(&terms, &swap, FINALIZED + swap.timelock);
        chain.mined = vec![mined(FINALIZED, &initiate(&htlc, &swap))];
        let Finding { state, seen, .. } = finding(&chain, &terms);
        assert_eq!((locked(&state).elapsed, seen.depth), (NEWEST - FINALIZED, 1), "{form}");
    }
}

/// Up to 256 transactions are read without a gap, so that the end among the last ones is that of the swap.
#[test]
fn the_end_after_256_transactions_is_final_and_after_257_it_is_not() {
    for form in [FORMS[1], FORMS[3]] {
        let terms = of(form);
        let (_, _, address) = parts(&terms);
        for (between, is_known) in [(254, true), (255, false)] {
            let mut chain = refunded(&terms);
            let end = chain.mined.pop().unwrap();
            chain.mined.extend(crowd(INITIATED + 1, address, between));
            chain.mined.push(end);
            let Finding { state, seen, .. } = finding(&chain, &terms);
            assert_eq!(matches!(state, HtlcState::Refunded { .. }) && seen.is_finalized, is_known, "{form} {between}: {state:?}");
            assert_eq!(is_unclear(&state), !is_known, "{form} {between}: {state:?}");
        }
    }
}

/// A sent transaction may contain the secret, so only its id is shown.
#[test]
fn a_transaction_that_is_sent_is_shown_by_its_id() {
    let submission: Submission = signed();
    let sender = Sender::decode(&submission, &Known::default()).unwrap();
    assert_eq!(format!("{sender:?}"), format!("Sender({})", submission.id));
}

/// The prices of 100 slots are the numbers from 1 to 100, in any order.
#[test]
fn the_price_is_the_one_at_the_percentile() {
    let price = |fees: Vec<u64>, percentile: usize| {
        let chain = Chain { fees, ..empty() };
        let offer = drive_on::<Context>(&ContextQuery::new(&devnet(), &[], percentile), &chain).outcome.unwrap().into_output();
        wallet_context(&[offer], 1, false).unwrap().priority_fee.map(|fee| fee.compute_unit_price)
    };
    let fees: Vec<_> = (51..=100).chain((1..=50).rev()).collect();
    for (percentile, expected) in [(0, 1), (25, 26), (50, 51), (90, 91), (99, 100), (100, 100), (usize::MAX, 100)] {
        assert_eq!(price(fees.clone(), percentile), Some(expected), "{percentile}");
    }
    assert_eq!((price(vec![7], 50), price(vec![7, 9, 8], 50)), (Some(7), Some(8)));
    assert_eq!((price(Vec::new(), 50), price(vec![0; 150], 90)), (None, None));
}

/// The account of a swap tells the generation, if it is the program's.
#[test]
fn a_program_is_described_by_its_own_swap_account_alone() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, _, address) = parts(&terms);
        let mut chain = Chain::funded(&terms);
        let query = ProgramQuery::new(&terms.network, htlc.program, Some(address));
        assert_eq!(drive_on::<Described>(&query, &chain).outcome.unwrap().output().generation, Some(htlc.generation), "{form}");
        chain.account_mut(address).owner = Address::from([0x44; 32]);
        assert_eq!(drive_on::<Described>(&query, &chain).outcome.unwrap().output().generation, None, "{form}");
    }
}
