//! The lines that a person reads before signing, and the bytes that each of them stands for.

use countersign_abi::summary::{self as shared, Words};
use countersign_core::{ByteCoverage, Summary, Topic, number, text};

use crate::verify::Deposit;

/// Digits behind the point of the chain's own coin, in wei.
const COIN: u8 = 18;

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    shared::destination_data(&deposit.terms, summary);
    if let Some(approval) = &deposit.approval {
        shared::approval(&approval.proposed, &approval.signed, summary);
        summary.add(Topic::Gas, format!("approval at most {} gas", approval.call.gas_limit));
    }
    if !deposit.initiate.value.is_zero() {
        summary.add(Topic::Send, format!("{} coins go with the call", number::in_whole_units(deposit.initiate.value, COIN)));
    }
    summary.add(Topic::Gas, format!("initiate at most {} gas", deposit.initiate.gas_limit));
    match &deposit.typed_data {
        Some(message) => summary.add(
            Topic::Message,
            format!("gasless Initiate for {}, domain HTLC version {:?}", message.verifying_contract, text::escape_untrusted(&message.version)),
        ),
        None => summary.add(Topic::Message, "none: this order has no gasless way"),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let words = Words { initiate_key: deposit.initiate_key, coins: "coins", gas: "gas limit", message_data: "destination data" };
    shared::coverage(deposit.approval.is_some(), &deposit.terms, deposit.typed_data.as_ref(), words)
}
