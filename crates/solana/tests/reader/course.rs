//! The course of a swap: what the transactions that name its account prove, and what they do not.

use countersign_core::Code;
use countersign_core::chains::UnixTime;
use countersign_solana::htlc::Token;
use countersign_solana::solana_instruction::Instruction;
use countersign_testkit::chain::solana::{Account, RENT, in_version_1, mined_inside, stored};

use super::*;

/// A cluster on which these instructions created and ended swaps, ten slots apart. The account is gone.
fn past(terms: &HtlcTerms, instructions: &[&Instruction]) -> Chain {
    let slots = (INITIATED..).step_by(10);
    let mined = slots.zip(instructions).map(|(slot, instruction)| mined(slot, instruction)).collect();
    Chain { mined, ..Chain::empty(terms) }
}

type Change = fn(&mut HtlcAccount);

fn why(state: &HtlcState) -> &str {
    let HtlcState::Unclear(why) = state else { panic!("{state:?}") };
    why
}

#[test]
fn a_secret_of_another_hash_is_a_fault() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, swap, _) = parts(&terms);
        let redeem = htlc.redeem(&swap, Address::from(SPONSOR), &[7; 32]).unwrap();
        assert!(matches!(fault(&Chain::ended(&terms, &redeem), &terms), Fault::Malformed(refusal) if refusal.code() == Code::SecretWrong));
    }
}

/// An open account cannot be created again, so the first swap ended in a transaction that the endpoint does not show. What ended the second
/// one says nothing about the first, except for a secret.
#[test]
fn an_end_after_a_missing_one_is_not_that_of_the_swap() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, swap, _) = parts(&terms);
        let made = initiate(&htlc, &swap);
        let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();
        let redeem = htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap();
        assert!(is_unclear(&finding(&past(&terms, &[&made, &made, &refund]), &terms).state), "{form}");
        let Finding { state, seen, .. } = finding(&past(&terms, &[&made, &made, &redeem]), &terms);
        assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }) && !seen.is_finalized, "{form}: {state:?}");
    }
}

/// A node that has dropped the blocks of a swap lists nothing for an account that was closed.
#[test]
fn a_node_that_has_dropped_blocks_since_the_order_was_created_does_not_show_an_unfunded_swap() {
    for form in FORMS {
        let mut terms = of(form);
        let (_, _, address) = parts(&terms);
        // The chain's clock is at NOW - 20. No more slots than at the fastest pace, and 150 for nodes that differ.
        let since = FINALIZED - 1_000_000 / terms.pace.fastest - 150;
        let mut dusted = Chain::empty(&terms);
        dusted.mined.push(dust(INITIATED, address));
        for chain in [Chain::empty(&terms), dusted] {
            for (created, oldest) in [(Some(NOW - 1_020), since), (Some(NOW), FINALIZED - 150), (None, 0)] {
                terms.created_at = created.map(UnixTime::from_secs);
                for (first, is_absent) in [(0, true), (oldest, true), (oldest + 1, false), (u64::MAX, false)] {
                    let mined = chain.mined.clone();
                    let chain = lying(Chain { mined, ..Chain::empty(&terms) }, "getFirstAvailableBlock", json!(first));
                    let state = finding(&chain, &terms).state;
                    assert_eq!(state == HtlcState::Absent, is_absent, "{form} {created:?} {first}: {state:?}");
                    assert!(is_absent || why(&state).contains("dropped blocks"), "{form}: {state:?}");
                }
            }
        }
        // An error is no answer, and what is shown needs none.
        let error = json!({"error": {"code": -32_601, "message": "Method not found"}});
        assert!(matches!(fault(&lying(Chain::empty(&terms), "getFirstAvailableBlock", error.clone()), &terms), Fault::Rpc(_)), "{form}");
        for chain in [Chain::funded(&terms), redeemed(&terms), refunded(&terms)] {
            let state = finding(&lying(chain, "getFirstAvailableBlock", error.clone()), &terms).state;
            assert!(!is_unclear(&state) && state != HtlcState::Absent, "{form}: {state:?}");
        }
    }
}

