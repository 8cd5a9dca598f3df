#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod address;
#[cfg(feature = "alloy-signer")]
mod alloy;
pub mod claim;
mod deposit;
pub mod external;
mod gas;
mod generation;
pub mod htlc;
pub mod message;
mod payment;
pub mod reader;
pub mod received;
pub mod recover;
mod summary;
pub mod transaction;
mod verify;

pub use alloy_consensus;
pub use alloy_dyn_abi;
pub use alloy_eips;
pub use alloy_primitives;
pub use countersign_evm_core::funding::ApprovalPlan;
pub use countersign_evm_core::read;
pub use countersign_evm_core::signature::{ExternalSignature, Key};
pub use deposit::{Approval, Call, Deposit, OwnerPath};
pub use received::{CallReceipt, CallsStatus};
pub use transaction::{EvmTransaction, Fees, Payload, SignedPayloads, TxContext, Unsigned};

pub use countersign_core::{ApprovalStep, FundingPath, Gasless, SentBy};

use countersign_core::family::ChainFamily;
use countersign_core::{Account, CallPayloads, Family, Policy, Proposal, Refusal, Registry};

#[cfg(feature = "alloy-signer")]
pub use alloy::{SignerError, ViaWallet};

/// The EVM family. It is the type parameter of the states in `countersign_core`.
///
/// Only this crate can make a value. With it the crate marks the payloads of a recovery as its own, so nobody else's can be signed as one.
///
/// ```compile_fail
/// let _ = countersign::evm::Evm(());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Evm(());

impl ChainFamily for Evm {
    const FAMILY: Family = Family::Evm;
    const PAYLOAD_KEYS: &'static [&'static str] = CallPayloads::KEYS_WITH_LEGACY;
    type Deposit = Deposit;
    type Context = OwnerPath;
    type Unsigned = Unsigned;
    type Payload = Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;
    type Transaction = alloy_consensus::TxEnvelope;

    fn gasless() -> Option<Self::Context> {
        Some(Gasless.into())
    }

    fn account(key: &Key) -> Option<Account> {
        Some(address::to_account(key.address()))
    }
}

/// A verified EVM order: every byte of its payload is accounted for.
pub type VerifiedOrder = countersign_core::VerifiedOrder<Evm>;
/// A prepared EVM order, whose payloads any signer can sign.
pub type UnsignedOrder = countersign_core::UnsignedOrder<Evm>;
/// A signed EVM order: it has all its signatures.
pub type SignedOrder = countersign_core::SignedOrder<Evm>;

/// Verifies an order whose source asset is on an EVM chain.
///
/// # Errors
///
/// Returns a [`Refusal`] that locates the first field or byte that differs: see [`countersign_core::verify`].
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    countersign_core::verify(proposal, registry, policy)
}
