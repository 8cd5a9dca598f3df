//! Tests the preflight of a deposit: which balances are enough, and what a simulation has to do.

use std::collections::BTreeMap;

use countersign_core::{Code, Refusal};
use countersign_solana::address::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account};
use countersign_solana::reader::{Preflight, PreflightCheck, PreflightQuery};
use countersign_solana::{FundingPath, Solana, TxContext};
use countersign_testkit::chain::solana::{Account, RENT, case, stored};
use countersign_testkit::verified;

use super::others::drive_on;
use super::*;

/// What a deposit must do, and a cluster whose simulation does it.
struct Deposit {
    query: PreflightQuery,
    chain: Chain,
    after: BTreeMap<Address, Account>,
    /// The program and the swap, with the hash of the order.
    htlc: Program,
    swap: HtlcAccount,
    owner: Address,
    swap_account: Address,
    /// What the owner pays at most, in lamports.
    cost: u64,
}

/// The rent of an account with this many bytes of data: <https://solana.com/docs/core/accounts>.
fn rent(bytes: usize) -> u64 {
    (128 + u64::try_from(bytes).unwrap()) * 6_960
}

/// The fee of a transaction with one signature.
const FEE: u64 = 5_000;

impl Deposit {
    /// Another account pays the fee and the rent of a token's deposit. The owner of a native one pays for itself.
    fn new(form: &str) -> Self {
        if of(form).token.is_some() { Self::on(form, FundingPath::Gasless) } else { Self::self_funded(form) }
    }

    fn self_funded(form: &str) -> Self {
        Self::on(form, FundingPath::SelfFunded(TxContext::new()))
    }

    fn on(form: &str, path: FundingPath<TxContext>) -> Self {
        let mut terms = of(form);
        let pays = !matches!(path, FundingPath::Gasless);
        let order = verified::<Solana>(&case(form)).prepare(path).unwrap();
        let query = PreflightQuery::new(&terms.network, &order).unwrap();
        terms.secret_hash = SecretHash(order.verified().unwrap().deposit().terms.secret_hash);
        let (htlc, swap, swap_account) = parts(&terms);
        let (owner, mut chain, mut after) = (swap.initiator, Chain::empty(&terms), BTreeMap::new());
        let locked = if htlc.token.is_none() { swap.amount } else { 0 };
        let cost = if pays { FEE + rent(htlc.swap_account_length()) + locked } else { 0 };
        let made = Account { lamports: RENT + locked, owner: htlc.program, data: stored(&htlc, &swap, FINALIZED + swap.timelock) };
        after.insert(swap_account, made);
        if let Some(token) = htlc.token {
            let (vault, identity) = (htlc.vault().unwrap(), htlc.identity().unwrap());
            let held = associated_token_account(owner, token.mint, TOKEN_PROGRAM).unwrap();
            chain.accounts.insert(held, token_account(token.mint, owner, swap.amount));
            chain.accounts.insert(vault, token_account(token.mint, identity, 11));
            after.insert(held, token_account(token.mint, owner, 0));
            after.insert(vault, token_account(token.mint, identity, 11 + swap.amount));
        }
        chain.accounts.insert(owner, system_account(cost));
        after.insert(owner, system_account(0));
        Self { query, chain, after, htlc, swap, owner, swap_account, cost }
    }

    /// The accounts of the owner's tokens, and the vault.
    fn tokens(&self) -> [Address; 2] {
        let mint = self.htlc.token.unwrap().mint;
        [associated_token_account(self.owner, mint, TOKEN_PROGRAM).unwrap(), self.htlc.vault().unwrap()]
    }

    fn made(&mut self) -> &mut Account {
        self.after.get_mut(&self.swap_account).unwrap()
    }

    /// The owner has more than the cost, before and after.
    fn with_rest(mut self, lamports: u64) -> Self {
        self.chain.accounts.insert(self.owner, system_account(self.cost + lamports));
        self.after.insert(self.owner, system_account(lamports));
        self
    }

    fn judged(mut self) -> Result<Preflight, Refusal> {
        self.chain.simulated = Ok(self.after);
        drive_on::<PreflightCheck>(&self.query, &self.chain).outcome.unwrap().into_output().0
    }

    fn refused(self) -> Option<(Code, String)> {
        self.judged().err().map(|refusal| (refusal.code(), refusal.location().to_owned()))
    }
}

fn differs(at: &str) -> Option<(Code, String)> {
    Some((Code::SimulationDiffers, at.to_owned()))
}

fn too_little(at: &str) -> Option<(Code, String)> {
    Some((Code::InsufficientFunds, at.to_owned()))
}