#[test]
fn a_closed_account_was_funded_if_a_transaction_shows_it() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, swap, address) = parts(&terms);
        let made = initiate(&htlc, &swap);
        let gone = finding(&past(&terms, &[&made]), &terms).state;
        assert!(why(&gone).contains("initiated and its account is gone"), "{form}: {gone:?}");
        let mut dusted = Chain::empty(&terms);
        dusted.mined.push(dust(INITIATED, address));
        assert_eq!(finding(&dusted, &terms).state, HtlcState::Absent, "{form}");
        let pruned = finding(&lying(dusted, "getTransaction", Value::Null), &terms).state;
        assert!(why(&pruned).contains("could not be read"), "{form}: {pruned:?}");
    }
}

/// What comes after the end of the swap does not matter, however much it is.
#[test]
fn a_swap_that_ended_among_the_oldest_transactions_is_known() {
    for form in [FORMS[1], FORMS[2]] {
        let terms = of(form);
        let (_, _, address) = parts(&terms);
        for (later, expected) in [(40, [4, 33]), (300, [4, 33])] {
            let mut chain = refunded(&terms);
            chain.mined.extend(crowd(INITIATED + 50, address, later));
            let Reading { outcome, rounds } = read(&chain, &terms);
            let Finding { state, seen, .. } = outcome.unwrap().into_output();
            assert!(matches!(state, HtlcState::Refunded { .. }) && seen.is_finalized, "{form} {later}: {state:?}");
            assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), expected, "{form} {later}");
        }
    }
}

/// The account does not contain the timelock, so the transaction must be the one that created it.
#[test]
fn only_the_transaction_that_made_the_account_shows_its_timelock() {
    let terms = of(FORMS[1]);
    let (htlc, swap, _) = parts(&terms);
    let with = |slot: u64, change: Change| {
        let mut made = swap;
        change(&mut made);
        let mut chain = Chain::funded(&terms);
        chain.mined = vec![mined(slot, &initiate(&htlc, &made))];
        finding(&chain, &terms).state
    };
    assert_eq!(locked(&with(INITIATED, |_| ())).timelock, terms.timelock);
    let others: [(u64, Change); 6] = [
        (INITIATED, |swap| swap.amount += 1),
        (INITIATED, |swap| swap.amount -= 1),
        (INITIATED, |swap| swap.redeemer = Address::from([0x33; 32])),
        (INITIATED, |swap| swap.timelock += 1),
        (INITIATED + 1, |_| ()),
        (INITIATED - 1, |_| ()),
    ];
    for (slot, change) in others {
        assert!(why(&with(slot, change)).contains("no transaction shows"), "{slot}");
    }
    // Another slot with another timelock gives the same expiry.
    assert_eq!(locked(&with(INITIATED + 1, |swap| swap.timelock -= 1)).timelock, terms.timelock - 1);
}

/// An upgraded program may store its accounts in another layout.
#[test]
fn an_account_in_the_layout_of_another_form_is_unclear() {
    for form in FORMS {
        let terms = of(form);
        let (htlc, swap, address) = parts(&terms);
        for other in FORMS.iter().filter(|other| **other != form) {
            let data = stored(&swap_of(&of(other)).0, &swap, INITIATED + swap.timelock);
            let mut chain = Chain::funded(&terms);
            chain.accounts.insert(address, Account { lamports: RENT + swap.amount, owner: htlc.program, data });
            let state = finding(&chain, &terms).state;
            assert!(why(&state).contains("another generation"), "{form} {other}: {state:?}");
        }
    }
}

