//! What an external wallet changed in a transaction although it may.

use countersign::Verified;

use super::{Failure, Notice, warnings};

/// Returns what an external wallet changed or added in a transaction of an order although it may, such as a larger approval, or bytes behind
/// the calldata: see [`Verified::match_with_warnings`]. [`matches`](super::matches) says what the transaction does.
///
/// # Errors
///
/// As [`matches`](super::matches).
pub fn match_warnings(order: &Verified, transaction: &[u8]) -> Result<Vec<Notice>, Failure> {
    Ok(warnings(&crate::match_with_warnings(order, transaction)?.1))
}
