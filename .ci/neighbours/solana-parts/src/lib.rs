//! Beside the newest parts of the Solana SDK. Of the same major version the types are the same; those of a newer one are
//! others, and a transaction goes there as bytes.

use countersign::solana::{Gasless, SignedOrder, UnsignedOrder, VerifiedOrder};
use countersign::{Refusal, SigningRequest};
use solana_keypair::Keypair;
use wincode::{ReadResult, WriteResult};

/// The bytes of each signed transaction, by the encoding of the wallet's own solana-transaction.
///
/// # Errors
///
/// None for what countersign has signed.
pub fn bytes(signed: &SignedOrder) -> WriteResult<Vec<Vec<u8>>> {
    let natives = signed.transactions().into_iter().map(|transaction| -> beside::versioned::VersionedTransaction { transaction.native });
    natives.map(|native| wincode::serialize(&native)).collect()
}

/// The same transactions in the types of the newest major version.
///
/// # Errors
///
/// None for what countersign has signed.
pub fn newest(signed: &SignedOrder) -> ReadResult<Vec<newest::versioned::VersionedTransaction>> {
    signed.transactions().iter().map(|transaction| wincode::deserialize_exact(&transaction.bytes)).collect()
}

/// Has a signer of the SDK sign the gasless transaction.
///
/// # Errors
///
/// A refusal, also of the signer.
pub fn sign_gasless(order: &VerifiedOrder, signer: &Keypair) -> Result<SignedOrder, Refusal> {
    let mut unsigned: UnsignedOrder = order.prepare(Gasless)?;
    unsigned.sign_with(signer).map_err(|_| Refusal::new(countersign::Code::KeyMismatch, ""))?;
    Ok(unsigned.finish()?)
}

/// The messages that an order asks a wallet to sign, in the wallet's own type.
#[must_use]
pub fn messages(unsigned: &UnsignedOrder) -> Vec<beside_message::VersionedMessage> {
    unsigned.requests().into_iter().map(|SigningRequest { payload, .. }| payload).map(|transaction| transaction.message).collect()
}
