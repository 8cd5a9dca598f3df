//! The lines that a person reads before signing, and the bytes that each of them stands for.

use alloy_consensus::TypedTransaction;
use alloy_primitives::U256;
use countersign_abi::call::Approve;
use countersign_core::{Span, Summary, Topic, number, text};

use crate::transaction::{Payload, Unsigned};
use crate::verify::Deposit;

/// Digits behind the point of one gwei, in wei.
const GWEI: u8 = 9;
/// Digits behind the point of the chain's own coin, in wei.
const COIN: u8 = 18;

fn allowance(amount: U256) -> String {
    if amount == U256::MAX { "every token of this kind, without limit".to_owned() } else { format!("{amount} base units") }
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
        summary.say(Topic::Gas, format!("approval at most {} gas", approval.call.gas_limit));
    }
    if !deposit.initiate.value.is_zero() {
        summary.say(Topic::Pay, format!("{} coins go with the call", number::in_whole_units(deposit.initiate.value, COIN)));
    }
    summary.say(Topic::Gas, format!("initiate at most {} gas", deposit.initiate.gas_limit));
    match &deposit.typed_data {
        Some(message) => summary.say(
            Topic::Message,
            format!("gasless Initiate for {}, domain HTLC version {:?}", message.verifying_contract, text::shown(&message.version)),
        ),
        None => summary.say(Topic::Message, "none: this order has no gasless way"),
    }
}

pub(crate) fn covers(deposit: &Deposit) -> Vec<Span> {
    let mut spans = Vec::new();
    let members = |spans: &mut Vec<Span>, at: &str, to: Topic| {
        spans.push(Span::member(Topic::Chain, format!("{at}/chain_id"), "chain id"));
        spans.push(Span::member(to, format!("{at}/to"), "contract"));
        spans.push(Span::member(Topic::Pay, format!("{at}/value"), "coins"));
        spans.push(Span::member(Topic::Gas, format!("{at}/gas_limit"), "gas limit"));
    };
    if deposit.approval.is_some() {
        let at = "/response/result/approval_transaction";
        members(&mut spans, at, Topic::Token);
        spans.extend(Approve::spans(&format!("{at}/data")));
    }
    let at = format!("/response/result/{}", deposit.initiate_key);
    members(&mut spans, &at, Topic::Contract);
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
            member(Topic::DestinationData, "message/destinationData", "destination data");
        }
    }
    spans
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
    let calls = [
        ("approval reset to zero", unsigned.approval_reset.as_ref()),
        ("approval", unsigned.approval.as_ref()),
        ("initiate", Some(&unsigned.initiate)),
    ];
    summary.say(Topic::Wallet, format!("sent and paid by {}, {}", unsigned.sender, fees(&unsigned.initiate).1));
    for (name, payload) in calls {
        if let Some(payload) = payload {
            summary.say(Topic::Digest, format!("{name}, nonce {}, {}", fees(payload).0, payload.signing_hash));
        }
    }
    if let Some(message) = &unsigned.typed_data {
        summary.say(Topic::Digest, format!("typed data, {}", message.hashes.digest));
    }
}
