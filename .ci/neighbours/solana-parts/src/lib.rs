//! countersign with the newest parts of the Solana SDK. With the same major version, the types are the same. With a
//! newer one they differ, so transactions are passed as bytes in both directions.

use std::error::Error;

use countersign::solana::{Gasless, SignedOrder, UnsignedOrder, VerifiedOrder};
use countersign::{Role, SignerError, SigningRequest};
use newest_signer::Signer as _;
use solana_keypair::Keypair;
use wincode::{ReadResult, WriteResult};

/// Returns the bytes of each signed transaction, encoded by the wallet's own solana-transaction.
///
/// # Errors
///
/// Never fails for transactions that countersign has signed.
pub fn bytes(signed: &SignedOrder) -> WriteResult<Vec<Vec<u8>>> {
    let natives = signed.transactions().into_iter().map(|transaction| -> beside::versioned::VersionedTransaction { transaction.native });
    natives.map(|native| wincode::serialize(&native)).collect()
}

/// Returns the same transactions in the types of the newest major version.
///
/// # Errors
///
/// Never fails for transactions that countersign has signed.
pub fn newest(signed: &SignedOrder) -> ReadResult<Vec<newest::versioned::VersionedTransaction>> {
    signed.transactions().iter().map(|transaction| wincode::deserialize_exact(&transaction.bytes)).collect()
}

/// Compares a transaction of the newest major version, signed by an external wallet, with the order.
///
/// # Errors
///
/// Returns the refusal of any other transaction.
pub fn role(order: &VerifiedOrder, sent: &newest::versioned::VersionedTransaction) -> Result<Role, Box<dyn Error>> {
    Ok(order.matches_bytes(&wincode::serialize(sent)?)?)
}

/// Signs the gasless transaction with signers from both major versions of the SDK. The compiler infers each signer's
/// version.
///
/// # Errors
///
/// Returns a refusal, or the signer's error.
pub fn sign_gasless(order: &VerifiedOrder, signer: &Keypair, newest: &newest_keypair::Keypair) -> Result<[SignedOrder; 2], Box<dyn Error>> {
    let mut unsigned: UnsignedOrder = order.prepare(Gasless)?;
    unsigned.sign_with(signer)?;
    let mut other: UnsignedOrder = order.prepare(Gasless)?;
    other.sign_with(newest)?;
    Ok([unsigned.finish()?, other.finish()?])
}

/// Signs without a feature: the signer receives bytes and returns bytes.
///
/// # Errors
///
/// Returns a refusal, or the signer's error.
pub fn sign_bytes(
    order: &VerifiedOrder,
    signer: &newest_keypair::Keypair,
) -> Result<UnsignedOrder, SignerError<newest_signer::SignerError>> {
    let mut unsigned: UnsignedOrder = order.prepare(Gasless).map_err(SignerError::Refused)?;
    unsigned.sign_with_fn(|request| signer.try_sign_message(&request.message).map(<[u8; 64]>::from))?;
    Ok(unsigned)
}

/// Returns the messages that an order asks a wallet to sign, in the wallet's own type.
#[must_use]
pub fn messages(unsigned: &UnsignedOrder) -> Vec<beside_message::VersionedMessage> {
    unsigned.requests().into_iter().map(|SigningRequest { payload, .. }| payload).map(|transaction| transaction.message).collect()
}
