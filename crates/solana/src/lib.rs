#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(any(feature = "solana-transaction-4", feature = "solana-transaction-5", feature = "solana-transaction-6")))]
compile_error!("countersign-solana needs one of the features solana-transaction-4, solana-transaction-5 and solana-transaction-6");

#[cfg(feature = "solana-transaction-4")]
pub extern crate solana_instruction_3 as solana_instruction;
#[cfg(all(not(feature = "solana-transaction-4"), any(feature = "solana-transaction-5", feature = "solana-transaction-6")))]
pub extern crate solana_instruction_4 as solana_instruction;
#[cfg(feature = "solana-transaction-4")]
pub extern crate solana_message_4 as solana_message;
#[cfg(all(feature = "solana-transaction-5", not(feature = "solana-transaction-4")))]
pub extern crate solana_message_5 as solana_message;
#[cfg(all(feature = "solana-transaction-6", not(any(feature = "solana-transaction-4", feature = "solana-transaction-5"))))]
pub extern crate solana_message_6 as solana_message;
#[cfg(feature = "solana-transaction-4")]
pub extern crate solana_transaction_4 as solana_transaction;
#[cfg(all(feature = "solana-transaction-5", not(feature = "solana-transaction-4")))]
pub extern crate solana_transaction_5 as solana_transaction;
#[cfg(all(feature = "solana-transaction-6", not(any(feature = "solana-transaction-4", feature = "solana-transaction-5"))))]
pub extern crate solana_transaction_6 as solana_transaction;

pub mod address;
mod allowed;
mod deposit;
mod encoding;
mod external;
mod fees;
pub mod htlc;
mod lighthouse;
pub mod message;
mod nonce;
mod payment;
pub mod read;
pub mod reader;
pub mod received;
pub mod recover;
mod sign;
#[cfg(any(feature = "solana-signer-3", feature = "solana-signer-4"))]
mod signer;
mod summary;
pub mod transaction;
mod verify;
mod wire;

pub use address::Address;
pub use allowed::AllowedInstruction;
pub use countersign_core::{FundingPath, Gasless, SentBy};
pub use deposit::{Deposit, ProposedInstruction, ProposedTransaction};
pub use fees::{MAX_COMPUTE_UNIT_LIMIT, MAX_COMPUTE_UNIT_PRICE, PriorityFee};
pub use nonce::DurableNonce;
pub use sign::{ExternalSignature, Key, SignedPayloads};
#[cfg(feature = "solana-signer")]
pub use signer::SignerError4 as SignerError;
#[cfg(feature = "solana-signer-3")]
pub use signer::{Signer3, SignerError3};
#[cfg(feature = "solana-signer-4")]
pub use signer::{Signer4, SignerError4};
pub use solana_hash;
pub use solana_signature;
#[cfg(feature = "solana-signer-3")]
pub use solana_signer_3;
#[cfg(feature = "solana-signer-4")]
pub use solana_signer_4;
#[cfg(feature = "solana-signer")]
pub use solana_signer_4 as solana_signer;
pub use transaction::{TransactionPayload, TxContext, Unsigned};
pub use wire::Encoding;

use countersign_core::family::ChainFamily;
use countersign_core::{Account, Family, Policy, Proposal, Refusal, Registry};

/// The Solana family. It is the type parameter of the states in `countersign_core`.
///
/// Only this crate can make a value. With it the crate marks the payloads of a recovery as its own, so nobody else's can be signed as one.
///
/// ```compile_fail
/// let _ = countersign::solana::Solana(());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Solana(());

impl ChainFamily for Solana {
    const FAMILY: Family = Family::Solana;
    const PAYLOAD_KEYS: &'static [&'static str] = &[wire::TRANSACTION, wire::GASLESS];
    type Deposit = Deposit;
    type Context = FundingPath<TxContext>;
    type Unsigned = Unsigned;
    type Payload = solana_transaction::versioned::VersionedTransaction;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;
    type Transaction = solana_transaction::versioned::VersionedTransaction;

    fn gasless() -> Option<Self::Context> {
        Some(Gasless.into())
    }

    fn account(key: &Key) -> Option<Account> {
        Some(address::to_account(key.address()))
    }
}

/// A verified Solana order: every byte of its payload is accounted for.
pub type VerifiedOrder = countersign_core::VerifiedOrder<Solana>;
/// A prepared Solana order, whose payloads any signer can sign.
pub type UnsignedOrder = countersign_core::UnsignedOrder<Solana>;
/// A signed Solana order: it has all its signatures.
pub type SignedOrder = countersign_core::SignedOrder<Solana>;

/// Verifies an order whose source asset is on Solana.
///
/// # Errors
///
/// Returns a [`Refusal`] that locates the first field or byte that differs: see [`countersign_core::verify`].
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder, Refusal> {
    countersign_core::verify(proposal, registry, policy)
}
