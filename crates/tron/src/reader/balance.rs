//! Reads balances and allowances.

use alloy_primitives::U256;
use countersign_abi::read;
use countersign_core::Refusal;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};

use super::call::{self, Call};
use super::{OnChain, View, coins, coins_request};
use crate::Address;

/// Which amount is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BalanceOf {
    /// The TRX of an account, in sun.
    Coins {
        /// The account.
        owner: Address,
    },
    /// The tokens of an account, in base units.
    Tokens {
        /// The token.
        token: Address,
        /// The account.
        owner: Address,
    },
    /// The tokens that an account may take from another one, in base units.
    Allowance {
        /// The token.
        token: Address,
        /// The account that pays.
        owner: Address,
        /// The account that may take them.
        spender: Address,
    },
}

/// An amount in base units. Endpoints must show the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an amount")]
pub struct Units(pub U256);

impl Agree for Units {
    type Key = U256;

    fn key(&self) -> U256 {
        self.0
    }
}

/// Reads a balance or an allowance.
#[derive(Debug)]
pub struct Balance {
    chain_id: u64,
    is_native: bool,
}

impl Machine for Balance {
    type Subject = OnChain<BalanceOf>;
    type Output = Units;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &Self::Subject, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let request = match subject.subject {
            BalanceOf::Coins { owner } => coins_request(owner),
            BalanceOf::Tokens { token, owner } => Call::view(token, read::balance_call(owner.bytes())).request(View::Newest),
            BalanceOf::Allowance { token, owner, spender } => {
                Call::view(token, read::allowance_call(owner.bytes(), spender.bytes())).request(View::Newest)
            }
        };
        let is_native = matches!(subject.subject, BalanceOf::Coins { .. });
        Ok((Self { chain_id: subject.chain_id, is_native }, vec![request]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Units>, Fault> {
        let reply = replies.get(0)?;
        let amount = if self.is_native { coins(&reply)? } else { call::returned(&reply, read::number)? };
        Ok(Turn::Done(Units(amount)))
    }
}
