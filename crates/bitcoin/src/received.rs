//! Signed transactions as wallets and nodes return them.

mod cost;
mod psbt;

use bitcoin::Transaction;
use bitcoin::consensus::encode;
use bitcoin::psbt::Psbt;
use countersign_core::{Code, Refusal};

pub(crate) use cost::check_cost;
pub use cost::psbt_fee;
pub(crate) use psbt::MAGIC as PSBT;

/// Decodes a transaction from its bytes in consensus encoding, as `getrawtransaction` returns them in hex.
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::bitcoin::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign::bitcoin::received;
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

/// Decodes a PSBT of version 0 (BIP-174) or 2 (BIP-370) from its bytes. One of version 2 is converted to version 0.
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::bitcoin::VerifiedOrder, from_wallet: &[u8]) -> Result<(), Refusal> {
/// use countersign::bitcoin::received;
///
/// let role = order.deposit().matches_psbt(&received::psbt_from_bytes(from_wallet)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Code::TransactionMismatch`] if the bytes are not exactly one PSBT of these versions.
pub fn psbt_from_bytes(bytes: &[u8]) -> Result<Psbt, Refusal> {
    read_psbt(bytes).map_err(|why| Refusal::new(Code::TransactionMismatch, "").with_reason(why))
}

/// Decodes a PSBT, or returns the reason why it cannot be read.
pub(crate) fn read_psbt(bytes: &[u8]) -> Result<Psbt, String> {
    psbt::read(bytes).map_err(|why| format!("the PSBT cannot be read: {why}"))
}
