#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod address;
mod curve;
mod deposit;
pub mod external;
pub mod felt;
mod funding;
mod generation;
pub mod htlc;
mod key;
pub mod message;
mod payloads;
mod payment;
pub mod read;
pub mod reader;
pub mod received;
pub mod recover;
mod signature;
#[cfg(any(feature = "starknet-signer", feature = "starknet-rust-signer"))]
mod signer;
#[cfg(any(feature = "starknet-rs", feature = "starknet-rust"))]
mod starknet_rs;
mod summary;
pub mod transaction;
mod verify;

pub use countersign_core::{ApprovalStep, FundingPath, Gasless, SentBy, StarknetGeneration};
pub use deposit::{Approval, Deposit};
pub use funding::{KeyedPath, TxContext};
pub use key::Key;
pub use payloads::{InvokePayload, MessagePayload, Payload, SignedPayloads, Unsigned};
pub use signature::ExternalSignature;
#[cfg(feature = "starknet-rs")]
pub use starknet_core;
#[cfg(feature = "starknet-rust")]
pub use starknet_rust_core;
#[cfg(feature = "starknet-rust-signer")]
pub use starknet_rust_signers;
#[cfg(feature = "starknet-signer")]
pub use starknet_signers;
pub use starknet_types_core;
pub use starknet_types_core::felt::Felt;
pub use transaction::{
    Call, DataAvailabilityMode, ExecutionEncoding, Invoke, InvokeTransaction, ResourceBound, ResourceBounds, TransactionHashes,
};

use countersign_core::family::ChainFamily;
use countersign_core::{CallPayloads, Family, Policy, Proposal, Refusal, Registry};

#[cfg(any(feature = "starknet-signer", feature = "starknet-rust-signer"))]
pub use signer::SignerError;
#[cfg(feature = "starknet-rust-signer")]
pub use signer::ViaStarknetRust;

/// The Starknet family. It is the type parameter of the states in `countersign_core`.
///
/// Only this crate can make a value. With it the crate marks the payloads of a recovery as its own, so nobody else's can be signed as one.
///
/// ```compile_fail
/// let _ = countersign::starknet::Starknet(());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Starknet(());

impl ChainFamily for Starknet {
    const FAMILY: Family = Family::Starknet;
    const PAYLOAD_KEYS: &'static [&'static str] = CallPayloads::KEYS_WITH_LEGACY;
    type Deposit = Deposit;
    type Context = KeyedPath;
    type Unsigned = Unsigned;
    type Payload = Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;
    type Transaction = InvokeTransaction;

    fn gasless() -> Option<Self::Context> {
        Some(Gasless.into())
    }
}

/// A verified Starknet order: every felt of its payload is accounted for.
pub type VerifiedOrder = countersign_core::VerifiedOrder<Starknet>;
/// A prepared Starknet order, whose payloads any signer can sign.
pub type UnsignedOrder = countersign_core::UnsignedOrder<Starknet>;
/// A signed Starknet order: it has all its signatures.
pub type SignedOrder = countersign_core::SignedOrder<Starknet>;

/// Verifies an order whose source asset is on Starknet.
///
/// # Errors
///
/// Returns a [`Refusal`] that locates the first field or felt that differs: see [`countersign_core::verify`].
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    countersign_core::verify(proposal, registry, policy)
}
