//! What an endpoint must serve, and a token must show, for an order to be judged later.

use alloy_primitives::{Address, U256};
use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Request, check_balance, check_worth};
use countersign_core::{ChainProfile, Code, Finality, Refusal};
use countersign_evm_core::transfer::check_decimals;
use serde_json::json;

use super::block::{self, Block};
use super::htlc::ARBITRUM_NOVA;
use super::l1_fee::L1Fee;
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
    /// The coins of an account for a redemption: at least what its gas costs, and its [fee for the chain below](super::has_l1_fee).
    Coins {
        /// The account.
        account: Address,
        /// What the gas costs, in wei.
        gas_cost: U256,
    },
    /// That a payout in the chain's own coin is worth more than its redemption costs: the gas, and the fee for the chain below. On a chain
    /// without such a fee nothing is asked.
    Worth {
        /// The payout, in wei.
        payout: U256,
        /// What the gas costs, in wei.
        gas_cost: U256,
    },
}

/// Checks that an endpoint shows what is needed. A refusal has the code [`Code::FinalityMarkMissing`], [`Code::LowerHeightMissing`],
/// [`Code::DecimalsDiffer`], [`Code::InsufficientFunds`] or [`Code::FeeAbovePayout`].
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
            Served::Coins { account, .. } => {
                let fee = L1Fee::of_redemption(self.chain_id).map(L1Fee::request);
                std::iter::once(balance(account, None, &json!(block::LATEST))).chain(fee).collect()
            }
            Served::Worth { .. } => L1Fee::of_redemption(self.chain_id).map(L1Fee::request).into_iter().collect(),
        }
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let cost = |gas_cost: U256, place| {
            let fee = L1Fee::of_redemption(self.chain_id).map_or(Ok(U256::ZERO), |fee| fee.read(replies, place))?;
            Ok::<_, Fault>(gas_cost.saturating_add(fee))
        };
        Ok(Judged(match self.subject {
            Served::Mark(finality) => match Block::read(&replies.json(0)?)? {
                Some(_) => Ok(()),
                None => Err(Refusal::new(Code::FinalityMarkMissing, "/finality").with_expected(finality.to_string())),
            },
            Served::LowerHeight => match Block::read(&replies.json(0)?)? {
                Some(Block { l1_number: Some(_), .. }) => Ok(()),
                _ => Err(Refusal::new(Code::LowerHeightMissing, "/l1BlockNumber")),
            },
            Served::Coins { gas_cost, .. } => {
                let (has, what) = (replies.json(0)?.hex_number()?, "of the chain's own coin for the fee of a redemption");
                check_balance("/balance", what, cost(gas_cost, 1)?, has)
            }
            Served::Worth { payout, gas_cost } => check_worth(payout, cost(gas_cost, 0)?),
            Served::Decimals { decimals, .. } => {
                check_decimals(decimals, returned(&replies.get(0)?, MAX_ANSWER)?.and_then(|answer| read::number(&answer).ok()))
            }
        }))
    }
}
