//! The preflight of a deposit, and the accounts of a refund: what is enough, and what is another swap's.

use std::collections::BTreeMap;

use countersign_core::{Code, Leg, OrderRecord, Refusal};
use countersign_solana::address::{TOKEN_PROGRAM, associated_token_account};
use countersign_solana::reader::{Preflight, PreflightCheck, PreflightQuery, Settlement, SettlementFacts, SettlementQuery};
use countersign_solana::{FundingPath, Solana, TxContext, recover};
use countersign_testkit::chain::solana::{Account, RENT, case, stored};
use countersign_testkit::verified;

use super::others::drive_on;
use super::*;

/// What the deposit of a form must do, and a cluster whose simulation does it. The owner pays nothing for a token, because another account
/// pays the fee and the rent.
struct Deposit {
    query: PreflightQuery,
    chain: Chain,
    after: BTreeMap<Address, Account>,
    swap: HtlcAccount,
    owner: Address,
    swap_account: Address,
}

impl Deposit {
    fn new(form: &str) -> Self {
        let mut terms = of(form);
        let is_native = terms.token.is_none();
        let path = if is_native { FundingPath::SelfFunded(TxContext::new()) } else { FundingPath::Gasless };
        let order = verified::<Solana>(&case(form)).prepare(path).unwrap();
        let query = PreflightQuery::new(&terms.network, &order).unwrap();
        terms.secret_hash = SecretHash(order.verified().unwrap().deposit().terms.secret_hash);
        let (htlc, swap, swap_account) = parts(&terms);
        let (owner, mut chain, mut after) = (swap.initiator, Chain::empty(&terms), BTreeMap::new());
        let locked = if is_native { swap.amount } else { 0 };
        let made = Account { lamports: RENT + locked, owner: htlc.program, data: stored(&htlc, &swap, FINALIZED + swap.timelock) };
        after.insert(swap_account, made);
        if let Some(token) = htlc.token {
            let (vault, identity) = (htlc.vault().unwrap(), htlc.identity().unwrap());
            let held = associated_token_account(owner, token.mint, TOKEN_PROGRAM).unwrap();
            chain.accounts.insert(held, token_account(token.mint, owner, swap.amount));
            after.insert(held, token_account(token.mint, owner, 0));
            after.insert(vault, token_account(token.mint, identity, swap.amount));
        } else {
            chain.accounts.insert(owner, system_account(1_000_000_000_000));
        }
        Self { query, chain, after, swap, owner, swap_account }
    }

    fn made(&mut self) -> &mut Account {
        self.after.get_mut(&self.swap_account).unwrap()
    }

    fn judged(mut self) -> Result<Preflight, Refusal> {
        self.chain.simulated = Ok(self.after);
        drive_on::<PreflightCheck>(&self.query, &self.chain).outcome.unwrap().into_output().0
    }
}

fn code(judged: Result<Preflight, Refusal>) -> Option<Code> {
    judged.err().map(|refusal| refusal.code())
}

/// An account with less than the rent of an empty one cannot pay, but it need not.
#[test]
fn who_pays_nothing_may_have_any_balance() {
    for form in [FORMS[1], FORMS[3]] {
        for lamports in [0, 1] {
            let mut deposit = Deposit::new(form);
            deposit.chain.accounts.insert(deposit.owner, system_account(lamports));
            let judged = deposit.judged().unwrap();
            assert_eq!((judged.balance, judged.cost), (lamports, 0), "{form}");
        }
    }
}

/// The account would hold the same terms, in the layout of another program.
#[test]
fn a_simulation_that_makes_an_account_of_another_form_is_refused() {
    for form in FORMS {
        assert_eq!(code(Deposit::new(form).judged()), None, "{form}");
        for other in FORMS.iter().filter(|other| **other != form) {
            let (of_other, _) = swap_of(&of(other));
            let mut deposit = Deposit::new(form);
            deposit.made().data = stored(&of_other, &deposit.swap, FINALIZED + deposit.swap.timelock);
            assert_eq!(code(deposit.judged()), Some(Code::SimulationDiffers), "{form} {other}");
        }
    }
}

#[test]
fn a_simulation_must_lock_the_amount_to_the_last_lamport() {
    for form in [FORMS[0], FORMS[2]] {
        for (missing, expected) in [(0, None), (1, Some(Code::SimulationDiffers))] {
            let mut deposit = Deposit::new(form);
            deposit.made().lamports = deposit.swap.amount - missing;
            assert_eq!(code(deposit.judged()), expected, "{form} {missing}");
        }
    }
}

/// A swap account of the pinned program in another layout is not that of the swap.
#[test]
fn a_refund_from_an_account_of_another_form_is_refused() {
    for form in FORMS {
        let (htlc, swap) = swap_of(&of(form));
        let record = OrderRecord::from_json(case(form).json()["order"].to_string().as_bytes()).unwrap();
        let refund = recover::refund(&record, Leg::Source, case(form).registry).unwrap();
        let query = SettlementQuery::new(&of(form).network, &refund);
        let judged = |layout: &Program| -> Result<SettlementFacts, Refusal> {
            // The timelock has passed.
            let data = stored(layout, &swap, FINALIZED - 1);
            let mut chain = Chain::empty(&of(form));
            chain.accounts.insert(refund.swap_account(), Account { lamports: RENT, owner: htlc.program, data });
            drive_on::<Settlement>(&query, &chain).outcome.unwrap().into_output().0
        };
        assert_eq!(judged(&htlc).unwrap().needs_token_account, htlc.token.is_some(), "{form}");
        for other in FORMS.iter().filter(|other| **other != form) {
            let refusal = judged(&swap_of(&of(other)).0).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::SimulationReverted, "/refund"), "{form} {other}");
            assert!(refusal.to_string().contains("another generation"), "{form} {other}: {refusal}");
        }
    }
}
