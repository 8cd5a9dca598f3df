//! What an external wallet sent: transactions, and the status of calls that it bundled.

use std::convert::identity;

use countersign::{Refusal, Role, Verified, VerifiedOrder, for_each_family};
use countersign_core::json::{self, Cursor};

use crate::JsonFamily;
use crate::dispatch::{each_family, unsupported};

/// Returns the role in an order of a transaction that an external wallet has signed or broadcast: see [`Verified::matches`]. The forms of
/// the transaction are listed in `docs/spec/batch.md#external-transactions`.
///
/// # Errors
///
/// A [`Refusal`] at the first member of `/transaction` that is missing, malformed or, with [`Code::TransactionMismatch`](countersign::Code::TransactionMismatch), not as in the
/// order.
pub fn matches(order: &Verified, transaction: &[u8]) -> Result<Role, Refusal> {
    let role: Result<Role, Refusal> = for_each_family! { each_family! [order, Verified => |order| role(order, transaction), identity] };
    role.map_err(|refusal| refusal.with_prefix("/transaction"))
}

fn role<F: JsonFamily>(order: &VerifiedOrder<F>, text: &[u8]) -> Result<Role, Refusal> {
    order.matches(&F::read_transaction(text)?)
}

/// Finds the payment of an EVM order among calls that an external wallet bundled, and returns the hash of its transaction.
///
/// `status` is the JSON that `wallet_getCallsStatus` returned, or a receipt (`eth_getTransactionReceipt`), which is read as the only one
/// of confirmed calls on the order's chain. What this proves, and what it does not, is said at
/// [`Deposit::find_payment`](countersign::evm::Deposit::find_payment).
///
/// # Errors
///
/// A [`Refusal`] below `/calls`, or with [`Code::UnsupportedFamily`](countersign::Code::UnsupportedFamily) if the source is not an EVM chain.
#[cfg_attr(not(feature = "evm"), allow(unused_variables, reason = "no other family bundles calls"))]
pub fn find_payment(order: &Verified, status: &[u8]) -> Result<String, Refusal> {
    match order {
        #[cfg(feature = "evm")]
        Verified::Evm(order) => {
            let found = bundle(status, order.deposit().chain_id);
            let found = found.and_then(|text| order.deposit().find_payment(&countersign::evm::received::calls_status(&text)?));
            found.map(|hash| hash.to_string()).map_err(|refusal| refusal.with_prefix("/calls"))
        }
        other => Err(unsupported(other.family()).with_reason("only a payment on an EVM chain can be found among bundled calls")),
    }
}

/// Returns whether a text is the status of bundled calls or a receipt, and not a transaction. Malformed text is neither.
#[must_use]
pub fn is_calls_status(text: &[u8]) -> bool {
    let Ok(value) = json::parse(text) else { return false };
    let root = Cursor::root(&value, "");
    root.object()
        .is_ok_and(|members| ["receipts", "logs"].iter().any(|name| members.keys().any(|key| key == *name)) || is_pending(&members))
}

/// A bundle that is not mined yet has no receipts.
fn is_pending(members: &json::Members<'_, '_>) -> bool {
    ["status", "chainId"].iter().all(|name| members.get(name).is_some()) && members.get("nonce").is_none()
}

/// Returns the status of calls. A receipt becomes the only one of confirmed calls.
#[cfg(feature = "evm")]
fn bundle(text: &[u8], chain_id: u64) -> Result<Vec<u8>, Refusal> {
    let value = json::parse(text)?;
    let root = Cursor::root(&value, "");
    let members = root.object()?;
    if members.get("receipts").is_some() || members.get("logs").is_none() {
        return Ok(text.to_vec());
    }
    let head = format!(r#"{{"chainId":"{chain_id:#x}","status":200,"receipts":["#);
    Ok([head.as_bytes(), text, b"]}"].concat())
}
