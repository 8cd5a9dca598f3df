//! What an external wallet sent: transactions, and the status of calls that it bundled.

use std::convert::identity;

#[cfg(feature = "evm")]
use countersign::evm::received::{self, CallsStatus};
use countersign::{Code, OrderStage, Refusal, Role, Verified, VerifiedOrder, Warnings, for_each_family};
use countersign_core::json::{self, Cursor};

use crate::JsonFamily;
use crate::dispatch::{each_family, unsupported};

/// Returns the role in an order of a transaction that an external wallet has signed or broadcast, and warnings about what the wallet
/// changed: see [`Verified::match_with_warnings`]. The forms of the transaction are listed in `docs/spec/batch.md#external-transactions`.
///
/// # Errors
///
/// A [`Refusal`] at the first member of `/transaction` that is missing, malformed or, with `transaction_mismatch`, not as in the
/// order.
pub fn match_with_warnings(order: &Verified, transaction: &[u8]) -> Result<(Role, Warnings), Refusal> {
    let found: Result<_, Refusal> = for_each_family! { each_family! [order, Verified => |order| found(order, transaction), identity] };
    found.map_err(|refusal| refusal.with_prefix("/transaction"))
}

/// Returns the stage whose words a refusal of what a wallet sent has. The policy refuses what is on its way already, so nobody can leave it
/// unsigned; what is not of the order pays nothing of it, so nothing of it is refunded.
#[must_use]
pub fn stage_of_sent(refusal: &Refusal) -> OrderStage {
    if refusal.code() == Code::WarningRefused { OrderStage::AfterPaying } else { OrderStage::BeforePaying }
}

fn found<F: JsonFamily>(order: &VerifiedOrder<F>, text: &[u8]) -> Result<(Role, Warnings), Refusal> {
    order.match_with_warnings(&F::read_transaction(order, text)?)
}

/// Finds the payment of an EVM order among calls that an external wallet bundled, and returns the hash of its transaction.
///
/// `status` is the JSON that `wallet_getCallsStatus` returned, or a receipt (`eth_getTransactionReceipt`), which may be that of another
/// account's transaction. What this proves, and what it does not, is documented at
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
            let found = calls(status).and_then(|calls| order.deposit().find_payment(&calls));
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
    // A transaction has no status, and a receipt no nonce.
    root.object().is_ok_and(|members| {
        ["receipts", "logs", "status"].iter().any(|name| members.get(name).is_some()) && members.get("nonce").is_none()
    })
}

/// Reads the status of calls, or a receipt.
#[cfg(feature = "evm")]
fn calls(text: &[u8]) -> Result<CallsStatus, Refusal> {
    let value = json::parse(text)?;
    let root = Cursor::root(&value, "");
    let members = root.object()?;
    if members.get("receipts").is_none() && members.get("logs").is_some() { received::receipt(text) } else { received::calls_status(text) }
}
