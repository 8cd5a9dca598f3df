//! Balances and allowances.

use alloy_primitives::{Address, U256};
use countersign_core::Refusal;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
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

/// An amount in base units. Endpoints must show the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a number")]
pub struct Units(pub U256);

impl Agree for Units {
    type Key = U256;

    fn key(&self) -> U256 {
        self.0
    }
}

/// Reads a balance or an allowance at the newest block.
#[derive(Debug)]
pub struct Amount {
    chain_id: u64,
    is_coin: bool,
}

impl Machine for Amount {
    type Subject = OnChain<AmountOf>;
    type Output = Units;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &Self::Subject, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let latest = json!(LATEST);
        let (request, is_coin) = match subject.subject {
            AmountOf::Balance { owner, token } => (balance(owner, token, &latest), token.is_none()),
            AmountOf::Allowance { token, owner, spender } => (call(token, &read::allowance_call(owner, spender), &latest), false),
        };
        Ok((Self { chain_id: subject.chain_id, is_coin }, vec![request]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Units>, Fault> {
        let node = replies.json(0)?;
        Ok(Turn::Done(Units(if self.is_coin { node.hex_number()? } else { super::answer(&node, read::number)? })))
    }
}
