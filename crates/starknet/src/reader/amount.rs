//! Balances and allowances.

use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{Refusal, U256};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::LATEST;
use super::{answer, balance_of, call, check_version, spec_version};
use crate::read;

/// What of a token is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct AmountQuery {
    /// The chain id.
    pub chain_id: Felt,
    /// The token.
    pub token: Felt,
    /// The account that owns the tokens.
    pub owner: Felt,
    /// Whose allowance is read; `None` for the balance of the owner.
    pub spender: Option<Felt>,
}

/// A number of base units of a token. Endpoints must agree on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is a number")]
pub struct Units(pub U256);

impl Agree for Units {
    type Key = U256;

    fn key(&self) -> U256 {
        self.0
    }
}

/// Reads the balance of an account, or an allowance, at the newest block.
#[derive(Debug)]
pub struct Amount(Felt);

impl Machine for Amount {
    type Subject = AmountQuery;
    type Output = Units;
    const MAX_ROUNDS: usize = 1;

    fn start(query: &AmountQuery, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let latest = json!(LATEST);
        let request = match query.spender {
            Some(spender) => call(query.token, read::ALLOWANCE, &[query.owner, spender], &latest),
            None => balance_of(query.token, query.owner, &latest),
        };
        Ok((Self(query.chain_id), vec![spec_version(), request]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.0)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Units>, Fault> {
        check_version(&replies.get(0)?)?;
        Ok(Turn::Done(Units(answer(&replies.json(1)?, read::number)?)))
    }
}
