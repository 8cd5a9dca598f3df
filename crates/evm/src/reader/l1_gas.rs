//! The gas that a transaction on an Arbitrum chain uses for its data on the chain below.
//!
//! Arbitrum charges for data as gas, within the transaction's own gas limit. The amount depends on the prices of both chains, so a constant
//! cannot cover it. With too low a limit, a redemption runs out of gas after its secret is public.
//!
//! Specification: `docs/spec/chains.md#the-fee-of-the-chain-below`.

use alloy_primitives::{Address, B256, address, b256};
use countersign_core::reader::{Agree, Ask, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::block::LATEST;
use super::{MAX_ANSWER, OnChain, call, returned};
use crate::{htlc, read};

/// The address at which the nodes of Arbitrum chains answer questions that no contract can.
const NODE_INTERFACE: Address = address!("00000000000000000000000000000000000000C8");

/// An order id and a secret that compress as badly as real ones: the first 512 bits of the fraction of pi.
const ORDER_ID: B256 = b256!("243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89");
const SECRET: B256 = b256!("452821e638d01377be5466cf34e90c6cc0ac29b7c97c50dd3f84d5b5b5470917");

/// A redemption of this HTLC. It is asked about with another order and another secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a question")]
pub struct RedemptionOf(pub Address);

/// The gas that an endpoint states for the data of a redemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "what an endpoint states")]
pub struct L1Gas(pub u64);

impl Agree for L1Gas {
    type Key = ();

    /// Estimates differ between honest endpoints.
    fn key(&self) {}
}

/// Asks for the gas of the data of a redemption.
pub type L1GasEstimation = Ask<OnChain<RedemptionOf>>;

impl Question for OnChain<RedemptionOf> {
    type Output = L1Gas;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let RedemptionOf(contract) = self.subject;
        let redemption = htlc::redeem(ORDER_ID.0, &SECRET.0);
        vec![call(NODE_INTERFACE, &read::l1_gas_call(contract, redemption.into()), &json!(LATEST))]
    }

    /// A chain that answers with nothing, or does not know the function, has no such gas. A liar gains nothing by saying so, because it can as
    /// well state 0.
    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<L1Gas, Fault> {
        let reply = replies.get(0)?;
        let Some(answer) = returned(&reply, MAX_ANSWER)?.filter(|answer| !answer.is_empty()) else { return Ok(L1Gas(0)) };
        let cursor = reply.json()?;
        Ok(L1Gas(read::l1_gas(&answer).ok_or_else(|| cursor.at().refuse(Code::WrongType))?))
    }
}
