//! The summary lines of a deposit and its payloads, and the bytes that each line covers.

use alloy_consensus::Transaction as _;
use countersign_core::{ByteCoverage, Summary, Topic, line_text, number, text};
use countersign_evm_core::summary::{self as shared, Parts, SummaryWording};

use crate::address::to_account;
use crate::deposit::Deposit;
use crate::transaction::{COIN, Unsigned};

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    let approval = deposit.approval.as_ref().map(|approval| (approval.signed, approval.call.gas_limit));
    let parts = Parts { approval, initiate: Some(deposit.initiate.gas_limit), message: deposit.typed_data.as_ref() };
    describe_parts(deposit, parts, summary);
}

pub(crate) fn describe_prepared(deposit: &Deposit, unsigned: &Unsigned, summary: &mut Summary) {
    describe_parts(deposit, Parts::prepared(unsigned, |transaction| transaction.transaction.gas_limit()), summary);
}

fn describe_parts(deposit: &Deposit, parts: Parts<'_, u64>, summary: &mut Summary) {
    shared::destination_data(&deposit.terms, summary);
    if let Some(gas_limit) = parts.initiate {
        if let Some(approval) = &deposit.approval {
            summary.add_approval(approval.proposed.amount, parts.approval.map(|(approve, _)| approve.amount));
        }
        if let Some((_, gas_limit)) = parts.approval {
            summary.add_values(Topic::Gas, line_text!("approval at most {gas_limit} gas"), [gas_limit.into()]);
        }
        let value = deposit.initiate.value;
        if !value.is_zero() {
            let coins = number::in_whole_units(value, COIN);
            summary.add_values(Topic::Send, line_text!("{coins} coins sent with the call"), [value.into()]);
        }
        summary.add_values(Topic::Gas, line_text!("initiate at most {gas_limit} gas"), [gas_limit.into()]);
    }
    match parts.message {
        Some(message) => {
            let (contract, version) = (&message.contract_text, text::quoted(&message.version));
            let text = line_text!("gasless Initiate for {contract}, domain HTLC version {version}");
            summary.add_values(Topic::Message, text, [to_account(message.verifying_contract).into()]);
        }
        None => summary.add_no_gasless(deposit.typed_data.is_some()),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let words = SummaryWording { initiate_key: deposit.initiate_key, coins: "coins", gas: "gas limit", message_data: "destination data" };
    shared::coverage(deposit.approval.as_ref(), &deposit.terms, deposit.typed_data.as_ref(), words)
}
