//! Transactions that an external wallet has signed or broadcast, in the forms in which wallets and nodes return them.

use std::convert::identity;

use countersign::{Refusal, Role, Verified, VerifiedOrder, for_each_family};

use super::Failure;
use crate::JsonFamily;
use crate::dispatch::each_family;

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
    let role: Result<Role, Refusal> = for_each_family! { each_family! [order, Verified => |order| role(order, transaction), identity] };
    Ok(role.map_err(|refusal| refusal.with_prefix("/transaction"))?.to_string())
}

fn role<F: JsonFamily>(order: &VerifiedOrder<F>, text: &[u8]) -> Result<Role, Refusal> {
    order.matches(&F::read_transaction(text)?)
}
