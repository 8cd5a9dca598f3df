//! The summary lines of a deposit, and the felts that each line covers.

use countersign_core::{ByteCoverage, Summary, Topic, line_text};

use crate::address;
use crate::deposit::Deposit;
use crate::felt::to_hex;
use crate::htlc::Approve;
use crate::message::Message;
use crate::payloads::Unsigned;

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
            let text = line_text!("gasless Initiate{contract}, domain {}, revision 1", message.domain);
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
