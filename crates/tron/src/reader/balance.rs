//! Reads balances and allowances.

use alloy_primitives::U256;
use countersign_core::Refusal;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_evm_core::read;

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

/// Reads a balance or an allowance. Endpoints must show the same amount.
pub type Balance = Ask<OnChain<BalanceOf>>;

impl Question for OnChain<BalanceOf> {
    type Output = Equal<U256>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![match self.subject {
            BalanceOf::Coins { owner } => coins_request(owner),
            BalanceOf::Tokens { token, owner } => Call::view(token, read::balance_call(owner.bytes())).request(View::Newest),
            BalanceOf::Allowance { token, owner, spender } => {
                Call::view(token, read::allowance_call(owner.bytes(), spender.bytes())).request(View::Newest)
            }
        }]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<U256>, Fault> {
        let reply = replies.get(0)?;
        Ok(Equal(match self.subject {
            BalanceOf::Coins { .. } => coins(&reply)?,
            BalanceOf::Tokens { .. } | BalanceOf::Allowance { .. } => call::returned(&reply, read::number)?,
        }))
    }
}
