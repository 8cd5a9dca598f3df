//! What the service answers to a new order, by the family of the source.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{Act, Liar, Lie};

const CALL: &str = "/initiate_transaction/data";
const APPROVAL: &str = "/approval_transaction/data";
const STRANGER: &str = "00000000000000000000000000000000000000ef";

/// Puts something else at a place, if the answer has it.
fn put(answer: &mut Value, place: &str, value: Value) {
    if let Some(old) = answer.pointer_mut(place).filter(|old| !old.is_null()) {
        *old = value;
    }
}

/// Puts another word into calldata: 32 bytes of hex, zeros first.
fn word(answer: &mut Value, place: &str, index: usize, digits: &str) {
    let Some(data) = answer.pointer(place).and_then(Value::as_str) else { return };
    // After `0x` and the selector.
    let start = index.saturating_mul(64).saturating_add(10);
    let (Some(before), Some(after)) = (data.get(..start), data.get(start.saturating_add(64)..)) else { return };
    let changed = format!("{before}{digits:0>64}{after}");
    put(answer, place, json!(changed));
}

fn felt(answer: &mut Value, index: usize, value: &str) {
    put(answer, &format!("/initiate_transaction/calldata/{index}"), json!(value));
}

/// Changes one byte of a transaction in base64, counted from its end.
fn byte_of(answer: &mut Value, member: &str, from_end: usize) {
    let place = format!("/{member}");
    let Some(mut bytes) = answer.pointer(&place).and_then(Value::as_str).and_then(|text| BASE64.decode(text).ok()) else { return };
    let Some(byte) = bytes.len().checked_sub(from_end).and_then(|at| bytes.get_mut(at)) else { return };
    *byte ^= 1;
    put(answer, &place, json!(BASE64.encode(bytes)));
}

/// Changes one byte of Sui's transaction, counted from its beginning.
fn sui_byte(answer: &mut Value, at: usize) {
    let place = format!("/ptb_bytes/{at}");
    let changed = answer.pointer(&place).and_then(Value::as_u64).map(|byte| byte ^ 1);
    if let Some(changed) = changed {
        put(answer, &place, json!(changed));
    }
}

const PAYMENT: &str = "the whole payment";
const EVM: [&str; 2] = ["base:usdc", "litecoin:ltc"];
const NATIVE: [&str; 2] = ["base:eth", "litecoin:ltc"];
const TRON: [&str; 2] = ["tron:usdt", "base:usdc"];
const STARKNET: [&str; 2] = ["starknet:strk", "litecoin:ltc"];
const SOLANA: [&str; 2] = ["solana:usdc", "base:usdc"];
const SOL: [&str; 2] = ["solana:sol", "base:usdc"];
const SUI: [&str; 2] = ["sui:sui", "base:usdc"];
const BITCOIN: [&str; 2] = ["bitcoin_testnet:btc", "base_sepolia:usdc"];

const fn lie(name: &'static str, about: &'static str, at_stake: &'static str, route: [&'static str; 2], change: fn(&mut Value)) -> Lie {
    Lie { name, liar: Liar::Answer, about, at_stake, route, act: Act::Answer(change), conduct: None }
}

