//! The balance of an account.

use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
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

/// A balance in base units of a token, or in lamports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a named number")]
pub struct BaseUnits(pub U256);

impl Agree for BaseUnits {
    type Key = U256;

    fn key(&self) -> U256 {
        self.0
    }
}

/// Reads the finalized balance of an account. That of a token is the sum of the associated token accounts of both token programs.
#[derive(Debug)]
pub struct Balance {
    identity: Identity,
    query: BalanceQuery,
    keys: Vec<Address>,
}

impl Machine for Balance {
    type Subject = BalanceQuery;
    type Output = BaseUnits;
    const MAX_ROUNDS: usize = 1;

    fn start(query: &BalanceQuery, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let keys: Vec<_> = match query.mint {
            Some(mint) => [TOKEN_PROGRAM, TOKEN_2022_PROGRAM]
                .into_iter()
                .filter_map(|program| associated_token_account(query.owner, mint, program))
                .collect(),
            None => vec![query.owner],
        };
        let requests = vec![account::get(&keys, FINALIZED, 0)];
        Ok((Self { identity: identity(&query.network)?, query: query.clone(), keys }, requests))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<BaseUnits>, Fault> {
        let BalanceQuery { owner, mint, .. } = self.query;
        let has = |account: &Account| match mint {
            Some(mint) => account.token().filter(|token| token.mint == mint && token.owner == owner).map_or(0, |token| token.amount),
            None => account.lamports,
        };
        let accounts = Accounts::read(&replies.json(0)?, self.keys.len())?;
        let sum = accounts.all.iter().flatten().map(|account| U256::from(has(account))).fold(U256::ZERO, U256::saturating_add);
        Ok(Turn::Done(BaseUnits(sum)))
    }
}
