//! Beside the newest parts of the Solana SDK. Of the same major version the types are the same; those of a newer one are
//! others, and a transaction goes there as bytes.

use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{solana_message, solana_signer};
use solana_keypair::Keypair;
use wincode::{ReadResult, WriteResult};

/// The bytes of a signed transaction, by the encoding of the wallet's own solana-transaction.
///
/// # Errors
///
/// None for what countersign has signed.
pub fn bytes(signed: &VersionedTransaction) -> WriteResult<Vec<u8>> {
    let signed: &beside::versioned::VersionedTransaction = signed;
    wincode::serialize(signed)
}

/// The same transaction in the types of the newest major version.
///
/// # Errors
///
/// None for what [`bytes`] wrote.
pub fn newest(bytes: &[u8]) -> ReadResult<newest::versioned::VersionedTransaction> {
    wincode::deserialize_exact(bytes)
}

/// The message that a signer of the SDK signs, and the signer that countersign asks.
pub fn signed_by(message: &solana_message::VersionedMessage, signer: &Keypair) -> impl AsRef<[u8]> + use<> {
    let message: &beside_message::VersionedMessage = message;
    solana_signer::Signer::sign_message(signer, &message.serialize())
}
