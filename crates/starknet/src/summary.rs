//! The lines that a person reads before signing, and the felts that each of them stands for.

use countersign_core::{ByteCoverage, Summary, Topic, U256, number};

use crate::htlc::Approve;
use crate::transaction::{Cairo, Unsigned};
use crate::verify::Deposit;

/// Digits behind the point of one STRK, in FRI.
const COIN: u8 = 18;

fn allowance(amount: U256) -> String {
    if amount == U256::MAX { "every token of this kind, without limit".to_owned() } else { format!("{amount} base units") }
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    if let Some(approval) = &deposit.approval {
        let proposed = allowance(approval.proposed.amount);
        let text = if approval.signed == approval.proposed {
            format!("the HTLC may take {proposed}")
        } else {
            format!("the HTLC may take {}, rewritten from {proposed}", allowance(approval.signed.amount))
        };
        summary.say(Topic::Approval, text);
    }
    match &deposit.typed_data {
        Some(message) => {
            let contract = message.contract.map(|contract| format!(" for {contract:#x}")).unwrap_or_default();
            summary.say(Topic::Message, format!("gasless Initiate{contract}, domain {}, revision 1", message.domain));
        }
        None => summary.say(Topic::Message, "none: this order has no gasless way"),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let mut spans = Vec::new();
    if deposit.approval.is_some() {
        spans.extend(Approve::spans("/response/result/approval_transaction"));
    }
    spans.extend(deposit.terms.spans(&format!("/response/result/{}", deposit.initiate_key)));
    if let Some(message) = &deposit.typed_data {
        spans.extend(ByteCoverage::typed_data());
        spans.push(ByteCoverage::of_message(Topic::Message, "domain/revision", "SNIP-12 revision"));
        if message.contract.is_some() {
            spans.push(ByteCoverage::of_message(Topic::Contract, "message/verifyingContract", "contract"));
        }
    }
    spans
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let invoke = &unsigned.invoke;
    let wallet = &invoke.wallet;
    let most = number::in_whole_units(wallet.resource_bounds.most(wallet.tip), COIN);
    summary.say(Topic::Wallet, format!("sent and paid by {:#066x}, nonce {:#x}, at most {most} STRK", invoke.sender, wallet.nonce));
    let bounds = &wallet.resource_bounds;
    for (name, bound) in [("L1 gas", bounds.l1_gas), ("L2 gas", bounds.l2_gas), ("L1 data gas", bounds.l1_data_gas)] {
        summary.say(Topic::Gas, format!("at most {} {name} at {} FRI", bound.max_amount, bound.max_price_per_unit));
    }
    if wallet.tip != 0 {
        summary.say(Topic::Gas, format!("tip {} FRI per L2 gas", wallet.tip));
    }
    for (what, felts) in [("paymaster data", &wallet.paymaster_data), ("account deployment data", &wallet.account_deployment_data)] {
        if !felts.is_empty() {
            let felts: Vec<_> = felts.iter().map(|felt| format!("{felt:#x}")).collect();
            summary.say(Topic::Wallet, format!("{what} {}", felts.join(", ")));
        }
    }
    let modes = (wallet.nonce_data_availability.name(), wallet.fee_data_availability.name());
    if modes != ("L1", "L1") {
        summary.say(Topic::Wallet, format!("nonce data on {}, fee data on {}", modes.0, modes.1));
    }
    if wallet.cairo == Cairo::Zero {
        summary.say(Topic::Wallet, "calls encoded for an account of Cairo 0");
    }
    summary.say(Topic::Digest, format!("transaction, {:#x}", invoke.tx_hash));
    if let Some(message) = &unsigned.typed_data {
        summary.say(Topic::Digest, format!("typed data, {:#x}", message.message_hash));
    }
}
