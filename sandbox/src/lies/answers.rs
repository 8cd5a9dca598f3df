//! The service's lies in its answer to a new order, by the family of the source.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{Act, Liar, Lie};

const CALL: &str = "/initiate_transaction/data";
const APPROVAL: &str = "/approval_transaction/data";
const STRANGER: &str = "00000000000000000000000000000000000000ef";

/// Replaces the value at a place, if the answer has one there.
fn put(answer: &mut Value, place: &str, value: Value) {
    if let Some(old) = answer.pointer_mut(place).filter(|old| !old.is_null()) {
        *old = value;
    }
}

/// Replaces a word of calldata by hex digits, padded with leading zeros to 32 bytes.
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

/// Adds a member that an honest answer does not have to an object, if the object exists.
fn add(answer: &mut Value, place: &str, name: &str, value: Value) {
    if let Some(members) = answer.pointer_mut(place).and_then(Value::as_object_mut) {
        members.insert(name.to_owned(), value);
    }
}

/// Appends to calldata.
fn append(answer: &mut Value, digits: &str) {
    let changed = answer.pointer(CALL).and_then(Value::as_str).map(|data| format!("{data}{digits}"));
    if let Some(changed) = changed {
        put(answer, CALL, json!(changed));
    }
}

/// Changes one byte of a base64 transaction, counted from its end.
fn byte_of(answer: &mut Value, member: &str, from_end: usize) {
    let place = format!("/{member}");
    let Some(mut bytes) = answer.pointer(&place).and_then(Value::as_str).and_then(|text| BASE64.decode(text).ok()) else { return };
    let Some(byte) = bytes.len().checked_sub(from_end).and_then(|at| bytes.get_mut(at)) else { return };
    *byte ^= 1;
    put(answer, &place, json!(BASE64.encode(bytes)));
}

