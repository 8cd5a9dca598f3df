//! Beside Mysten's own crates: their keys sign the transaction that countersign made.

use beside::{Transaction, UserSignature};
use countersign::sui::sui_sdk_types;
use sui_crypto::ed25519::Ed25519PrivateKey;
use sui_crypto::{SignatureError, SuiSigner};

/// Signs a prepared transaction.
///
/// # Errors
///
/// None with a key in memory.
pub fn sign(key: &Ed25519PrivateKey, transaction: &sui_sdk_types::Transaction) -> Result<UserSignature, SignatureError> {
    let transaction: &Transaction = transaction;
    key.sign_transaction(transaction)
}