pub(super) const LIES: &[Lie] = &[
    lie("evm-contract", "the call goes to a stranger's contract", PAYMENT, EVM, |answer| {
        put(answer, "/initiate_transaction/to", json!(format!("0x{STRANGER}")));
    }),
    lie("evm-token", "the approval is for another token", "that token", EVM, |answer| {
        put(answer, "/approval_transaction/to", json!(format!("0x{STRANGER}")));
    }),
    lie("evm-spender", "the approval is for a stranger", "the user's tokens, up to the approval", EVM, |answer| {
        word(answer, APPROVAL, 0, STRANGER);
    }),
    lie("evm-chain", "the call is for another chain", "what the user has there", EVM, |answer| {
        put(answer, "/initiate_transaction/chain_id", json!(137));
    }),
    lie("evm-redeemer", "the call names a stranger as the redeemer", PAYMENT, EVM, |answer| word(answer, CALL, 0, STRANGER)),
    lie("evm-timelock", "the call locks for thousands of years", "the refund", EVM, |answer| word(answer, CALL, 1, "ffffffffff")),
    lie("evm-amount", "the call locks a thousand times the amount", "the user's balance", EVM, |answer| {
        word(answer, CALL, 2, "ba43b7400");
    }),
    lie("evm-hash", "the call has the hash of the solver's own secret", PAYMENT, EVM, |answer| {
        word(answer, CALL, 3, &"5a".repeat(32));
    }),
    lie("evm-selector", "the call is another function", "the user's tokens", EVM, |answer| {
        if let Some(data) = answer.pointer(CALL).and_then(Value::as_str).and_then(|data| data.get(10..)).map(|rest| format!("0xa9059cbb{rest}")) {
            put(answer, CALL, json!(data));
        }
    }),
    lie("evm-value", "the call sends a coin along", "the coin", EVM, |answer| {
        put(answer, "/initiate_transaction/value", json!("0xde0b6b3a7640000"));
    }),
    lie("evm-gas", "the call may burn a billion units of gas", "the user's coins", EVM, |answer| {
        put(answer, "/initiate_transaction/gas_limit", json!("0x3b9aca00"));
    }),
    lie("evm-message", "the gasless message names another redeemer than the call", PAYMENT, EVM, |answer| {
        put(answer, "/typed_data/message/redeemer", json!(format!("0x{STRANGER}")));
    }),
    lie("evm-permit", "the gasless message is another kind of message", "the user's tokens", EVM, |answer| {
        put(answer, "/typed_data/primaryType", json!("Permit"));
    }),
    lie("evm-domain", "the gasless message is for another contract", PAYMENT, EVM, |answer| {
        put(answer, "/typed_data/domain/verifyingContract", json!(format!("0x{STRANGER}")));
    }),
    lie("native-value", "the call sends ten times the amount", "the difference", NATIVE, |answer| {
        put(answer, "/initiate_transaction/value", json!("0x1bc16d674ec80000"));
    }),
    lie("tron-redeemer", "the call names a stranger as the redeemer", PAYMENT, TRON, |answer| word(answer, CALL, 0, STRANGER)),
    lie("tron-amount", "the call locks a thousand times the amount", "the user's balance", TRON, |answer| {
        word(answer, CALL, 2, "ba43b7400");
    }),
    lie("tron-spender", "the approval is for a stranger", "the user's tokens, up to the approval", TRON, |answer| {
        word(answer, APPROVAL, 0, STRANGER);
    }),
    lie("tron-fee", "the call may burn a million coins", "the user's coins", TRON, |answer| {
        put(answer, "/initiate_transaction/gas_limit", json!("1000000000000"));
    }),
    lie("starknet-redeemer", "the call names a stranger as the redeemer", PAYMENT, STARKNET, |answer| felt(answer, 0, "0xef")),
    lie("starknet-timelock", "the call locks for thousands of years", "the refund", STARKNET, |answer| felt(answer, 1, "0xffffffffff")),
    lie("starknet-amount", "the call locks another amount", "the user's balance", STARKNET, |answer| felt(answer, 2, "0xffffffffffff")),
    lie("starknet-selector", "the call is another function", PAYMENT, STARKNET, |answer| {
        put(answer, "/initiate_transaction/selector", json!("0x83afd3f4caedc6eebf44246fe54e38c95e3179a5ec9ea81740eca5b482d12e"));
    }),
    lie("starknet-contract", "the call goes to a stranger's contract", PAYMENT, STARKNET, |answer| {
        put(answer, "/initiate_transaction/to", json!("0xef"));
    }),
    lie("starknet-message", "the gasless message names another redeemer than the call", PAYMENT, STARKNET, |answer| {
        put(answer, "/typed_data/message/redeemer", json!("0xef"));
    }),
    lie("solana-bytes", "one bit of the transaction's last instruction is another", PAYMENT, SOL, |answer| {
        byte_of(answer, "versioned_tx", 20);
    }),
    lie("solana-accounts", "one bit of an account of the transaction is another", PAYMENT, SOL, |answer| {
        byte_of(answer, "versioned_tx", 200);
    }),
    lie("solana-gasless", "the gasless transaction differs from the other one", PAYMENT, SOLANA, |answer| {
        byte_of(answer, "versioned_tx_gasless", 20);
    }),
    lie("sui-bytes", "one bit of the transaction's inputs is another", PAYMENT, SUI, |answer| sui_byte(answer, 20)),
    lie("bitcoin-address", "the deposit address is a stranger's", PAYMENT, BITCOIN, |answer| {
        put(answer, "/to", json!("tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47zagq"));
    }),
    lie("bitcoin-amount", "the deposit is twice the amount", "the difference", BITCOIN, |answer| {
        let twice = answer.pointer("/amount").and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok()).map(|amount| amount.saturating_mul(2));
        if let Some(twice) = twice {
            put(answer, "/amount", json!(twice.to_string()));
        }
    }),
];
