//! What an external wallet has signed or broadcast, in the forms in which wallets and nodes return it.

use countersign::Verified;

use super::{Failure, Notice, warnings};

/// Returns the role in an order of a transaction that an external wallet has signed or broadcast, such as `approval` or `initiate`:
/// see [`Verified::matches`]. Use this with wallets that choose nonce and fees themselves.
///
/// The forms of the transaction are listed in `docs/spec/batch.md#external-transactions`.
///
/// # Errors
///
/// [`Failure`] at the first member of `/transaction` that is missing, malformed or, with the code `transaction_mismatch`, not as in the
/// order.
pub fn matches(order: &Verified, transaction: &[u8]) -> Result<String, Failure> {
    Ok(crate::match_with_warnings(order, transaction)?.0.to_string())
}

/// Returns what an external wallet changed or added in a transaction of an order although it may, such as a larger approval, or bytes behind
/// the calldata: see [`Verified::match_with_warnings`]. [`matches()`] says what the transaction does.
///
/// # Errors
///
/// As [`matches()`].
pub fn match_warnings(order: &Verified, transaction: &[u8]) -> Result<Vec<Notice>, Failure> {
    Ok(warnings(&crate::match_with_warnings(order, transaction)?.1))
}

/// Finds the payment of an EVM order among calls that an external wallet bundled (EIP-5792), and returns the hash of its transaction. The
/// forms of the status, and what this proves, are in `docs/spec/batch.md#bundled-calls`.
///
/// # Errors
///
/// [`Failure`] at the first member of `/calls` that is missing, malformed or, with the code `transaction_mismatch`, not as in the order;
/// `unsupported_family` if the source is not an EVM chain.
pub fn find_payment(order: &Verified, status: &[u8]) -> Result<String, Failure> {
    Ok(crate::find_payment(order, status)?)
}
