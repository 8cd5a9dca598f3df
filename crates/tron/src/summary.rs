//! The lines that a person reads before signing, and the bytes that each of them stands for.

use alloy_primitives::{U256, hex};
use countersign_abi::summary::{self as shared, Words};
use countersign_core::{ByteCoverage, Summary, Topic, amount, number, text};

use crate::address::Address;
use crate::transaction::Unsigned;
use crate::verify::Deposit;

/// Digits behind the point of one TRX, in sun.
const TRX: u8 = 6;

fn trx(sun: i64) -> String {
    format!("{} TRX", number::in_whole_units(U256::try_from(sun).unwrap_or_default(), TRX))
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    shared::destination_data(&deposit.terms, summary);
    if let Some(approval) = &deposit.approval {
        shared::approval(&approval.proposed, &approval.signed, summary);
        summary.say(Topic::Gas, format!("approval burns at most {} for energy", trx(approval.call.fee_limit)));
    }
    if deposit.initiate.value != 0 {
        summary.say(Topic::Send, format!("{} go with the call", trx(deposit.initiate.value)));
    }
    summary.say(Topic::Gas, format!("initiate burns at most {} for energy", trx(deposit.initiate.fee_limit)));
    match &deposit.typed_data {
        Some(message) => summary.say(
            Topic::Message,
            format!(
                "gasless Initiate for {}, domain HTLC version {:?}, destination data not signed",
                Address::from(message.verifying_contract),
                text::escape_untrusted(&message.version)
            ),
        ),
        None => summary.say(Topic::Message, "none: this order has no gasless way"),
    }
}

pub(crate) fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
    let words =
        Words { initiate_key: "initiate_transaction", coins: "sun", gas: "fee limit", message_data: "destination data, not signed" };
    shared::coverage(deposit.approval.is_some(), &deposit.terms, deposit.typed_data.as_ref(), words)
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let raw = &unsigned.steps.initiate.transaction;
    let lifetime = u128::try_from(raw.expiration.saturating_sub(raw.timestamp)).unwrap_or_default();
    summary.say(
        Topic::Wallet,
        format!(
            "sent and paid by {}, reference block {} {}, made at {} ms, expires at {} ms, {} later",
            unsigned.sender,
            hex::encode(&raw.ref_block_bytes),
            hex::encode(&raw.ref_block_hash),
            raw.timestamp,
            raw.expiration,
            amount::duration(lifetime)
        ),
    );
    shared::digests(&unsigned.steps, summary, |name, payload| format!("{name}, {}", hex::encode(payload.tx_id)));
}
