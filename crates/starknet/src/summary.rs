//! The summary lines of a deposit and its payloads, and the felts that each line covers.

use countersign_core::{ByteCoverage, Summary, Topic, TypedValue, number};
use starknet_types_core::felt::Felt;

use crate::address;
use crate::felt::to_hex;
use crate::htlc::Approve;
use crate::message::Message;
use crate::payloads::Unsigned;
use crate::transaction::{ExecutionEncoding, Invoke};
use crate::verify::Deposit;

/// Decimal places of one STRK, whose base unit is the FRI.
const STRK: u8 = 18;

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    if let Some(approval) = &deposit.approval {
        summary.add_approval(approval.proposed.amount, Some(approval.signed.amount));
    }
    describe_data(deposit, summary);
    describe_message(deposit, deposit.typed_data.as_ref(), summary);
}

fn describe_data(deposit: &Deposit, summary: &mut Summary) {
    if let Some(data) = &deposit.destination_data {
        let felts: Vec<_> = data.iter().map(to_hex).collect();
        let shown = if felts.is_empty() { "none".to_owned() } else { format!("{} felts {}", felts.len(), felts.join(", ")) };
        summary.add(Topic::DestinationData, shown);
    }
}

pub(crate) fn describe_prepared(deposit: &Deposit, unsigned: &Unsigned, summary: &mut Summary) {
    if let (Some(approval), Some(_)) = (&deposit.approval, &unsigned.invoke) {
        summary.add_approval(approval.proposed.amount, deposit.sent_approval(unsigned));
    }
    if unsigned.invoke.is_some() {
        describe_data(deposit, summary);
    }
    describe_message(deposit, unsigned.message.as_ref().map(|payload| &payload.message), summary);
}

fn describe_message(deposit: &Deposit, message: Option<&Message>, summary: &mut Summary) {
    match message {
        Some(message) => {
            let contract = message.contract.map(|contract| format!(" for {}", to_hex(&contract))).unwrap_or_default();
            let text = format!("gasless Initiate{contract}, domain {}, revision 1", message.domain);
            summary.add_values(Topic::Message, text, message.contract.map(|contract| address::to_account(contract).into()));
        }
        None => summary.add_no_gasless(deposit.typed_data.is_some()),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let mut coverage = Vec::new();
    if deposit.approval.is_some() {
        coverage.extend(Approve::coverage("/response/result/approval_transaction"));
    }
    coverage.extend(deposit.terms.coverage(&format!("/response/result/{}", deposit.initiate_key), deposit.destination_data.as_deref()));
    if let Some(message) = &deposit.typed_data {
        coverage.extend(ByteCoverage::typed_data());
        coverage.push(ByteCoverage::of_message(Topic::Message, "domain/revision", "SNIP-12 revision"));
        if message.contract.is_some() {
            coverage.push(ByteCoverage::of_message(Topic::Contract, "message/verifyingContract", "contract"));
        }
    }
    coverage
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let digest = |summary: &mut Summary, what: &str, hash: Felt| {
        summary.add_values(Topic::Digest, format!("{what}, {}", to_hex(&hash)), [TypedValue::Hash(hash.to_bytes_be())]);
    };
    if let Some(payload) = &unsigned.invoke {
        describe_invoke(&payload.invoke, summary);
        digest(summary, "transaction", payload.invoke.hashes.tx_hash);
    }
    if let Some(payload) = &unsigned.message {
        digest(summary, "typed data", payload.hashes.message_hash);
    }
}

fn describe_invoke(invoke: &Invoke, summary: &mut Summary) {
    let transaction = &invoke.transaction;
    let (sender, bounds) = (transaction.sender_address, &transaction.resource_bounds);
    let max_fee = bounds.max_fee(transaction.tip);
    let in_strk = number::in_whole_units(max_fee, STRK);
    let (account, nonce) = (address::to_account(sender), to_hex(&transaction.nonce));
    let text = format!("sent and paid for by {account}, nonce {nonce}, at most {in_strk} STRK");
    summary.add_values(Topic::Wallet, text, [account.into(), max_fee.into()]);
    for (name, bound) in [("L1 gas", bounds.l1_gas), ("L2 gas", bounds.l2_gas), ("L1 data gas", bounds.l1_data_gas)] {
        let text = format!("at most {} {name} at {} FRI", bound.max_amount, bound.max_price_per_unit);
        summary.add_values(Topic::Gas, text, [bound.max_amount.into(), bound.max_price_per_unit.into()]);
    }
    if transaction.tip != 0 {
        summary.add_values(Topic::Gas, format!("tip {} FRI per L2 gas", transaction.tip), [transaction.tip.into()]);
    }
    for (what, felts) in
        [("paymaster data", &transaction.paymaster_data), ("account deployment data", &transaction.account_deployment_data)]
    {
        if !felts.is_empty() {
            let felts: Vec<_> = felts.iter().map(to_hex).collect();
            summary.add(Topic::Wallet, format!("{what} {}", felts.join(", ")));
        }
    }
    let modes = (transaction.nonce_data_availability_mode.name(), transaction.fee_data_availability_mode.name());
    if modes != ("L1", "L1") {
        summary.add(Topic::Wallet, format!("nonce data on {}, fee data on {}", modes.0, modes.1));
    }
    if invoke.encoding == ExecutionEncoding::Legacy {
        summary.add(Topic::Wallet, "calls encoded for an account of Cairo 0");
    }
}
