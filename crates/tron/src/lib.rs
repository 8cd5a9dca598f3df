#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod address;
mod deposit;
pub mod htlc;
pub mod message;
mod payment;
pub mod reader;
pub mod received;
pub mod recover;
mod summary;
pub mod transaction;
mod verify;

pub use address::Address;
pub use alloy_primitives;
pub use countersign_evm_core::funding::ApprovalPlan;
pub use countersign_evm_core::read;
pub use countersign_evm_core::signature::{ExternalSignature, Key};
pub use deposit::{Approval, Call, Deposit};
pub use prost;
pub use transaction::{Payload, Permission, PermissionKey, SignedPayloads, SignedTronTransaction, TronTransaction, TxContext, Unsigned};

pub use countersign_core::{ApprovalStep, FundingPath, Gasless, SentBy};

use countersign_core::family::ChainFamily;
use countersign_core::{Account, CallPayloads, Family, Policy, Proposal, Refusal, Registry};

/// The Tron family. It is the type parameter of the states in `countersign_core`.
///
/// Only this crate can make a value. With it the crate marks the payloads of a recovery as its own, so nobody else's can be signed as one.
///
/// ```compile_fail
/// let _ = countersign::tron::Tron(());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Tron(());

impl ChainFamily for Tron {
    const FAMILY: Family = Family::Tron;
    const PAYLOAD_KEYS: &'static [&'static str] = CallPayloads::KEYS;
    type Deposit = Deposit;
    type Context = FundingPath<TxContext>;
    type Unsigned = Unsigned;
    type Payload = Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;
    type Transaction = SignedTronTransaction;

    fn gasless() -> Option<Self::Context> {
        Some(Gasless.into())
    }

    fn account(key: &Key) -> Option<Account> {
        Some(Address::from(key.address()).to_account())
    }
}

/// A verified Tron order: every byte of its payload is accounted for.
pub type VerifiedOrder = countersign_core::VerifiedOrder<Tron>;
/// A prepared Tron order, whose payloads any signer can sign.
pub type UnsignedOrder = countersign_core::UnsignedOrder<Tron>;
/// A signed Tron order: it has all its signatures.
pub type SignedOrder = countersign_core::SignedOrder<Tron>;

/// Verifies an order whose source asset is on Tron.
///
/// # Errors
///
/// Returns a [`Refusal`] that locates the first field or byte that differs: see [`countersign_core::verify`].
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    countersign_core::verify(proposal, registry, policy)
}
