//! Balances and allowances.

use alloy_primitives::{Address, U256};
use countersign_core::Refusal;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use serde_json::json;

use super::block::LATEST;
use super::{OnChain, balance, call};
use crate::read;

/// Which amount is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmountOf {
    /// What an account owns: base units of a token, or wei of the chain's own coin if `token` is `None`.
    Balance {
        /// The account.
        owner: Address,
        /// The token.
        token: Option<Address>,
    },
    /// The base units of a token that `spender` may take from `owner`.
    Allowance {
        /// The token.
        token: Address,
        /// The account that pays.
        owner: Address,
        /// The account that may take.
        spender: Address,
    },
}

/// Reads a balance or an allowance at the newest block.
pub type Amount = Ask<OnChain<AmountOf>>;

impl Question for OnChain<AmountOf> {
    type Output = Equal<U256>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let latest = json!(LATEST);
        vec![match self.subject {
            AmountOf::Balance { owner, token } => balance(owner, token, &latest),
            AmountOf::Allowance { token, owner, spender } => call(token, &read::allowance_call(owner, spender), &latest),
        }]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<U256>, Fault> {
        let cursor = replies.json(0)?;
        let is_coin = matches!(self.subject, AmountOf::Balance { token: None, .. });
        Ok(Equal(if is_coin { cursor.hex_number()? } else { super::answer(&cursor, read::number)? }))
    }
}
