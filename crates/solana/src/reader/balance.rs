//! The balance of an account.

use countersign_core::chains::Network;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{Refusal, U256};

use super::account::{self, Account, Accounts};
use super::{FINALIZED, identity};
use crate::address::{Address, TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account};

/// Whose balance is read, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalanceQuery {
    network: Network,
    owner: Address,
    mint: Option<Address>,
}

impl BalanceQuery {
    /// Creates the query for the balance of `owner` in a token, or in SOL if `mint` is `None`.
    #[must_use]
    pub fn new(network: &Network, owner: Address, mint: Option<Address>) -> Self {
        Self { network: network.clone(), owner, mint }
    }
}

/// Reads the finalized balance of an account. That of a token is the sum of the associated token accounts of both token programs.
pub type Balance = Ask<BalanceQuery>;

impl BalanceQuery {
    /// Returns the accounts that hold the balance.
    fn keys(&self) -> Vec<Address> {
        let Some(mint) = self.mint else { return vec![self.owner] };
        [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].into_iter().filter_map(|program| associated_token_account(self.owner, mint, program)).collect()
    }
}

impl Question for BalanceQuery {
    type Output = Equal<U256>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![account::get(&self.keys(), FINALIZED, 0)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<U256>, Fault> {
        let has = |account: &Account| match self.mint {
            Some(mint) => account.token().filter(|token| token.mint == mint && token.owner == self.owner).map_or(0, |token| token.amount),
            None => account.lamports,
        };
        let accounts = Accounts::read(&replies.json(0)?, self.keys().len())?;
        Ok(Equal(accounts.all.iter().flatten().map(|account| U256::from(has(account))).fold(U256::ZERO, U256::saturating_add)))
    }
}
