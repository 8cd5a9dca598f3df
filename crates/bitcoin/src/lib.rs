#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod address;
pub mod chain;
mod curve;
mod deposit;
pub mod htlc;
pub mod reader;
pub mod received;
pub mod recover;
pub mod sign;
mod summary;
pub mod transaction;
pub mod uri;
mod verify;

pub use address::{Chain, Destination};
pub use bitcoin;
pub use deposit::Deposit;
pub use sign::{ExternalSignature, Key, Payload, SignedPayment};
pub use transaction::{ChangeRule, FeeRate, KeyOrigin, Payment, Selection, Spend, TxContext, TxOrdering, Unsigned, Utxo};

use countersign_core::family::ChainFamily;
use countersign_core::{Family, Policy, Proposal, Refusal, Registry};

/// The Bitcoin family, which includes Litecoin. It is the type parameter of the states in `countersign_core`.
///
/// Only this crate can make a value. With it the crate marks the payloads of a recovery as its own, so nobody else's can be signed as one.
///
/// ```compile_fail
/// let _ = countersign::bitcoin::Bitcoin(());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Bitcoin(());

impl ChainFamily for Bitcoin {
    const FAMILY: Family = Family::Bitcoin;
    const PAYLOAD_KEYS: &'static [&'static str] = &["to", "amount"];
    type Deposit = Deposit;
    type Context = TxContext;
    type Unsigned = Unsigned;
    type Payload = Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayment;
    type Transaction = bitcoin::Transaction;
}

/// A verified Bitcoin or Litecoin order: every field of its payload is accounted for.
pub type VerifiedOrder = countersign_core::VerifiedOrder<Bitcoin>;
/// A prepared Bitcoin or Litecoin order, whose payment any signer can sign.
pub type UnsignedOrder = countersign_core::UnsignedOrder<Bitcoin>;
/// A signed Bitcoin or Litecoin order: it has all its signatures.
pub type SignedOrder = countersign_core::SignedOrder<Bitcoin>;

/// Verifies an order whose source asset is on Bitcoin or Litecoin.
///
/// # Errors
///
/// Returns a [`Refusal`] that locates the first field or byte that differs: see [`countersign_core::verify`].
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    countersign_core::verify(proposal, registry, policy)
}
