//! The transactions that name a swap account show how a swap was initiated and how it ended, even if the account is created again, if many
//! other transactions name it, or if some are left out.

use countersign::solana::htlc::Htlc;
use countersign::solana::solana_instruction::Instruction;
use countersign::solana::solana_signature::Signature;

use super::*;
use crate::solana::fake::Mined;

/// The program, the swap, and the account of a form.
fn parts(form: &str) -> (Htlc, HtlcAccount, Address) {
    let (htlc, swap) = swap_of(&terms(form).destination);
    (htlc, swap, htlc.swap_account(&swap).unwrap())
}

/// A chain on which these instructions created and ended swaps, ten slots apart. The account is gone.
fn past(form: &str, instructions: &[&Instruction]) -> Chain {
    let slots = (INITIATED..).step_by(10);
    let mined = slots.zip(instructions).map(|(slot, instruction)| mined(slot, instruction)).collect();
    Chain { mined, ..Chain::empty(&terms(form).destination) }
}

/// Transactions of one slot that name an account and do nothing else to it.
fn crowd(slot: u64, to: Address, count: usize) -> impl Iterator<Item = Mined> {
    (0..count).map(move |index| {
        let mut mined = dust(slot, to);
        let mut name: [u8; 64] = mined.transaction.signatures[0].into();
        name[16..24].copy_from_slice(&u64::try_from(index).unwrap().to_le_bytes());
        mined.transaction.signatures[0] = Signature::from(name);
        mined
    })
}

const fn with_less(mut swap: HtlcAccount) -> HtlcAccount {
    swap.amount = 1;
    swap
}

const fn is_unclear(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Unclear(_))
}

/// An endpoint with another answer for one transaction.
fn lying_about(chain: Chain, mined: usize, answer: Value) -> Chain {
    let lied_about = name(&chain.mined[mined]);
    chain.lying(move |_, method, params| (method == "getTransaction" && params[0] == lied_about).then(|| answer.clone()))
}

/// The client's SPL program stores neither timelock nor mint. The transaction that initiated the swap contains them.
#[tokio::test(start_paused = true)]
async fn the_client_generation_needs_the_transaction_that_initiated_the_swap() {
    let form = FORMS[1];
    let (htlc, swap) = swap_of(&terms(form).destination);
    let mut none = chain(form);
    none.mined.clear();
    assert_eq!(judge(none, 1, form).await.unwrap_err(), "destination_unclear", "{form}");

    let mut failed = chain(form);
    failed.mined[0].failed = true;
    assert_eq!(judge(failed, 1, form).await.unwrap_err(), "destination_unclear", "{form}");

    let mut inside = chain(form);
    inside.mined = vec![mined_inside(INITIATED, initiate(&htlc, &swap))];
    assert!(judge(inside, 1, form).await.is_ok(), "{form}: another program called initiate");

    // The slot and the timelock must add up to the account's slot of expiry.
    let mut other_slot = chain(form);
    other_slot.mined[0] = mined(INITIATED - 1, &initiate(&htlc, &swap));
    assert_eq!(judge(other_slot, 1, form).await.unwrap_err(), "destination_unclear", "{form}");

    let mut pruned = chain(form);
    pruned = pruned.lying(|_, method, _| (method == "getTransaction").then_some(Value::Null));
    assert_eq!(judge(pruned, 1, form).await.unwrap_err(), "destination_unclear", "{form}");

    // Later transactions that only name the account change nothing.
    let mut dusted = chain(form);
    dusted.mined.extend((1..40).map(|slot| dust(INITIATED + slot, htlc.swap_account(&swap).unwrap())));
    assert!(judge(dusted, 1, form).await.is_ok(), "{form}");
    let mut other_mint = chain(form);
    let mut instruction = initiate(&htlc, &swap);
    instruction.accounts[5].pubkey = Address::from([0x33; 32]);
    other_mint.mined[0] = mined(INITIATED, &instruction);
    assert_eq!(judge(other_mint, 1, form).await.unwrap_err(), "destination_differs");
}

