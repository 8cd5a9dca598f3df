//! The lines that a person reads before signing, and the bytes that each of them stands for.

use alloy_consensus::TypedTransaction;
use alloy_primitives::U256;
use countersign_abi::summary::{self as shared, Words};
use countersign_core::{ByteCoverage, Summary, Topic, number, text};

use crate::transaction::{Payload, Unsigned};
use crate::verify::Deposit;

/// Digits behind the point of one gwei, in wei.
const GWEI: u8 = 9;
/// Digits behind the point of the chain's own coin, in wei.
const COIN: u8 = 18;

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    shared::destination_data(&deposit.terms, summary);
    if let Some(approval) = &deposit.approval {
        shared::approval(&approval.proposed, &approval.signed, summary);
        summary.say(Topic::Gas, format!("approval at most {} gas", approval.call.gas_limit));
    }
    if !deposit.initiate.value.is_zero() {
        summary.say(Topic::Send, format!("{} coins go with the call", number::in_whole_units(deposit.initiate.value, COIN)));
    }
    summary.say(Topic::Gas, format!("initiate at most {} gas", deposit.initiate.gas_limit));
    match &deposit.typed_data {
        Some(message) => summary.say(
            Topic::Message,
            format!("gasless Initiate for {}, domain HTLC version {:?}", message.verifying_contract, text::escape_untrusted(&message.version)),
        ),
        None => summary.say(Topic::Message, "none: this order has no gasless way"),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let words = Words { initiate_key: deposit.initiate_key, coins: "coins", gas: "gas limit", message_data: "destination data" };
    shared::coverage(deposit.approval.is_some(), &deposit.terms, deposit.typed_data.as_ref(), words)
}

fn fees(payload: &Payload) -> (u64, String) {
    let gwei = |wei: u128| number::in_whole_units(U256::from(wei), GWEI);
    match &payload.transaction {
        TypedTransaction::Eip1559(tx) => {
            let text =
                format!("at most {} gwei per gas, {} of it to the proposer", gwei(tx.max_fee_per_gas), gwei(tx.max_priority_fee_per_gas));
            (tx.nonce, text)
        }
        TypedTransaction::Legacy(tx) => (tx.nonce, format!("{} gwei per gas, legacy transaction", gwei(tx.gas_price))),
        _ => (0, String::new()),
    }
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    summary.say(Topic::Wallet, format!("sent and paid by {}, {}", unsigned.sender, fees(&unsigned.steps.initiate).1));
    shared::digests(&unsigned.steps, summary, |name, payload| format!("{name}, nonce {}, {}", fees(payload).0, payload.signing_hash));
}
