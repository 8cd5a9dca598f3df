//! The lies about EVM chains.

use alloy_primitives::keccak256;
use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::lies::answers::{PAYMENT, add, edit, lie, put};
use crate::lies::components::{Change, Component, NOTHING, Pace, TOO_LITTLE, TOO_MUCH, answers, lie as component, of, paced};
use crate::lies::endpoints::{AHEAD, Interface, asks, replaced, submitted};
use crate::lies::solver::stop;
use crate::lies::{Conduct, Lie, Route, Variant};

pub(crate) const CALL: &str = "/initiate_transaction/data";
pub(crate) const APPROVAL: &str = "/approval_transaction/data";
pub(crate) const STRANGER: &str = "0x00000000000000000000000000000000000000ef";

const EVM: Route = ["base:usdc", "litecoin:ltc"];
const NATIVE: Route = ["base:eth", "litecoin:ltc"];
const TO_EVM: Route = ["litecoin:ltc", "base:usdc"];
const COINS: Route = ["base:eth", "arbitrum:eth"];
/// Both sides on one chain, so that the redemption is not the account's first transaction.
const ONE_CHAIN: Route = ["base:eth", "base:usdc"];

/// Replaces a word of calldata by hex digits, padded with leading zeros to 32 bytes.
pub(crate) fn word(answer: &mut Value, place: &str, index: usize, digits: &str) {
    edit(answer, place, |data| {
        // After `0x` and the selector.
        let start = index.saturating_mul(64).saturating_add(10);
        let (before, after) = (data.get(..start)?, data.get(start.saturating_add(64)..)?);
        Some(format!("{before}{:0>64}{after}", digits.trim_start_matches("0x")))
    });
}

/// Returns the components for the base fee in the newest block and in the fee history.
const fn base_fee(change: Change) -> [Component; 2] {
    [of("eth_getBlockByNumber", "/baseFeePerGas", change), of("eth_feeHistory", "/baseFeePerGas/*", change)]
}

#[rustfmt::skip]
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new("record-invents-payment", TO_EVM),
    Variant::new("solver-never-pays", TO_EVM),
    Variant::new("solver-pays-less", TO_EVM),
    Variant::new("solver-other-hash", TO_EVM),
    Variant::new("solver-other-key", TO_EVM).about("the solver pays for a stranger's account"),
    Variant::new("solver-one-block", TO_EVM),
    Variant::new("solver-refunds-at-once", TO_EVM),
    Variant::new("endpoint-stale", TO_EVM),
    Variant::new("endpoint-denies", TO_EVM),
    Variant::new("endpoint-swallows", TO_EVM),
];

pub(super) const LIES: &[(u8, &[Lie])] = &[(0, ANSWERS), (0, COMPONENTS), (1, STOPS)];

