//! The fee that a transaction on an OP-stack chain pays beside its gas, for its data on the chain below.
//!
//! Nodes refuse a transaction whose sender cannot pay it. So whatever needs coins for gas needs the coins for this fee, too.
//!
//! Specification: `docs/spec/chains.md#the-fee-of-the-chain-below`.

use alloy_primitives::{Address, U256, address};
use countersign_core::reader::{Fault, Replies, Request};
use countersign_core::{ChainProfile, Code, Network};
use serde_json::json;

use super::block::LATEST;
use super::{MAX_ANSWER, call, returned};
use crate::{htlc, read};

/// The contract `GasPriceOracle`, which every OP-stack chain has at this address from its first block.
const ORACLE: Address = address!("420000000000000000000000000000000000000F");

/// The maximum length in bytes of an unsigned transaction without its calldata: its type, the header of the list, chain id, nonce, tip, fee
/// cap, gas limit, receiver, value, the header of the calldata, and an empty access list.
const ENVELOPE: usize = 1 + 4 + 9 + 9 + 17 + 17 + 9 + 21 + 33 + 4 + 1;

/// The question for the fee of some transactions of one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct L1Fee {
    /// The size in bytes of the largest one, unsigned.
    size: u64,
    count: u64,
}

impl L1Fee {
    /// Returns the question for transactions with calldata of these lengths; `None` if the chain charges no such fee, or of no transaction.
    pub(super) fn of(chain_id: u64, calldata: impl IntoIterator<Item = usize>) -> Option<Self> {
        if !has_l1_fee(chain_id) {
            return None;
        }
        let (mut largest, mut count) = (None, 0_u64);
        for length in calldata {
            (largest, count) = (largest.max(Some(length)), count.saturating_add(1));
        }
        let size = u64::try_from(largest?.saturating_add(ENVELOPE)).unwrap_or(u64::MAX);
        Some(Self { size, count })
    }

    /// Returns the question for one redemption.
    pub(super) fn of_redemption(chain_id: u64) -> Option<Self> {
        Self::of(chain_id, [htlc::redeem([0; 32], &[0; 32]).len()])
    }

    pub(super) fn request(self) -> Request {
        call(ORACLE, &read::l1_fee_call(self.size), &json!(LATEST))
    }

    /// Reads the fee of all transactions, in wei.
    ///
    /// Where the address has no contract, or one that does not have the function, nobody states such a fee: it is 0. A liar gains nothing by
    /// saying so, because it can as well state 0. Any other answer means that the fee is not known.
    pub(super) fn read(self, replies: &Replies<'_>, place: usize) -> Result<U256, Fault> {
        let reply = replies.get(place)?;
        let Some(returned) = returned(&reply, MAX_ANSWER)?.filter(|bytes| !bytes.is_empty()) else { return Ok(U256::ZERO) };
        let cursor = reply.json()?;
        let fee = read::number(&returned).map_err(|unclear| cursor.at().refuse(Code::WrongType).with_reason(unclear.to_string()))?;
        Ok(fee.saturating_mul(U256::from(self.count)))
    }
}

/// Returns whether a transaction on a chain pays a fee for the chain below beside its gas.
#[must_use]
pub fn has_l1_fee(chain_id: u64) -> bool {
    ChainProfile::of_network(&Network::Evm(chain_id)).has_l1_fee
}
