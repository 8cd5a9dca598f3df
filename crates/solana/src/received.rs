//! Signed transactions as wallets and nodes return them.

use countersign_core::{Code, Refusal};
use solana_transaction::versioned::VersionedTransaction;

use crate::read;

/// Decodes a transaction, with a legacy message or one of version 0 or 1, from its bytes, as wallets return it and as `getTransaction` does
/// in base64. The bytes are the same for every version of the Solana SDK.
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::solana::VerifiedOrder, from_wallet: &[u8]) -> Result<(), Refusal> {
/// use countersign::solana::received;
///
/// let transaction = received::from_bytes(from_wallet)?;
/// let role = order.matches(&transaction)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Code::TransactionMismatch`] if the bytes are not exactly one such transaction.
pub fn from_bytes(bytes: &[u8]) -> Result<VersionedTransaction, Refusal> {
    let not_one = || Refusal::new(Code::TransactionMismatch, "").with_reason("the bytes are not one transaction");
    read::transaction(bytes).ok_or_else(not_one)
}
