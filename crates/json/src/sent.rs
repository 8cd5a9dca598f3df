//! What an external wallet sent: transactions, and what says what a transaction did.

use std::convert::identity;

use countersign::{Code, Family, Refusal, Role, Verified, VerifiedOrder, Warnings, for_each_family, report::OrderStage};
use countersign_core::json::{self, Cursor};

use crate::JsonFamily;
use crate::dispatch::{each_family, of_family};

/// Returns the role in an order of a transaction that an external wallet has signed or broadcast, and warnings about what the wallet
/// changed: see [`Verified::match_with_warnings`]. The forms of the transaction are listed in `docs/spec/batch.md#external-transactions`.
///
/// # Errors
///
/// A [`Refusal`] at the first member of `/transaction` that is missing, malformed or, with `transaction_mismatch`, not as in the
/// order. JSON that also states that the transaction failed is refused there, with the same code.
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
    let matched = order.match_with_warnings(&F::read_transaction(order, text)?)?;
    // Only an object can state an outcome beside the transaction.
    if text.trim_ascii_start().starts_with(b"{") {
        succeeded::<F>(text)?;
    }
    Ok(matched)
}

fn succeeded<F: JsonFamily>(answer: &[u8]) -> Result<(), Refusal> {
    let value = json::parse(answer)?;
    let root = Cursor::root(&value, "");
    F::check_outcome(&root.object()?).map_err(|refusal| match refusal.code() {
        Code::TransactionMismatch => refusal.with_reason("the transaction failed"),
        _ => refusal,
    })
}

/// Finds the payment of an order by its effect, and returns the id of its transaction: the hash, or the first signature on Solana. The
/// transaction may be that of another account, such as a bundler, a relay, an owner of a Safe or a member of a multisig.
///
/// `effect` is JSON that says what a transaction did:
///
/// | family | what a wallet or a node returned for | what it proves |
/// |---|---|---|
/// | EVM | `wallet_getCallsStatus`, `eth_getTransactionReceipt` | [`Deposit::find_payment`](countersign::evm::Deposit::find_payment) |
/// | Tron | `/wallet/gettransactioninfobyid` | `countersign::tron::Deposit::find_payment` |
/// | Starknet | `starknet_getTransactionReceipt` | `countersign::starknet::Deposit::find_payment` |
/// | Solana | `getTransaction`, with the encoding `base64`, `base58` or `json` | `countersign::solana::Deposit::find_payment` |
///
/// # Errors
///
/// A [`Refusal`] below `/calls`, or with [`Code::UnsupportedFamily`](countersign::Code::UnsupportedFamily) for any other family.
pub fn find_payment(order: &Verified, effect: &[u8]) -> Result<String, Refusal> {
    let found: Result<_, Refusal> = for_each_family! { each_family! [order, Verified => |order| paid(order, effect), identity] };
    found.map_err(|refusal| if refusal.code() == Code::UnsupportedFamily { refusal } else { refusal.with_prefix("/calls") })
}

fn paid<F: JsonFamily>(order: &VerifiedOrder<F>, text: &[u8]) -> Result<String, Refusal> {
    F::find_payment(order, text)
}

/// Returns whether a text says what a transaction of a family did, as [`find_payment`] takes it, and is not the transaction alone. Malformed
/// text is neither.
#[must_use]
pub fn is_effect(family: Family, text: &[u8]) -> bool {
    let Ok(value) = json::parse(text) else { return false };
    let root = Cursor::root(&value, "");
    let Ok(members) = root.object() else { return false };
    let has_any = |names: &[&'static str]| names.iter().any(|name| members.get(name).is_some());
    for_each_family! { of_family! [family, Json => Json::is_effect(has_any), false] }
}

/// Refuses a transaction that failed, where the object around it, of a node or a wallet, says so. One without an outcome passes. What is in
/// the same object as the transaction, [`match_with_warnings`] reads itself.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] at the outcome, or another [`Refusal`] of the text, below `/calls`.
pub fn check_outcome(family: Family, answer: &[u8]) -> Result<(), Refusal> {
    let outcome = for_each_family! { of_family! [family, Json => succeeded::<Json>(answer), Ok(())] };
    outcome.map_err(|refusal: Refusal| refusal.with_prefix("/calls"))
}

/// Returns the names of the members in which wallets and nodes return a transaction of a family beside other values: the first that is
/// there has it.
#[must_use]
pub const fn wrappers(family: Family) -> &'static [&'static str] {
    for_each_family! { of_family! [family, Json => Json::WRAPPERS, &[]] }
}