/// An account is left empty, or with the rent of an empty one.
#[test]
fn the_owner_pays_to_the_last_lamport() {
    for form in FORMS {
        let deposit = || Deposit::self_funded(form);
        let Preflight { balance, cost, .. } = deposit().judged().unwrap();
        assert_eq!((balance, cost), (deposit().cost, deposit().cost), "{form}");
        for rest in [1, rent(0) - 1] {
            assert_eq!(deposit().with_rest(rest).refused(), too_little("/balance"), "{form} {rest}");
        }
        assert_eq!(deposit().with_rest(rent(0)).refused(), None, "{form}");
        let mut poor = deposit();
        poor.chain.accounts.insert(poor.owner, system_account(poor.cost - 1));
        assert_eq!(poor.refused(), too_little("/balance"), "{form}");
        let mut spends_more = deposit().with_rest(rent(0));
        spends_more.after.insert(spends_more.owner, system_account(rent(0) - 1));
        assert_eq!(spends_more.refused(), differs("/balance"), "{form}");
    }
}

/// An account with less than the rent of an empty one cannot pay, but it need not.
#[test]
fn who_pays_nothing_may_have_any_balance() {
    for form in [FORMS[1], FORMS[3]] {
        for lamports in [0, 1, rent(0)] {
            let judged = Deposit::new(form).with_rest(lamports).judged().unwrap();
            assert_eq!((judged.balance, judged.cost), (lamports, 0), "{form}");
        }
        let mut spends = Deposit::new(form).with_rest(1);
        spends.after.insert(spends.owner, system_account(0));
        assert_eq!(spends.refused(), differs("/balance"), "{form}");
    }
}

/// The first swap of a token also creates the vault. Who pays for the swap account pays for that too.
#[test]
fn a_missing_vault_costs_its_rent() {
    for form in [FORMS[1], FORMS[3]] {
        let of_2022 = |mut deposit: Deposit| {
            let mut data = vec![0; 82];
            (data[44], data[45]) = (6, 1);
            deposit.chain.accounts.insert(deposit.htlc.token.unwrap().mint, Account { lamports: 1, owner: TOKEN_2022_PROGRAM, data });
            deposit
        };
        for (mut deposit, expected) in
            [(Deposit::new(form), 0), (Deposit::self_funded(form), rent(165)), (of_2022(Deposit::self_funded(form)), rent(170))]
        {
            let [_, vault] = deposit.tokens();
            deposit.chain.accounts.remove(&vault);
            deposit
                .after
                .insert(vault, token_account(deposit.htlc.token.unwrap().mint, deposit.htlc.identity().unwrap(), deposit.swap.amount));
            deposit.cost += expected;
            let cost = deposit.cost;
            assert_eq!(deposit.with_rest(0).judged().unwrap().cost, cost, "{form}");
        }
    }
}

#[test]
fn the_owner_needs_the_amount_of_the_token() {
    for form in [FORMS[1], FORMS[3]] {
        let with = |held: fn(&Deposit) -> Account| {
            let mut deposit = Deposit::new(form);
            let [tokens, _] = deposit.tokens();
            let account = held(&deposit);
            deposit.chain.accounts.insert(tokens, account);
            deposit.refused()
        };
        fn held(deposit: &Deposit, amount: u64) -> Account {
            token_account(deposit.htlc.token.unwrap().mint, deposit.owner, amount)
        }
        assert_eq!(with(|deposit| held(deposit, deposit.swap.amount)), None, "{form}");
        assert_eq!(with(|deposit| held(deposit, deposit.swap.amount - 1)), too_little("/token"), "{form}");
        assert_eq!(with(|_| system_account(1)), too_little("/token"), "{form}");
        let frozen = with(|deposit| {
            let mut account = held(deposit, deposit.swap.amount);
            account.data[108] = 2;
            account
        });
        assert_eq!(frozen.unwrap().0, Code::SimulationReverted, "{form}");
    }
}

#[test]
fn a_simulation_must_lock_the_amount_to_the_last_lamport() {
    for form in [FORMS[0], FORMS[2]] {
        for (missing, expected) in [(0, None), (1, differs("/swap_account"))] {
            let mut deposit = Deposit::new(form);
            deposit.made().lamports = deposit.swap.amount - missing;
            assert_eq!(deposit.refused(), expected, "{form} {missing}");
        }
    }
}

#[test]
fn a_simulation_must_move_exactly_the_amount_of_the_token() {
    for form in [FORMS[1], FORMS[3]] {
        for (place, amount, at) in [(0, 1, "/token"), (1, 10, "/vault"), (1, 12, "/vault")] {
            let mut deposit = Deposit::new(form);
            let address = deposit.tokens()[place];
            let account = deposit.after.get_mut(&address).unwrap();
            let amount = if place == 0 { amount } else { amount + deposit.swap.amount };
            account.data[64..72].copy_from_slice(&amount.to_le_bytes());
            assert_eq!(deposit.refused(), differs(at), "{form} {place} {amount}");
        }
    }
}

