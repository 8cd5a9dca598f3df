//! The accounts that a redemption or a refund depends on.

use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{Code, Refusal, Role};

use super::account::{self, Accounts};
use super::{CONFIRMED, Judgement, identity};
use crate::address::Address;
use crate::htlc::Htlc;
use crate::read;
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
            role: recovery.role,
            swap_account: recovery.swap_account,
            to: recovery.to,
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
    /// Whether the token account that receives the payment does not exist yet.
    pub needs_token_account: bool,
}

impl Agree for SettlementFacts {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Reads the accounts that a redemption or a refund depends on. Refuses one that would fail, with [`Code::SimulationReverted`].
#[derive(Debug)]
pub struct Settlement {
    identity: Identity,
    query: SettlementQuery,
}

impl Machine for Settlement {
    type Subject = SettlementQuery;
    type Output = Judgement<SettlementFacts>;
    const MAX_ROUNDS: usize = 1;

    fn start(query: &SettlementQuery, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { identity: identity(&query.network)?, query: query.clone() };
        let requests = vec![account::get(&machine.keys(), CONFIRMED, 0)];
        Ok((machine, requests))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Judgement<SettlementFacts>>, Fault> {
        let accounts = Accounts::read(&replies.json(0)?, self.keys().len())?;
        Ok(Turn::Done(Judgement(self.judge(&accounts))))
    }
}

impl Settlement {
    fn keys(&self) -> Vec<Address> {
        [self.query.swap_account].into_iter().chain(self.query.token_account).collect()
    }

    fn judge(&self, accounts: &Accounts) -> Result<SettlementFacts, Refusal> {
        let SettlementQuery { htlc, role, to, token_account, .. } = &self.query;
        // Without the account, the call would fail, and a redemption would have revealed the secret for nothing.
        let fails = |reason: &str| Refusal::new(Code::SimulationReverted, format!("/{role}")).with_reason(reason.to_owned());
        let swap = accounts.get(0).filter(|swap| swap.owner == htlc.program);
        let swap = swap.ok_or_else(|| fails("there is no open swap at the swap account"))?;
        let stored = read::swap_account(&swap.data).map_err(|why| fails(&why.to_string()))?;
        if stored.generation != htlc.generation || stored.is_token != htlc.token.is_some() {
            return Err(fails("the swap account belongs to another generation of the program than the pinned one"));
        }
        let payee = if *role == Role::Redeem { stored.redeemer } else { stored.initiator };
        if payee != *to {
            return Err(fails("the swap on chain pays another account").with_expected(to.to_string()).with_actual(payee.to_string()));
        }
        if *role == Role::Refund && accounts.slot <= stored.expiry {
            return Err(fails("the timelock has not passed").with_expected(stored.expiry).with_actual(accounts.slot));
        }
        let token_account = token_account.map(|_| accounts.used(1));
        let needs_token_account = matches!(token_account, Some(None));
        if let Some(Some(account)) = token_account {
            let token = account.token().filter(|token| token.owner == *to && htlc.token.is_some_and(|own| own.mint == token.mint));
            match token {
                Some(token) if token.is_frozen => return Err(fails("the token account that receives the payment is frozen")),
                Some(_) => {}
                None => {
                    return Err(fails("the token account that receives the payment does not belong to the payee, or is for another token"));
                }
            }
        }
        Ok(SettlementFacts { sponsor: stored.sponsor, needs_token_account })
    }
}
