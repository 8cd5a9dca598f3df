//! The lines that a person reads before signing, and the bytes that each of them stands for.

use alloy_primitives::{U256, hex};
use countersign_abi::call::Approve;
use countersign_core::{Span, Summary, Topic, amount, number, text};

use crate::address::Address;
use crate::transaction::Unsigned;
use crate::verify::Deposit;

/// Digits behind the point of one TRX, in sun.
const TRX: u8 = 6;

fn allowance(amount: U256) -> String {
    if amount == U256::MAX { "every token of this kind, without limit".to_owned() } else { format!("{amount} base units") }
}

fn trx(sun: i64) -> String {
    format!("{} TRX", number::in_whole_units(U256::try_from(sun).unwrap_or_default(), TRX))
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    if let Some(data) = &deposit.terms.destination_data {
        let shown = if data.is_empty() { "none".to_owned() } else { format!("{} bytes {data}", data.len()) };
        summary.say(Topic::DestinationData, shown);
    }
    if let Some(approval) = &deposit.approval {
        let proposed = allowance(approval.proposed.amount);
        let text = if approval.signed == approval.proposed {
            format!("the HTLC may take {proposed}")
        } else {
            format!("the HTLC may take {}, rewritten from {proposed}", allowance(approval.signed.amount))
        };
        summary.say(Topic::Approval, text);
        summary.say(Topic::Gas, format!("approval burns at most {} for energy", trx(approval.call.fee_limit)));
    }
    if deposit.initiate.value != 0 {
        summary.say(Topic::Pay, format!("{} go with the call", trx(deposit.initiate.value)));
    }
    summary.say(Topic::Gas, format!("initiate burns at most {} for energy", trx(deposit.initiate.fee_limit)));
    match &deposit.typed_data {
        Some(message) => summary.say(
            Topic::Message,
            format!(
                "gasless Initiate for {}, domain HTLC version {:?}, destination data not signed",
                Address::from(message.verifying_contract),
                text::shown(&message.version)
            ),
        ),
        None => summary.say(Topic::Message, "none: this order has no gasless way"),
    }
}

pub(crate) fn covers(deposit: &Deposit) -> Vec<Span> {
    let mut spans = Vec::new();
    let members = |spans: &mut Vec<Span>, at: &str, to: Topic| {
        spans.push(Span::member(Topic::Chain, format!("{at}/chain_id"), "chain id"));
        spans.push(Span::member(to, format!("{at}/to"), "contract"));
        spans.push(Span::member(Topic::Pay, format!("{at}/value"), "sun"));
        spans.push(Span::member(Topic::Gas, format!("{at}/gas_limit"), "fee limit"));
    };
    if deposit.approval.is_some() {
        let at = "/response/result/approval_transaction";
        members(&mut spans, at, Topic::Token);
        spans.extend(Approve::spans(&format!("{at}/data")));
    }
    let at = "/response/result/initiate_transaction";
    members(&mut spans, at, Topic::Contract);
    spans.extend(deposit.terms.spans(&format!("{at}/data")));
    if let Some(message) = &deposit.typed_data {
        let at = "/response/result/typed_data";
        let mut member = |topic, path: &str, what| spans.push(Span::member(topic, format!("{at}/{path}"), what));
        member(Topic::Message, "primaryType", "message type");
        member(Topic::Message, "types", "member types");
        member(Topic::Message, "domain/name", "domain name");
        member(Topic::Message, "domain/version", "domain version");
        member(Topic::Chain, "domain/chainId", "chain id");
        member(Topic::Contract, "domain/verifyingContract", "contract");
        member(Topic::Redeemer, "message/redeemer", "redeemer");
        member(Topic::Timelock, "message/timelock", "timelock");
        member(Topic::Pay, "message/amount", "amount");
        member(Topic::SecretHash, "message/secretHash", "secret hash");
        if message.terms.destination_data.is_some() {
            member(Topic::DestinationData, "message/destinationData", "destination data, not signed");
        }
    }
    spans
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let raw = &unsigned.initiate.transaction;
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
    let calls = [
        ("approval reset to zero", unsigned.approval_reset.as_ref()),
        ("approval", unsigned.approval.as_ref()),
        ("initiate", Some(&unsigned.initiate)),
    ];
    for (name, payload) in calls {
        if let Some(payload) = payload {
            summary.say(Topic::Digest, format!("{name}, {}", hex::encode(payload.tx_id)));
        }
    }
    if let Some(message) = &unsigned.typed_data {
        summary.say(Topic::Digest, format!("typed data, {}", message.hashes.digest));
    }
}
