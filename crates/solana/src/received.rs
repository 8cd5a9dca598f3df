//! Signed transactions as wallets and nodes return them, and what transactions did.

use countersign_core::json::{self, Cursor};
use countersign_core::{Code, Refusal};
use solana_transaction::versioned::VersionedTransaction;

use crate::read;
pub use crate::read::TransactionEffect;

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

/// Parses what `getTransaction` returns with the encoding `base64`, `base58` or `json`: an object with `transaction` and `meta`, of which
/// `err`, `loadedAddresses` and `innerInstructions` are read. Other members are ignored. The message may be a legacy one, or one of version 0
/// or 1. There may be at most 512 instructions. The transaction may be that of any account, such as a member of a multisig, or a relay.
///
/// # Errors
///
/// The codes of malformed JSON; [`Code::MissingField`]; [`Code::WrongType`], also for too many entries and for the encoding `jsonParsed`;
/// [`Code::TransactionMalformed`] if the parts do not fit each other; the codes of malformed addresses; or [`Code::NumberTooLarge`].
pub fn effect(text: &[u8]) -> Result<TransactionEffect, Refusal> {
    let value = json::parse(text)?;
    TransactionEffect::read(&Cursor::root(&value, ""))
}