#[rustfmt::skip]
const ANSWERS: &[Lie] = &[
    lie("evm-contract", "the call goes to a stranger's contract", PAYMENT, EVM, |answer| put(answer, "/initiate_transaction/to", STRANGER)),
    lie("evm-token", "the approval is for another token", "that token", EVM, |answer| put(answer, "/approval_transaction/to", STRANGER)),
    lie("evm-spender", "the approval is for a stranger", "the user's tokens, up to the approval", EVM, |answer| word(answer, APPROVAL, 0, STRANGER)),
    lie("evm-chain", "the call is for another chain", "what the user has there", EVM, |answer| put(answer, "/initiate_transaction/chain_id", 137)),
    lie("evm-redeemer", "the call names a stranger as the redeemer", PAYMENT, EVM, |answer| word(answer, CALL, 0, STRANGER)),
    lie("evm-timelock", "the call locks for thousands of years", "the refund", EVM, |answer| word(answer, CALL, 1, "ffffffffff")),
    lie("evm-amount", "the call locks a thousand times the amount", "the user's balance", EVM, |answer| word(answer, CALL, 2, "ba43b7400")),
    lie("evm-hash", "the call has the hash of the solver's own secret", PAYMENT, EVM, |answer| word(answer, CALL, 3, &"5a".repeat(32))),
    lie("evm-selector", "the call is another function", "the user's tokens", EVM, |answer| edit(answer, CALL, |data| Some(format!("0xa9059cbb{}", data.get(10..)?)))),
    lie("evm-value", "the call sends a coin along", "the coin", EVM, |answer| put(answer, "/initiate_transaction/value", "0xde0b6b3a7640000")),
    lie("evm-gas", "the call may burn a billion units of gas", "the user's coins", EVM, |answer| put(answer, "/initiate_transaction/gas_limit", "0x3b9aca00")),
    lie("evm-message", "the gasless message names another redeemer than the call", PAYMENT, EVM, |answer| put(answer, "/typed_data/message/redeemer", STRANGER)),
    lie("evm-permit", "the gasless message is another kind of message", "the user's tokens", EVM, |answer| put(answer, "/typed_data/primaryType", "Permit")),
    lie("evm-domain", "the gasless message is for another contract", PAYMENT, EVM, |answer| put(answer, "/typed_data/domain/verifyingContract", STRANGER)),
    lie("evm-unlimited", "the approval is for everything that the user will ever have", "the user's tokens", EVM, |answer| word(answer, APPROVAL, 1, &"f".repeat(64))),
    lie("evm-redeemer-zero", "the call names nobody as the redeemer", PAYMENT, EVM, |answer| word(answer, CALL, 0, "0")),
    lie("evm-redeemer-token", "the call names the token as the redeemer", PAYMENT, EVM, |answer| {
        let token = answer.pointer("/approval_transaction/to").and_then(Value::as_str).map(str::to_lowercase);
        word(answer, CALL, 0, &token.unwrap_or_default());
    }),
    lie("evm-timelock-zero", "the call locks for no time", PAYMENT, EVM, |answer| word(answer, CALL, 1, "0")),
    lie("evm-padding", "the redeemer has bytes where zeros belong", "whatever two readers see differently", EVM, |answer| {
        let redeemer = answer.pointer(CALL).and_then(Value::as_str).and_then(|data| data.get(34..74)).unwrap_or_default();
        word(answer, CALL, 0, &format!("ff{redeemer:0>62}"));
    }),
    lie("evm-trailing", "the call has a word more than the function takes", "whatever another reader sees in it", EVM, |answer| edit(answer, CALL, |data| Some(format!("{data}{}", "0".repeat(64))))),
    lie("evm-message-amount", "the gasless message locks another amount than the call", "the user's balance", EVM, |answer| put(answer, "/typed_data/message/amount", "999999999999")),
    lie("evm-message-types", "the gasless message has types that the contract has not", PAYMENT, EVM, |answer| {
        if let Some(members) = answer.pointer_mut("/typed_data/types/Initiate").and_then(Value::as_array_mut) {
            members.reverse();
        }
    }),
    lie("evm-domain-chain", "the gasless message is for another chain", "what the user has there", EVM, |answer| put(answer, "/typed_data/domain/chainId", 137)),
    lie("evm-domain-salt", "the gasless message's domain has one member more", PAYMENT, EVM, |answer| add(answer, "/typed_data/domain", "salt", format!("0x{}", "5a".repeat(32)))),
    lie("evm-domain-text", "the version of the gasless message forges what is shown", "the user's trust in what is shown", EVM, |answer| put(answer, "/typed_data/domain/version", "1\u{202e}\u{1b}[2K\nverified")),
    lie("evm-no-approval", "the answer leaves out the approval and the message", "a payment that fails", EVM, |answer| put(answer, "/approval_transaction", false)),
    lie("evm-two-families", "the answer is one for Ethereum and one for Bitcoin at once", PAYMENT, EVM, |answer| {
        add(answer, "", "to", "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47zagq");
        add(answer, "", "amount", "50000");
    }),
    lie("native-value", "the call sends ten times the amount", "the difference", NATIVE, |answer| put(answer, "/initiate_transaction/value", "0x1bc16d674ec80000")),
    lie("native-message", "there is a message to sign for a coin that no contract can pull", "whatever the message allows", NATIVE, |answer| {
        let contract = answer.pointer("/initiate_transaction/to").cloned();
        let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
        let domain = json!({ "name": "HTLC", "version": "3", "chainId": 8453, "verifyingContract": contract });
        let message = json!({ "redeemer": STRANGER, "timelock": "43200", "amount": "1", "secretHash": format!("0x{}", "5a".repeat(32)) });
        let initiate = [field("redeemer", "address"), field("timelock", "uint256"), field("amount", "uint256"), field("secretHash", "bytes32")];
        let types = json!({ "Initiate": initiate });
        add(answer, "", "typed_data", json!({ "domain": domain, "types": types, "primaryType": "Initiate", "message": message }));
    }),
];

const STOPS: &[Lie] = &[stop("token-pauses", "the issuer pauses the token once the solver has paid", TO_EVM, Conduct::Paused)];

