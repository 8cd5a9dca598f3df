//! The summary lines of a deposit and its payloads, and the bytes that each line covers.

use alloy_primitives::U256;
use countersign_core::{ByteCoverage, Summary, Topic, TypedValue, line_text, number, text};
use countersign_evm_core::summary::{self as shared, Parts, SummaryWording};

use crate::address::Address;
use crate::deposit::Deposit;
use crate::transaction::Unsigned;

/// Decimal places of one TRX, whose base unit is the sun.
pub(crate) const TRX: u8 = 6;

/// Returns an amount of sun as text and as a value. No call has a negative amount.
fn trx(sun: i64) -> (String, [TypedValue; 1]) {
    let sun = U256::try_from(sun).unwrap_or_default();
    (format!("{} TRX", number::in_whole_units(sun, TRX)), [sun.into()])
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    let approval = deposit.approval.as_ref().map(|approval| (approval.signed, approval.call.fee_limit));
    let parts = Parts { approval, initiate: Some(deposit.initiate.fee_limit), message: deposit.typed_data.as_ref() };
    describe_parts(deposit, parts, summary);
}

pub(crate) fn describe_prepared(deposit: &Deposit, unsigned: &Unsigned, summary: &mut Summary) {
    describe_parts(deposit, Parts::prepared(unsigned, |transaction| transaction.raw.fee_limit), summary);
}

fn describe_parts(deposit: &Deposit, parts: Parts<'_, i64>, summary: &mut Summary) {
    shared::destination_data(&deposit.terms, summary);
    if let Some(fee_limit) = parts.initiate {
        if let Some(approval) = &deposit.approval {
            summary.add_approval(approval.proposed.amount, parts.approval.map(|(approve, _)| approve.amount));
        }
        if let Some((_, fee_limit)) = parts.approval {
            let (limit, values) = trx(fee_limit);
            summary.add_values(Topic::Gas, line_text!("approval burns at most {limit} for energy"), values);
        }
        if deposit.initiate.value != 0 {
            let (coins, values) = trx(deposit.initiate.value);
            summary.add_values(Topic::Send, line_text!("{coins} sent with the call"), values);
        }
        let (limit, values) = trx(fee_limit);
        summary.add_values(Topic::Gas, line_text!("initiate burns at most {limit} for energy"), values);
    }
    match parts.message {
        Some(message) => {
            let contract = &message.contract_text;
            let version = text::quoted(&message.version);
            let text = line_text!("gasless Initiate for {contract}, domain HTLC version {version}, destination data not signed");
            summary.add_values(Topic::Message, text, [Address::from(message.verifying_contract).into()]);
        }
        None => summary.add_no_gasless(deposit.typed_data.is_some()),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let words = SummaryWording {
        initiate_key: "initiate_transaction",
        coins: "sun",
        gas: "fee limit",
        message_data: "destination data, not signed",
    };
    shared::coverage(deposit.approval.as_ref(), &deposit.terms, deposit.typed_data.as_ref(), words)
}