/// Everything that the account stores is compared, each part for itself.
#[test]
fn a_simulation_must_make_the_account_of_the_verified_terms() {
    for form in FORMS {
        assert_eq!(Deposit::new(form).refused(), None, "{form}");
        let changes: [fn(&mut HtlcAccount); 5] = [
            |swap| swap.initiator = Address::from([0x33; 32]),
            |swap| swap.redeemer = Address::from([0x33; 32]),
            |swap| swap.secret_hash = [0x33; 32],
            |swap| swap.amount -= 1,
            |swap| swap.amount += 1,
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut deposit = Deposit::new(form);
            let (mut swap, expiry) = (deposit.swap, FINALIZED + deposit.swap.timelock);
            change(&mut swap);
            deposit.made().data = stored(&deposit.htlc.clone(), &swap, expiry);
            assert_eq!(deposit.refused(), differs("/swap_account"), "{form} {index}");
        }
        let mut of_other = Deposit::new(form);
        of_other.made().owner = Address::from([0x33; 32]);
        assert_eq!(of_other.refused(), differs("/swap_account"), "{form}");
        let mut missing = Deposit::new(form);
        missing.after.remove(&missing.swap_account);
        assert_eq!(missing.refused(), differs("/swap_account"), "{form}");
    }
}

/// The simulation may run in another slot than the accounts were read in. The timelock itself must be exact where the account has it.
#[test]
fn a_simulated_swap_expires_within_150_slots_of_the_timelock() {
    for form in FORMS {
        let with = |expiry: u64, more: u64| {
            let mut deposit = Deposit::new(form);
            let mut swap = deposit.swap;
            swap.timelock += more;
            let expiry = expiry + deposit.swap.timelock;
            deposit.made().data = stored(&deposit.htlc.clone(), &swap, expiry);
            deposit.refused()
        };
        for (slot, expected) in [
            (FINALIZED - 151, differs("/swap_account")),
            (FINALIZED - 150, None),
            (FINALIZED + 150, None),
            (FINALIZED + 151, differs("/swap_account")),
        ] {
            assert_eq!(with(slot, 0), expected, "{form} {slot}");
        }
        let expected = if is_audited(&swap_of(&of(form)).0) { differs("/swap_account") } else { None };
        assert_eq!(with(FINALIZED, 1), expected, "{form}");
    }
}

/// The account would hold the same terms, in the layout of another program.
#[test]
fn a_simulation_that_makes_an_account_of_another_form_is_refused() {
    for form in FORMS {
        for other in FORMS.iter().filter(|other| **other != form) {
            let (of_other, _) = swap_of(&of(other));
            let mut deposit = Deposit::new(form);
            deposit.made().data = stored(&of_other, &deposit.swap, FINALIZED + deposit.swap.timelock);
            assert_eq!(deposit.refused(), differs("/swap_account"), "{form} {other}");
        }
    }
}

/// The same terms at the same account would lock the amount twice, or fail.
#[test]
fn a_swap_that_exists_is_not_funded_again() {
    for form in FORMS {
        let mut deposit = Deposit::new(form);
        let made = deposit.made().clone();
        deposit.chain.accounts.insert(deposit.swap_account, made);
        assert_eq!(deposit.refused().unwrap().0, Code::SimulationReverted, "{form}");
        // Lamports that somebody sent there do not matter.
        let mut dusted = Deposit::new(form);
        dusted.chain.accounts.insert(dusted.swap_account, system_account(1));
        assert_eq!(dusted.refused(), None, "{form}");
    }
}

#[test]
fn a_simulation_that_fails_says_why() {
    let form = FORMS[2];
    for (error, words) in [
        (json!("BlockhashNotFound"), "the blockhash is unknown"),
        (json!("AccountInUse\u{202e}"), "AccountInUse"),
        (json!({"InstructionError": [0, {"Custom": 6_001}]}), "AnchorError caused by account"),
    ] {
        let mut deposit = Deposit::new(form);
        deposit.chain.simulated = Err(error);
        let judged = drive_on::<PreflightCheck>(&deposit.query, &deposit.chain).outcome.unwrap().into_output().0;
        let refusal = judged.unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::SimulationReverted, "/initiate"));
        assert!(refusal.to_string().contains(words) && !refusal.to_string().contains('\u{202e}'), "{refusal}");
    }
}