#[tokio::test(start_paused = true)]
async fn a_redemption_shows_the_secret() {
    for form in FORMS {
        let terms = terms(form);
        let (htlc, swap) = swap_of(&terms.destination);
        let redeem = htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap();
        let redeemed = Chain::ended(&terms.destination, &redeem);
        let transaction = Some(name(redeemed.mined.last().unwrap()));
        let expected = HtlcState::Redeemed { secret: Some(SECRET), transaction };
        let (state_seen, seen) = read_with(redeemed, 2, form, &terms).await.unwrap().state().unwrap();
        assert_eq!((state_seen, seen.depth, seen.is_finalized), (expected, 60, true), "{form}");

        let mut inside = Chain::ended(&terms.destination, &redeem);
        *inside.mined.last_mut().unwrap() = mined_inside(INITIATED + 41, redeem.clone());
        assert!(matches!(state(inside, form).await, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}");

        // Lamports sent to the closed account do not hide the end, nor do later transactions.
        let mut revived = Chain::ended(&terms.destination, &redeem);
        let address = htlc.swap_account(&swap).unwrap();
        revived.accounts.insert(address, system_account(1));
        revived.mined.extend((50..60).map(|slot| dust(INITIATED + slot, address)));
        assert!(matches!(state(revived, form).await, HtlcState::Redeemed { .. }), "{form}");

        // Many of them do not hide it either.
        let mut buried = Chain::ended(&terms.destination, &redeem);
        buried.mined.extend((50..90).map(|slot| dust(INITIATED + slot, address)));
        assert!(matches!(state(buried, form).await, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}");

        let wrong = htlc.redeem(&swap, Address::from(SPONSOR), &[1; 32]).unwrap();
        let error = read_with(Chain::ended(&terms.destination, &wrong), 1, form, &terms).await.unwrap_err();
        assert!(matches!(error, NodeError::Malformed { .. }), "{form}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_is_told_by_its_transaction() {
    for form in FORMS {
        let terms = terms(form).destination;
        let (htlc, swap) = swap_of(&terms);
        let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();
        assert!(matches!(state(Chain::ended(&terms, &refund), form).await, HtlcState::Refunded { transaction: Some(_) }), "{form}");
        let mut instant = refund.clone();
        instant.data = vec![0xd3, 0xca, 0x67, 0x29, 0xb7, 0x93, 0x3b, 0xfb];
        assert!(matches!(state(Chain::ended(&terms, &instant), form).await, HtlcState::Refunded { .. }), "{form}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_account_is_never_taken_for_one_that_was_not_funded() {
    for form in FORMS {
        let terms = terms(form).destination;
        let (htlc, swap) = swap_of(&terms);
        let address = htlc.swap_account(&swap).unwrap();
        let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();

        let mut without_end = Chain::ended(&terms, &refund);
        without_end.mined.pop();
        assert!(is_unclear(&state(without_end, form).await), "{form}: initiated, and gone");

        let pruned = Chain::ended(&terms, &refund).lying(|_, method, _| (method == "getTransaction").then_some(Value::Null));
        assert!(is_unclear(&state(pruned, form).await), "{form}: an endpoint without its transactions");

        let mut failed = Chain::ended(&terms, &refund);
        failed.mined.last_mut().unwrap().failed = true;
        assert!(is_unclear(&state(failed, form).await), "{form}: a refund that failed");

        let mut only_dust = Chain::empty(&terms);
        only_dust.mined.push(dust(INITIATED, address));
        assert_eq!(state(only_dust, form).await, HtlcState::Absent, "{form}: no transaction ever funded it");
    }
}

/// The account can be created again. Anything that happens there after the end of the swap of the terms concerns another swap.
#[tokio::test(start_paused = true)]
async fn the_first_end_of_the_swap_decides() {
    for form in FORMS {
        let terms = terms(form);
        let (htlc, swap, _) = parts(form);
        let (made, redeem, refund) = (
            initiate(&htlc, &swap),
            htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap(),
            htlc.refund(&swap, Address::from(SPONSOR)).unwrap(),
        );
        // In the audited generation the amount is a seed, so the account always belongs to the same terms.
        let less = initiate(&htlc, &if is_audited(&htlc) { swap } else { with_less(swap) });
        for (again, ended) in [(&made, &redeem), (&less, &redeem), (&made, &refund), (&less, &refund)] {
            for (first, is_redeemed) in [(&redeem, true), (&refund, false)] {
                let (state, seen) = read_with(past(form, &[&made, first, again, ended]), 1, form, &terms).await.unwrap().state().unwrap();
                assert_eq!(matches!(state, HtlcState::Redeemed { .. }), is_redeemed, "{form}: {state:?}");
                assert_eq!(matches!(state, HtlcState::Refunded { .. }), !is_redeemed, "{form}: {state:?}");
                assert_eq!((seen.depth, seen.is_finalized), (FINALIZED + 1 - INITIATED - 10, true), "{form}");
            }
        }
        if is_audited(&htlc) {
            continue;
        }
        // A swap with less came before.
        let (seen_state, seen) = read_with(past(form, &[&less, &refund, &made, &redeem]), 1, form, &terms).await.unwrap().state().unwrap();
        assert!(matches!(seen_state, HtlcState::Redeemed { secret: Some(SECRET), .. }) && seen.is_finalized, "{form}: {seen_state:?}");
        // The swap of the terms was never funded.
        assert_eq!(state(past(form, &[&less, &refund]), form).await, HtlcState::Absent, "{form}");
        // The secret is public, but the owner was not paid the amount of the terms.
        let (state, seen) = read_with(past(form, &[&less, &redeem]), 1, form, &terms).await.unwrap().state().unwrap();
        assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}: {state:?}");
        assert!(!seen.is_safe && !seen.is_finalized, "{form}");
    }
}

/// An account that was created again with a smaller amount does not hide the end. Without a history, it differs from the terms.
#[tokio::test(start_paused = true)]
async fn an_account_that_was_made_again_with_less_does_not_hide_the_end() {
    for form in &FORMS[..2] {
        let (htlc, swap, _) = parts(form);
        let (made, less) = (initiate(&htlc, &swap), with_less(swap));
        let redeem = htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap();
        let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();
        let again = |past: &[&Instruction]| {
            let destination = terms(form).destination;
            let mut chain = Chain::with_swap(&destination, &less, INITIATED + 50 + swap.timelock);
            chain.mined = self::past(form, past).mined;
            chain.mined.push(mined(INITIATED + 50, &initiate(&htlc, &less)));
            chain
        };
        assert!(matches!(state(again(&[&made, &redeem]), form).await, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}");
        assert!(matches!(state(again(&[&made, &refund]), form).await, HtlcState::Refunded { .. }), "{form}");
        assert_eq!(judge(again(&[]), 1, form).await.unwrap_err(), "destination_differs", "{form}");
        assert_eq!(judge(again(&[&made]), 1, form).await.unwrap_err(), "destination_differs", "{form}: the end is missing");
    }
}

/// Many transactions that name the account hide neither how the swap was initiated nor how it ended.
#[tokio::test(start_paused = true)]
async fn a_crowd_of_transactions_hides_nothing() {
    for form in [FORMS[1], FORMS[2]] {
        let (htlc, swap, address) = parts(form);
        let made = initiate(&htlc, &swap);
        let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();
        let redeem = htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap();
        let ended = |end: &Instruction, before: usize, between: usize, after: usize| {
            let mut chain = Chain::empty(&terms(form).destination);
            chain.mined.extend(crowd(INITIATED - 10, address, before));
            chain.mined.push(mined(INITIATED, &made));
            chain.mined.extend(crowd(INITIATED + 10, address, between));
            chain.mined.push(mined(INITIATED + 20, end));
            chain.mined.extend(crowd(INITIATED + 30, address, after));
            chain
        };
        // The transactions are listed in pages of 1,000. The oldest and the newest ones are read first.
        for (before, between, after, trips) in [(0, 0, 0, 2), (0, 0, 40, 2), (0, 0, 3_900, 5), (40, 40, 0, 3), (0, 0, 998, 3)] {
            let nodes = nodes(ended(&refund, before, between, after), 1, form);
            let (state, _) =
                nodes.solana(&terms(form).destination.chain).unwrap().htlc(&terms(form).destination).await.unwrap().state().unwrap();
            assert!(matches!(state, HtlcState::Refunded { .. }), "{form} {before} {between} {after}: {state:?}");
            assert_eq!(nodes.transport().requests.lock().unwrap()["a.example"], trips, "{form} {before} {between} {after}");
        }
        // Beyond the limits the state is unclear, and reading stops.
        for (before, after) in [(300, 0), (0, 4_000)] {
            let nodes = nodes(ended(&refund, before, 0, after), 1, form);
            let (state, _) =
                nodes.solana(&terms(form).destination.chain).unwrap().htlc(&terms(form).destination).await.unwrap().state().unwrap();
            assert!(is_unclear(&state), "{form} {before} {after}: {state:?}");
            let chain = nodes.transport();
            assert!(chain.requests.lock().unwrap()["a.example"] <= 4 + 4, "a batch has at most 100 calls");
            assert!(chain.count("getTransaction") <= 256 && chain.count("getSignaturesForAddress") <= 4);
        }
        // But a secret in one of the newest transactions is public.
        let (state, seen) = read_with(ended(&redeem, 300, 0, 0), 1, form, &terms(form)).await.unwrap().state().unwrap();
        assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form}: {state:?}");
        assert!(!seen.is_finalized);

        let open = |same_slot: usize, later: usize| {
            let mut chain = chain(form);
            chain.mined.extend(crowd(INITIATED, address, same_slot));
            chain.mined.extend(crowd(INITIATED + 1, address, later));
            chain
        };
        for (same_slot, later) in [(40, 0), (0, 3_000), (200, 1_000)] {
            assert!(judge(open(same_slot, later), 1, form).await.is_ok(), "{form} {same_slot} {later}");
        }
    }
}

/// A native swap is read from its account alone.
#[tokio::test(start_paused = true)]
async fn a_native_swap_that_is_open_needs_no_transaction() {
    for form in [FORMS[0], FORMS[2]] {
        let failing = chain(form).lying(|_, method, _| {
            let is_history = ["getTransaction", "getSignaturesForAddress"].contains(&method);
            is_history.then(|| json!({"error": {"code": -32011, "message": "Transaction history is not available from this node"}}))
        });
        assert!(judge(failing, 1, form).await.is_ok(), "{form}");
    }
    // The remaining time follows from the slot of expiry, whatever the timelock was.
    let form = FORMS[0];
    let (_, swap, _) = parts(form);
    let short = with_swap(form, |swap| swap.timelock = NEWEST - INITIATED + 1_500);
    assert_eq!(judge(short, 1, form).await.unwrap_err(), "destination_no_time");
    let mut on_a_young_chain = chain(form);
    on_a_young_chain =
        Chain { accounts: Chain::with_swap(&terms(form).destination, &swap, swap.timelock - 1).accounts, ..on_a_young_chain };
    assert!(is_unclear(&state(on_a_young_chain, form).await));
}

/// One transaction that cannot be read does no harm if others decide. Before the first known end, it may have been the end.
#[tokio::test(start_paused = true)]
async fn one_transaction_that_cannot_be_read_fails_only_what_it_decides() {
    let unavailable = || json!({"error": {"code": -32015, "message": "Transaction version (1) is not supported"}});
    for form in FORMS {
        let (htlc, swap, address) = parts(form);
        let redeem = htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap();
        let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();
        let ended = |end: &Instruction| {
            let mut chain = past(form, &[&initiate(&htlc, &swap), end]);
            for (index, slot) in [(0, INITIATED - 1), (2, INITIATED + 1), (4, INITIATED + 11)] {
                chain.mined.insert(index, dust(slot, address));
            }
            chain
        };
        for unreadable in [unavailable(), Value::Null] {
            for (index, is_decided) in [(0, false), (2, false), (4, true)] {
                let is_failure = unreadable.is_object();
                let (state, seen) = read_with(lying_about(ended(&redeem), index, unreadable.clone()), 1, form, &terms(form))
                    .await
                    .unwrap()
                    .state()
                    .unwrap();
                assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{form} {index}: {state:?}");
                assert_eq!(seen.is_finalized, is_decided, "{form} {index}");
                let read = read_with(lying_about(ended(&refund), index, unreadable.clone()), 1, form, &terms(form)).await;
                match read.map(|quorum| quorum.state().unwrap()) {
                    Ok((state, seen)) if is_decided => {
                        assert!(matches!(state, HtlcState::Refunded { .. }) && seen.is_finalized, "{form} {index}: {state:?}");
                    }
                    Ok((state, _)) => assert!(!is_failure && is_unclear(&state), "{form} {index}: {state:?}"),
                    Err(error) => assert!(!is_decided && is_failure && error.is_transient(), "{form} {index}: {error}"),
                }
            }
        }
        // For an open swap, only the transaction that initiated it is needed.
        let mut open = chain(form);
        open.mined.insert(0, crowd(INITIATED, address, 1).next().unwrap());
        assert!(judge(lying_about(open, 0, unavailable()), 1, form).await.is_ok(), "{form}");
    }
}

/// A second page with newer transactions is refused.
#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_go_back_is_refused() {
    let form = FORMS[3];
    let (htlc, swap, address) = parts(form);
    let mut chain = past(form, &[&initiate(&htlc, &swap)]);
    chain.mined.extend(crowd(INITIATED + 1, address, 500));
    chain.mined.extend(crowd(INITIATED + 2, address, 500));
    let call = |params: Value| json!({"jsonrpc": "2.0", "id": 0, "method": "getSignaturesForAddress", "params": params});
    let first = chain.reply_to("a", &call(json!([address.to_string(), {"limit": 1_000}])))["result"].clone();
    let chain = chain.lying(move |_, method, _| (method == "getSignaturesForAddress").then(|| first.clone()));
    let error = read_with(chain, 1, form, &terms(form)).await.unwrap_err();
    assert!(error.to_string().contains("older"), "{error}");
}