/// The terms are not repeated: the token is that of the chain.
#[test]
fn a_swap_of_another_mint_is_shown_with_that_mint() {
    for form in [FORMS[1], FORMS[3]] {
        let terms = of(form);
        let (htlc, swap, address) = parts(&terms);
        let other = Address::from([0x33; 32]);
        let mut of_other = htlc;
        of_other.token = Some(Token::new(other, htlc.token.unwrap().program));
        // The account and the instruction of the other token, at the account of the terms.
        let mut made = initiate(&of_other, &swap);
        let own = of_other.swap_account(&swap).unwrap();
        made.accounts.iter_mut().filter(|meta| meta.pubkey == own).for_each(|meta| meta.pubkey = address);
        let mut chain = Chain::funded(&terms);
        chain.account_mut(address).data = stored(&of_other, &swap, INITIATED + swap.timelock);
        chain.mined = vec![mined(INITIATED, &made)];
        assert_eq!(locked(&finding(&chain, &terms).state).token, Some(other.to_string()), "{form}");
    }
}

/// Anyone can send failing transactions that name the account. They do not hide what older ones did.
#[test]
fn a_page_of_failed_transactions_is_not_the_whole_list() {
    for form in [FORMS[1], FORMS[2]] {
        let terms = of(form);
        let (_, _, address) = parts(&terms);
        let failed = |count: usize| crowd(INITIATED + 50, address, count).map(|mined| Mined { failed: true, ..mined });
        for count in [999, 1_000] {
            let mut chain = refunded(&terms);
            chain.mined.extend(failed(count));
            let Finding { state, seen, .. } = finding(&chain, &terms);
            assert!(matches!(state, HtlcState::Refunded { .. }) && seen.is_finalized, "{form} {count}: {state:?}");
            let mut chain = Chain::empty(&terms);
            chain.mined.extend(failed(count));
            assert_eq!(finding(&chain, &terms).state, HtlcState::Absent, "{form} {count}");
        }
    }
}

/// Version 1 of messages has another layout, and nodes refuse the whole request of a caller that does not ask for it.
#[test]
fn transactions_with_messages_of_version_1_are_read() {
    for form in FORMS {
        let terms = of(form);
        for chain in [redeemed(&terms), refunded(&terms)] {
            let expected = finding(&chain, &terms);
            let mined = chain.mined.iter().map(in_version_1).collect();
            let found = finding(&Chain { mined, ..chain }, &terms);
            assert_eq!(found, expected, "{form}");
        }
        let (htlc, swap, _) = parts(&terms);
        // Another program calls the HTLC.
        let mut inside = redeemed(&terms);
        let redeem = htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap();
        inside.mined[1] = in_version_1(&mined_inside(INITIATED + 40, redeem));
        let state = finding(&inside, &terms).state;
        assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}: {state:?}");
    }
}

/// The account of the SPL client generation does not store mint and timelock. The transaction that created it shows them.
#[test]
fn an_initiation_with_a_message_of_version_1_shows_mint_and_timelock() {
    for form in FORMS {
        let terms = of(form);
        let chain = Chain::funded(&terms);
        let mined = chain.mined.iter().map(in_version_1).collect();
        let found = finding(&Chain { mined, ..chain }, &terms).state;
        assert_eq!((locked(&found).timelock, &locked(&found).token), (terms.timelock, &terms.token), "{form}");
    }
}

/// Anyone can name the account.
#[test]
fn a_transaction_of_version_1_that_only_names_the_account_hides_nothing() {
    for form in FORMS {
        let terms = of(form);
        let (_, _, address) = parts(&terms);
        for mut chain in [redeemed(&terms), refunded(&terms), Chain::funded(&terms)] {
            let expected = finding(&chain, &terms).state;
            chain.mined.push(in_version_1(&dust(INITIATED + 50, address)));
            chain.mined.insert(0, in_version_1(&dust(INITIATED - 50, address)));
            assert_eq!(finding(&chain, &terms).state, expected, "{form}");
        }
        let mut named = Chain::empty(&terms);
        named.mined.push(in_version_1(&dust(INITIATED, address)));
        assert_eq!(finding(&named, &terms).state, HtlcState::Absent, "{form}");
    }
}
