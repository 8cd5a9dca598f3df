#![doc = include_str!("../README.md")]

pub mod address;
pub mod htlc;
pub mod message;
pub mod recover;
mod summary;
pub mod transaction;
mod verify;

pub use address::Address;
pub use alloy_primitives;
pub use countersign_abi::funding::ApprovalPlan;
pub use countersign_abi::read;
pub use countersign_abi::signature::{ExternalSignature, Key};
pub use prost;
pub use transaction::{Calls, Payload, SignedPayloads, SignedTronTransaction, TronTransaction, Unsigned};
pub use verify::{Approval, Call, Deposit};

pub use countersign_core::{ApprovalStep, FundingPath, Gasless};

use countersign_core::family::ChainFamily;
use countersign_core::{CallPayloads, Family, Policy, Proposal, Refusal, Registry};

/// The Tron family: see the crate's documentation.
#[derive(Debug, Clone, Copy)]
pub enum Tron {}

impl ChainFamily for Tron {
    const FAMILY: Family = Family::Tron;
    const PAYLOAD_KEYS: &'static [&'static str] = CallPayloads::KEYS;
    type Deposit = Deposit;
}

/// A Tron order whose every byte is accounted for.
pub type VerifiedOrder = countersign_core::VerifiedOrder<Tron>;
/// A Tron order with payloads for any signer.
pub type UnsignedOrder = countersign_core::UnsignedOrder<Tron>;
/// A Tron order with all its signatures.
pub type SignedOrder = countersign_core::SignedOrder<Tron>;

/// Verifies an order whose source asset is on Tron.
///
/// # Errors
///
/// A [`Refusal`] at the first member or byte that differs: see [`countersign_core::verify`].
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    countersign_core::verify(proposal, registry, policy)
}
