#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod address;
pub mod balance;
mod deposit;
mod gas;
pub mod htlc;
mod key;
mod kind;
pub mod read;
pub mod reader;
pub mod received;
pub mod recover;
mod sign;
mod signature;
#[cfg(feature = "sui-signer")]
mod signer;
mod summary;
pub mod transaction;
mod verify;

pub use countersign_core::SentBy;
pub use deposit::Deposit;
pub use gas::{Coin, MAX_GAS_COINS, TxContext};
pub use key::Key;
pub use received::Execution;
pub use sign::SignedPayloads;
pub use signature::ExternalSignature;
#[cfg(feature = "sui-signer")]
pub use signer::SignerError;
#[cfg(feature = "sui-signer")]
pub use sui_crypto;
pub use sui_sdk_types;
pub use transaction::Unsigned;

use countersign_core::family::ChainFamily;
use countersign_core::{Account, Family, Policy, Proposal, Refusal, Registry};

/// The Sui family. It is the type parameter of the states in `countersign_core`.
///
/// Only this crate can make a value. With it the crate marks the payloads of a recovery as its own, so nobody else's can be signed as one.
///
/// ```compile_fail
/// let _ = countersign::sui::Sui(());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Sui(());

impl ChainFamily for Sui {
    const FAMILY: Family = Family::Sui;
    const PAYLOAD_KEYS: &'static [&'static str] = &[deposit::PAYLOAD_KEY];
    type Deposit = Deposit;
    type Context = TxContext;
    type Unsigned = Unsigned;
    type Payload = sui_sdk_types::Transaction;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;
    type Transaction = sui_sdk_types::SignedTransaction;

    fn account(key: &Key) -> Option<Account> {
        Some(address::to_account(key.address()))
    }
}

/// A verified Sui order: every byte of its payload is accounted for.
pub type VerifiedOrder = countersign_core::VerifiedOrder<Sui>;
/// A prepared Sui order, whose payload any signer can sign.
pub type UnsignedOrder = countersign_core::UnsignedOrder<Sui>;
/// A signed Sui order: it has all its signatures.
pub type SignedOrder = countersign_core::SignedOrder<Sui>;

/// Verifies an order whose source asset is on Sui.
///
/// # Errors
///
/// Returns a [`Refusal`] that locates the first field or byte that differs: see [`countersign_core::verify`].
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    countersign_core::verify(proposal, registry, policy)
}
