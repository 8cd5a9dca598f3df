//! Signed transactions as wallets and nodes return them.

use countersign_core::Refusal;

use crate::transaction::SignedTronTransaction;

/// Decodes a transaction in protobuf, as nodes return it over gRPC: see [`SignedTronTransaction::from_bytes`].
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::tron::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign::tron::received;
///
/// let role = order.matches(&received::from_bytes(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`SignedTronTransaction::from_bytes`].
pub fn from_bytes(bytes: &[u8]) -> Result<SignedTronTransaction, Refusal> {
    SignedTronTransaction::from_bytes(bytes)
}

/// Parses a transaction in the JSON of TronWeb, TronLink and `/wallet/gettransactionbyid`: see [`SignedTronTransaction::from_json`].
///
/// # Errors
///
/// As [`SignedTronTransaction::from_json`].
pub fn from_json(text: &[u8]) -> Result<SignedTronTransaction, Refusal> {
    SignedTronTransaction::from_json(text)
}