#[rustfmt::skip]
const COMPONENTS: &[Lie] = &[
    component("endpoint-evm-base-fee-high", "one endpoint of three shows a base fee a thousand times as high", TOO_MUCH, COINS, &base_fee(Change::Times(1_000))),
    component("endpoint-evm-base-fee-low", "one endpoint of three shows a base fee of 0", TOO_LITTLE, COINS, &base_fee(Change::Is(0))),
    component("endpoint-evm-tip-high", "one endpoint of three shows tips a thousand times as high", TOO_MUCH, COINS, &[of("eth_feeHistory", "/reward/*/*", Change::Times(1_000))]),
    component("endpoint-evm-tip-low", "one endpoint of three shows blocks without tips", TOO_LITTLE, COINS, &[of("eth_feeHistory", "/reward/*/*", Change::Is(0))]),
    component("endpoint-evm-asked-tip-high", "one endpoint of three asks for a tip a thousand times as high", TOO_MUCH, COINS, &[of("eth_maxPriorityFeePerGas", "", Change::Times(1_000))]),
    component("endpoint-evm-asked-tip-low", "one endpoint of three asks for no tip", TOO_LITTLE, COINS, &[of("eth_maxPriorityFeePerGas", "", Change::Is(0))]),
    component("endpoint-evm-gas-price-high", "one endpoint of three asks for a gas price a thousand times as high", TOO_MUCH, COINS, &[of("eth_gasPrice", "", Change::Times(1_000))]),
    component("endpoint-evm-gas-price-low", "one endpoint of three asks for a gas price of 1 wei", TOO_LITTLE, COINS, &[of("eth_gasPrice", "", Change::Is(1))]),
    component("endpoint-evm-pair", "one endpoint of three shows a base fee a little above that of the others, and no tips", TOO_LITTLE, COINS, &[
        of("eth_feeHistory", "/baseFeePerGas/*", Change::Plus(3_000_000)), of("eth_feeHistory", "/reward/*/*", Change::Is(0)),
        of("eth_maxPriorityFeePerGas", "", Change::Is(0)),
    ]),
    component("endpoint-evm-gas-high", "one endpoint of three finds that a call uses fifty times the gas", NOTHING, COINS, &[of("eth_simulateV1", "/*/calls/*/gasUsed", Change::Times(50))]),
    component("endpoint-evm-gas-low", "one endpoint of three finds that a call uses 1 unit of gas", TOO_LITTLE, COINS, &[of("eth_simulateV1", "/*/calls/*/gasUsed", Change::Is(1))]),
    component("endpoint-evm-nonce-high", "one endpoint of three shows a nonce that is seven too high", TOO_LITTLE, COINS, &[of("eth_getTransactionCount", "", Change::Plus(7))]),
    component("endpoint-evm-nonce-low", "one endpoint of three shows a nonce of 0", TOO_LITTLE, ONE_CHAIN, &[of("eth_getTransactionCount", "", Change::Is(0))]),
    component("endpoint-evm-balance-low", "one endpoint of three shows no coins", NOTHING, COINS, &[of("eth_getBalance", "", Change::Is(0))]),
    paced("endpoint-pace-at-once-evm", "one endpoint of three shows all blocks at the same time", COINS, Pace::AtOnce),
    paced("endpoint-pace-faster-evm", "one endpoint of three shows blocks ten times as fast", COINS, Pace::Faster),
    paced("endpoint-pace-slower-evm", "one endpoint of three shows blocks ten times as slow", COINS, Pace::Slower),
];

/// JSON-RPC as EVM chains have it.
pub(super) struct Rpc;

impl Interface for Rpc {
    fn submits(&self, request: &Request) -> bool {
        asks(request, "eth_sendRawTransaction")
    }

    fn accepted(&self, request: &Request) -> Option<Reply> {
        submitted(request, "eth_sendRawTransaction", |call| Some(json!(keccak256(hex::decode(call.pointer("/params/0")?.as_str()?).ok()?))))
    }

    /// Base poses as Polygon.
    fn on_other_chain(&self, request: &Request, reply: Reply) -> Reply {
        replaced(request, "eth_chainId", reply, "\"0x2105\"", "\"0x89\"")
    }

    fn ahead(&self, request: &Request, reply: Reply) -> Reply {
        if !asks(request, "eth_getBlockByNumber") && !asks(request, "eth_blockNumber") {
            return reply;
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) else { return reply };
        let further = |text: &str| {
            u64::from_str_radix(text.trim_start_matches("0x"), 16).ok().map(|height| format!("{:#x}", height.saturating_add(AHEAD)))
        };
        for answer in answers(&mut value) {
            for place in ["/result", "/result/number"] {
                if let Some(number) = answer.pointer_mut(place).filter(|number| number.is_string()) {
                    *number = number.as_str().and_then(further).into();
                }
            }
        }
        Reply::json(reply.status, &value)
    }

    /// Calls return zeros, and there are no logs.
    fn without_locks(&self, request: &Request, reply: Reply) -> Reply {
        if !asks(request, "eth_call") && !asks(request, "eth_getLogs") {
            return reply;
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) else { return reply };
        for answer in answers(&mut value) {
            match answer.get_mut("result") {
                Some(Value::String(text)) if text.len() > 66 => *text = format!("0x{}", "0".repeat(text.len().saturating_sub(2))),
                Some(Value::Array(logs)) => logs.clear(),
                _ => {}
            }
        }
        Reply::json(reply.status, &value)
    }
}
