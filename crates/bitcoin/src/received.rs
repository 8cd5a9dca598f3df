//! Signed transactions as wallets and nodes return them.

use bitcoin::Transaction;
use bitcoin::consensus::encode;
use countersign_core::{Code, Refusal};

/// How the bytes of a PSBT begin (BIP 174).
const PSBT: &[u8] = b"psbt\xff";

/// Decodes a transaction from its bytes in consensus encoding, as `getrawtransaction` returns them in hex.
///
/// ```
/// # use countersign_core::Refusal;
/// # fn check(order: &countersign_bitcoin::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign_bitcoin::received;
///
/// let role = order.matches(&received::from_bytes(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Code::TransactionMismatch`] if the bytes are not exactly one transaction. A PSBT is not one: see
/// [`Deposit::matches_psbt`](crate::Deposit::matches_psbt).
pub fn from_bytes(bytes: &[u8]) -> Result<Transaction, Refusal> {
    encode::deserialize(bytes).map_err(|_| {
        let reason = if bytes.starts_with(PSBT) { "the bytes are a PSBT, not a transaction" } else { "the bytes are not one transaction" };
        Refusal::new(Code::TransactionMismatch, "").with_reason(reason)
    })
}
