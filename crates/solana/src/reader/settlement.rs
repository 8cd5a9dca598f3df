//! The accounts that a redemption or a refund depends on.

use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Ask, Fault, Identity, Judged, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal, Role};

use super::account::{self, Accounts};
use super::{FINALIZED, identity};
use crate::address::Address;
use crate::htlc::Htlc;
use crate::read::{self, TokenAccount};
use crate::recover::Recovery;

/// Which redemption or refund is meant. It does not contain the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettlementQuery {
    network: Network,
    htlc: Htlc,
    role: Role,
    swap_account: Address,
    to: Address,
    token_account: Option<Address>,
}

impl SettlementQuery {
    /// Creates the query for a recovery.
    #[must_use]
    pub fn new(network: &Network, recovery: &Recovery) -> Self {
        Self {
            network: network.clone(),
            htlc: *recovery.htlc(),
            role: recovery.terms().role,
            swap_account: recovery.swap_account(),
            to: recovery.to(),
            token_account: recovery.token_account(),
        }
    }
}

/// The facts on chain that a redemption or a refund depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettlementFacts {
    /// The account that gets the rent back, if the swap account names one.
    pub sponsor: Option<Address>,
    /// The bytes of the token account that receives the payment; `None` if it exists, or none is needed.
    pub new_token_account: Option<usize>,
}

impl Agree for SettlementFacts {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Reads the accounts that a redemption or a refund depends on. Refuses one that would fail, with [`Code::SimulationReverted`].
pub type Settlement = Ask<SettlementQuery>;

impl Question for SettlementQuery {
    type Output = Judged<SettlementFacts>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![account::get(&self.keys(), FINALIZED, 0)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<SettlementFacts>, Fault> {
        let accounts = Accounts::read(&replies.json(0)?, self.keys().len())?;
        Ok(Judged(self.judge(&accounts)))
    }
}

impl SettlementQuery {
    fn keys(&self) -> Vec<Address> {
        let mint = self.htlc.token.map(|token| token.mint);
        [self.swap_account].into_iter().chain(self.token_account).chain(mint).collect()
    }

    fn judge(&self, accounts: &Accounts) -> Result<SettlementFacts, Refusal> {
        let Self { htlc, role, to, token_account, .. } = self;
        // Without the account, the call would fail, and a redemption would have revealed the secret for nothing.
        let fails = |reason: &str| Refusal::new(Code::SimulationReverted, format!("/{role}")).with_reason(reason.to_owned());
        let swap = accounts.get(0).filter(|swap| swap.owner == htlc.program);
        let swap = swap.ok_or_else(|| fails("there is no open swap at the swap account"))?;
        let stored = read::swap_account(&swap.data).map_err(|why| fails(&why.to_string()))?;
        if stored.form != htlc.generation.form || stored.is_token != htlc.token.is_some() {
            return Err(fails("the swap account belongs to another generation of the program than the pinned one"));
        }
        let payee = if *role == Role::Redeem { stored.redeemer } else { stored.initiator };
        if payee != *to {
            return Err(fails("the swap on chain pays another account").with_expected(to.to_string()).with_actual(payee.to_string()));
        }
        if *role == Role::Refund && accounts.slot <= stored.expiry {
            return Err(fails("the timelock has not passed").with_expected(stored.expiry).with_actual(accounts.slot));
        }
        let paid = token_account.and_then(|_| accounts.used(1));
        if let Some(account) = paid {
            let is_of_payee = |token: &TokenAccount| token.owner == *to && htlc.token.is_some_and(|own| own.mint == token.mint);
            match account.token().filter(is_of_payee) {
                Some(token) if token.is_frozen => return Err(fails("the token account that receives the payment is frozen")),
                Some(_) => {}
                None => {
                    return Err(fails("the token account that receives the payment does not belong to the payee, or is for another token"));
                }
            }
        }
        let is_new = token_account.is_some() && paid.is_none();
        Ok(SettlementFacts { sponsor: stored.sponsor, new_token_account: is_new.then(|| accounts.new_token_account(2)) })
    }
}
