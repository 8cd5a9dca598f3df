//! What an external wallet changed in a transaction although it may.

use std::convert::identity;

use countersign::{Refusal, Verified, VerifiedOrder, Warnings, for_each_family};

use super::{Failure, Notice, warnings};
use crate::JsonFamily;
use crate::dispatch::each_family;

/// Returns what an external wallet changed or added in a transaction of an order although it may, such as a larger approval, or bytes behind
/// the calldata: see [`Verified::match_with_warnings`]. [`matches`](super::matches) says what the transaction does.
///
/// # Errors
///
/// As [`matches`](super::matches).
pub fn match_warnings(order: &Verified, transaction: &[u8]) -> Result<Vec<Notice>, Failure> {
    let found: Result<Warnings, Refusal> =
        for_each_family! { each_family! [order, Verified => |order| found(order, transaction), identity] };
    Ok(warnings(&found.map_err(|refusal| refusal.with_prefix("/transaction"))?))
}

fn found<F: JsonFamily>(order: &VerifiedOrder<F>, text: &[u8]) -> Result<Warnings, Refusal> {
    order.match_with_warnings(&F::read_transaction(text)?).map(|(_, warnings)| warnings)
}