/// Changes one byte of Sui's transaction, counted from its start.
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
        if let Some(data) =
            answer.pointer(CALL).and_then(Value::as_str).and_then(|data| data.get(10..)).map(|rest| format!("0xa9059cbb{rest}"))
        {
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
    lie("evm-unlimited", "the approval is for everything that the user will ever have", "the user's tokens", EVM, |answer| {
        word(answer, APPROVAL, 1, &"f".repeat(64));
    }),
    lie("evm-redeemer-zero", "the call names nobody as the redeemer", PAYMENT, EVM, |answer| word(answer, CALL, 0, "0")),
    lie("evm-redeemer-token", "the call names the token as the redeemer", PAYMENT, EVM, |answer| {
        let token =
            answer.pointer("/approval_transaction/to").and_then(Value::as_str).and_then(|token| token.get(2..)).map(str::to_lowercase);
        word(answer, CALL, 0, &token.unwrap_or_default());
    }),
    lie("evm-timelock-zero", "the call locks for no time", PAYMENT, EVM, |answer| word(answer, CALL, 1, "0")),
    lie("evm-padding", "the redeemer has bytes where zeros belong", "whatever two readers see differently", EVM, |answer| {
        let digits =
            answer.pointer(CALL).and_then(Value::as_str).and_then(|data| data.get(34..74)).map(|redeemer| format!("ff{redeemer:0>62}"));
        word(answer, CALL, 0, &digits.unwrap_or_default());
    }),
    lie("evm-trailing", "the call has a word more than the function takes", "whatever another reader sees in it", EVM, |answer| {
        append(answer, &"0".repeat(64));
    }),
    lie("evm-message-amount", "the gasless message locks another amount than the call", "the user's balance", EVM, |answer| {
        put(answer, "/typed_data/message/amount", json!("999999999999"));
    }),
    lie("evm-message-types", "the gasless message has types that the contract has not", PAYMENT, EVM, |answer| {
        if let Some(members) = answer.pointer_mut("/typed_data/types/Initiate").and_then(Value::as_array_mut) {
            members.reverse();
        }
    }),
    lie("evm-domain-chain", "the gasless message is for another chain", "what the user has there", EVM, |answer| {
        put(answer, "/typed_data/domain/chainId", json!(137));
    }),
    lie("evm-domain-salt", "the gasless message's domain has one member more", PAYMENT, EVM, |answer| {
        add(answer, "/typed_data/domain", "salt", json!(format!("0x{}", "5a".repeat(32))));
    }),
    lie("evm-domain-text", "the version of the gasless message forges what is shown", "the user's trust in what is shown", EVM, |answer| {
        put(answer, "/typed_data/domain/version", json!("1\u{202e}\u{1b}[2K\nverified"));
    }),
    lie("evm-no-approval", "the answer leaves out the approval and the message", "a payment that fails", EVM, |answer| {
        put(answer, "/approval_transaction", json!(false));
    }),
    lie("evm-two-families", "the answer is one for Ethereum and one for Bitcoin at once", PAYMENT, EVM, |answer| {
        add(answer, "", "to", json!("tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47zagq"));
        add(answer, "", "amount", json!("50000"));
    }),
    lie("native-value", "the call sends ten times the amount", "the difference", NATIVE, |answer| {
        put(answer, "/initiate_transaction/value", json!("0x1bc16d674ec80000"));
    }),
    lie(
        "native-message",
        "there is a message to sign for a coin that no contract can pull",
        "whatever the message allows",
        NATIVE,
        |answer| {
            let contract = answer.pointer("/initiate_transaction/to").cloned();
            let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
            let domain = json!({ "name": "HTLC", "version": "3", "chainId": 8453, "verifyingContract": contract });
            let message = json!({ "redeemer": format!("0x{STRANGER}"), "timelock": "43200", "amount": "1", "secretHash": format!("0x{}", "5a".repeat(32)) });
            let initiate =
                [field("redeemer", "address"), field("timelock", "uint256"), field("amount", "uint256"), field("secretHash", "bytes32")];
            let types = json!({ "Initiate": initiate });
            add(answer, "", "typed_data", json!({ "domain": domain, "types": types, "primaryType": "Initiate", "message": message }));
        },
    ),
    lie("tron-contract", "the call goes to a stranger's contract", PAYMENT, TRON, |answer| {
        put(answer, "/initiate_transaction/to", json!("TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH"));
    }),
    lie("tron-timelock", "the call locks for thousands of years", "the refund", TRON, |answer| word(answer, CALL, 1, "ffffffffff")),
    lie("tron-hash", "the call has the hash of the solver's own secret", PAYMENT, TRON, |answer| word(answer, CALL, 3, &"5a".repeat(32))),
    lie("tron-value", "the call sends coins along", "the coins", TRON, |answer| {
        put(answer, "/initiate_transaction/value", json!("1000000"))
    }),
    lie("tron-message", "the gasless message names another redeemer than the call", PAYMENT, TRON, |answer| {
        put(answer, "/typed_data/message/redeemer", json!(format!("0x{STRANGER}")));
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
    lie("starknet-spender", "the approval is for a stranger", "the user's tokens, up to the approval", STARKNET, |answer| {
        put(answer, "/approval_transaction/calldata/0", json!("0xef"));
    }),
    lie("starknet-token", "the approval is for another token", "that token", STARKNET, |answer| {
        put(answer, "/approval_transaction/to", json!("0xef"));
    }),
    lie("starknet-unlimited", "the approval is for everything that the user will ever have", "the user's tokens", STARKNET, |answer| {
        put(answer, "/approval_transaction/calldata/1", json!("0xffffffffffffffffffffffffffffffff"));
        put(answer, "/approval_transaction/calldata/2", json!("0xffffffffffffffffffffffffffffffff"));
    }),
    lie("starknet-hash", "the call has a word of another secret's hash", PAYMENT, STARKNET, |answer| felt(answer, 4, "0x5a5a5a5a")),
    lie("starknet-prime", "a number is beyond the prime, so that libraries reduce it to another", PAYMENT, STARKNET, |answer| {
        felt(answer, 0, "0x800000000000011000000000000000000000000000000000000000000000001");
    }),
    lie("starknet-trailing", "the call has a felt more than the function takes", PAYMENT, STARKNET, |answer| {
        if let Some(felts) = answer.pointer_mut("/initiate_transaction/calldata").and_then(Value::as_array_mut) {
            felts.push(json!("0x0"));
        }
    }),
    lie("starknet-domain", "the gasless message is for another chain", "what the user has there", STARKNET, |answer| {
        put(answer, "/typed_data/domain/chainId", json!("SN_SEPOLIA"));
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
    lie("solana-trailing", "the transaction has a byte more than it says", "whatever another reader sees in it", SOL, |answer| {
        let bytes = answer.pointer("/versioned_tx").and_then(Value::as_str).and_then(|text| BASE64.decode(text).ok());
        if let Some(bytes) = bytes {
            put(answer, "/versioned_tx", json!(BASE64.encode([bytes, vec![0]].concat())));
        }
    }),
    lie("solana-spaces", "the transaction's text has a space in it", "whatever another reader sees in it", SOL, |answer| {
        let text = answer.pointer("/versioned_tx").and_then(Value::as_str).map(|text| format!(" {text}"));
        if let Some(text) = text {
            put(answer, "/versioned_tx", json!(text));
        }
    }),
    lie("solana-token-account", "one bit of an account of the token's transaction is another", PAYMENT, SOLANA, |answer| {
        byte_of(answer, "versioned_tx", 300);
    }),
    lie("sui-trailing", "the transaction has a byte more than it says", "whatever another reader sees in it", SUI, |answer| {
        if let Some(bytes) = answer.pointer_mut("/ptb_bytes").and_then(Value::as_array_mut) {
            bytes.push(json!(0));
        }
    }),
    lie("sui-kind", "the transaction is of another kind", "the user's coins", SUI, |answer| sui_byte(answer, 0)),
    lie("sui-command", "one bit of the transaction's last command is another", PAYMENT, SUI, |answer| {
        let last = answer.pointer("/ptb_bytes").and_then(Value::as_array).map_or(0, |bytes| bytes.len().saturating_sub(1));
        sui_byte(answer, last);
    }),
    lie("bitcoin-address", "the deposit address is a stranger's", PAYMENT, BITCOIN, |answer| {
        put(answer, "/to", json!("tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47zagq"));
    }),
    lie("bitcoin-network", "the deposit address is one of the main network", "a payment that nobody can find", BITCOIN, |answer| {
        put(answer, "/to", json!("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"));
    }),
    lie("bitcoin-kind", "the deposit address is an ordinary one", PAYMENT, BITCOIN, |answer| {
        put(answer, "/to", json!("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"));
    }),
    lie("bitcoin-uri", "the deposit address has parameters behind it", PAYMENT, BITCOIN, |answer| {
        let to = answer.pointer("/to").and_then(Value::as_str).map(|to| format!("{to}?amount=1"));
        if let Some(to) = to {
            put(answer, "/to", json!(to));
        }
    }),
    lie("bitcoin-amount", "the deposit is twice the amount", "the difference", BITCOIN, |answer| {
        let twice = answer
            .pointer("/amount")
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<u64>().ok())
            .map(|amount| amount.saturating_mul(2));
        if let Some(twice) = twice {
            put(answer, "/amount", json!(twice.to_string()));
        }
    }),
];
