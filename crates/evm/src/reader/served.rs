//! What an endpoint must serve, and a token must show, for an order to be judged later.

use alloy_primitives::{Address, U256};
use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Request, check_balance};
use countersign_core::{ChainProfile, Code, Finality, Refusal};
use countersign_evm_core::transfer::check_decimals;
use serde_json::json;

use super::block::{self, Block};
use super::htlc::ARBITRUM_NOVA;
use super::{MAX_ANSWER, OnChain, balance, call, returned};
use crate::read;

/// What the evidence about an order, or its display, will depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Served {
    /// The mark of blocks that are safe or final.
    Mark(Finality),
    /// The height of the chain below.
    LowerHeight,
    /// The decimals of a token, as they are pinned.
    Decimals {
        /// The token.
        token: Address,
        /// The decimals.
        decimals: u8,
    },
    /// The coins of an account: at least this much, in wei.
    Coins {
        /// The account.
        account: Address,
        /// The amount.
        at_least: U256,
    },
}

/// Checks that an endpoint shows what is needed. A refusal has the code [`Code::FinalityMarkMissing`], [`Code::LowerHeightMissing`],
/// [`Code::DecimalsDiffer`] or [`Code::InsufficientFunds`].
pub type ServedCheck = Ask<OnChain<Served>>;

/// Returns whether contracts of a chain may count the blocks of the chain below, so that headers must show its height.
#[must_use]
pub const fn needs_lower_height(chain_id: u64, profile: &ChainProfile) -> bool {
    profile.has_l1_number || chain_id == ARBITRUM_NOVA
}

impl Question for OnChain<Served> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        match self.subject {
            Served::Mark(Finality::Finalized) => vec![block::by_tag(block::FINALIZED)],
            Served::Mark(_) => vec![block::by_tag(block::SAFE)],
            Served::LowerHeight => vec![block::by_tag(block::LATEST)],
            Served::Decimals { token, .. } => vec![call(token, &read::decimals_call(), &json!(block::LATEST))],
            Served::Coins { account, .. } => vec![balance(account, None, &json!(block::LATEST))],
        }
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        Ok(Judged(match self.subject {
            Served::Mark(finality) => match Block::read(&replies.json(0)?)? {
                Some(_) => Ok(()),
                None => Err(Refusal::new(Code::FinalityMarkMissing, "/finality").with_expected(finality.to_string())),
            },
            Served::LowerHeight => match Block::read(&replies.json(0)?)? {
                Some(Block { l1_number: Some(_), .. }) => Ok(()),
                _ => Err(Refusal::new(Code::LowerHeightMissing, "/l1BlockNumber")),
            },
            Served::Coins { at_least, .. } => {
                check_balance("/balance", "of the chain's own coin for the fee of a redemption", at_least, replies.json(0)?.hex_number()?)
            }
            Served::Decimals { decimals, .. } => {
                check_decimals(decimals, returned(&replies.get(0)?, MAX_ANSWER)?.and_then(|answer| read::number(&answer).ok()))
            }
        }))
    }
}
