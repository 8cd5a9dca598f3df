//! Transactions as wallets and nodes return them. They have no other form than JSON.

use countersign_core::Refusal;

use crate::transaction::InvokeTransaction;

/// Parses the JSON of an invoke transaction of version 3, as `starknet_getTransactionByHash` returns it: see
/// [`InvokeTransaction::from_json`].
///
/// ```
/// # use countersign_core::Refusal;
/// # fn check(order: &countersign_starknet::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign_starknet::received;
///
/// let role = order.matches(&received::from_json(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`InvokeTransaction::from_json`].
pub fn from_json(text: &[u8]) -> Result<InvokeTransaction, Refusal> {
    InvokeTransaction::from_json(text)
}
