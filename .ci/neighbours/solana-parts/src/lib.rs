//! Beside the newest parts of the Solana SDK. Of the same major version the types are the same; those of a newer one are
//! others, and a transaction goes there, and comes back, as bytes.

use std::error::Error;

use countersign::solana::{Gasless, SignedOrder, UnsignedOrder, VerifiedOrder};
use countersign::{Role, SignerError, SigningRequest};
use newest_signer::Signer as _;
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

/// Compares a transaction of the newest major version, which an external wallet signed, with the order.
///
/// # Errors
///
/// A refusal of any other transaction.
pub fn role(order: &VerifiedOrder, sent: &newest::versioned::VersionedTransaction) -> Result<Role, Box<dyn Error>> {
    Ok(order.matches_bytes(&wincode::serialize(sent)?)?)
}

/// Has signers of both major versions of the SDK sign the gasless transaction. The compiler finds which one each is of.
///
/// # Errors
///
/// A refusal, also of a signer.
pub fn sign_gasless(order: &VerifiedOrder, signer: &Keypair, newest: &newest_keypair::Keypair) -> Result<[SignedOrder; 2], Box<dyn Error>> {
    let mut unsigned: UnsignedOrder = order.prepare(Gasless)?;
    unsigned.sign_with(signer)?;
    let mut other: UnsignedOrder = order.prepare(Gasless)?;
    other.sign_with(newest)?;
    Ok([unsigned.finish()?, other.finish()?])
}

/// The same without a feature: the signer gets bytes, and returns bytes.
///
/// # Errors
///
/// A refusal, or an error of the signer.
pub fn sign_bytes(
    order: &VerifiedOrder,
    signer: &newest_keypair::Keypair,
) -> Result<UnsignedOrder, SignerError<newest_signer::SignerError>> {
    let mut unsigned: UnsignedOrder = order.prepare(Gasless).map_err(SignerError::Refused)?;
    unsigned.sign_with_fn(|request| signer.try_sign_message(&request.message).map(<[u8; 64]>::from))?;
    Ok(unsigned)
}

/// The messages that an order asks a wallet to sign, in the wallet's own type.
#[must_use]
pub fn messages(unsigned: &UnsignedOrder) -> Vec<beside_message::VersionedMessage> {
    unsigned.requests().into_iter().map(|SigningRequest { payload, .. }| payload).map(|transaction| transaction.message).collect()
}
