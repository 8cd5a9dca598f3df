//! Balances and allowances.

use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{Refusal, U256};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::LATEST;
use super::{answer, balance_of, call, check_version, spec_version};
use crate::read;

/// A balance or an allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct AmountQuery {
    /// The chain id.
    pub chain_id: Felt,
    /// The token.
    pub token: Felt,
    /// The account that owns the tokens.
    pub owner: Felt,
    /// The account that may take the tokens; `None` for the balance of the owner.
    pub spender: Option<Felt>,
}

/// Reads the balance of an account, or an allowance, at the newest block.
pub type Amount = Ask<AmountQuery>;

impl Question for AmountQuery {
    type Output = Equal<U256>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let latest = json!(LATEST);
        let request = match self.spender {
            Some(spender) => call(self.token, read::ALLOWANCE, &[self.owner, spender], &latest),
            None => balance_of(self.token, self.owner, &latest),
        };
        vec![spec_version(), request]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<U256>, Fault> {
        check_version(&replies.get(0)?)?;
        Ok(Equal(answer(&replies.json(1)?, read::number)?))
    }
}
