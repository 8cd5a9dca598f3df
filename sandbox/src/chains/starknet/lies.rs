//! The lies about Starknet.

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::lies::answers::{PAYMENT, lie, put};
use crate::lies::components::{Change, Component, NOTHING, Pace, TOO_LITTLE, TOO_MUCH, lie as component, of, paced};
use crate::lies::endpoints::{Interface, asks, replaced, submitted};
use crate::lies::solver::stop;
use crate::lies::{Conduct, Lie, Route, Variant};

const STARKNET: Route = ["starknet:strk", "litecoin:ltc"];
const FROM_STARKNET: Route = ["starknet:strk", "base:usdc"];
const TO_STARKNET: Route = ["base:usdc", "starknet:wbtc"];
const FROM_ETHER: Route = ["base:eth", "starknet:wbtc"];
/// Both sides on one chain, so that the redemption is not the account's first transaction.
const ONE_CHAIN: Route = ["starknet:strk", "starknet:wbtc"];

fn felt(answer: &mut Value, index: usize, value: &str) {
    put(answer, &format!("/initiate_transaction/calldata/{index}"), value);
}

/// Returns the components for the three prices of a block.
const fn prices(change: Change) -> [Component; 3] {
    [
        of("starknet_getBlockWithTxHashes", "/l1_gas_price/price_in_fri", change),
        of("starknet_getBlockWithTxHashes", "/l2_gas_price/price_in_fri", change),
        of("starknet_getBlockWithTxHashes", "/l1_data_gas_price/price_in_fri", change),
    ]
}

/// Returns the components for the amounts that a fee estimate names for each resource.
const fn amounts(change: Change) -> [Component; 3] {
    [
        of("starknet_estimateFee", "/*/l1_gas_consumed", change),
        of("starknet_estimateFee", "/*/l2_gas_consumed", change),
        of("starknet_estimateFee", "/*/l1_data_gas_consumed", change),
    ]
}

#[rustfmt::skip]
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new("solver-never-pays", FROM_STARKNET),
    Variant::new("solver-one-block", TO_STARKNET),
    Variant::new("token-freezes", FROM_ETHER),
    Variant::new("endpoint-fails", FROM_STARKNET),
    Variant::new("endpoint-stale", FROM_STARKNET),
    Variant::new("endpoint-other-chain", FROM_STARKNET),
    Variant::new("endpoint-swallows", TO_STARKNET).about("one endpoint of three accepts transactions under an id of its own and keeps them"),
];

pub(super) const LIES: &[(u8, &[Lie])] = &[(0, ANSWERS), (0, STOPS), (0, COMPONENTS)];

#[rustfmt::skip]
const ANSWERS: &[Lie] = &[
    lie("starknet-redeemer", "the call names a stranger as the redeemer", PAYMENT, STARKNET, |answer| felt(answer, 0, "0xef")),
    lie("starknet-timelock", "the call locks for thousands of years", "the refund", STARKNET, |answer| felt(answer, 1, "0xffffffffff")),
    lie("starknet-amount", "the call locks another amount", "the user's balance", STARKNET, |answer| felt(answer, 2, "0xffffffffffff")),
    lie("starknet-selector", "the call is another function", PAYMENT, STARKNET, |answer| put(answer, "/initiate_transaction/selector", "0x83afd3f4caedc6eebf44246fe54e38c95e3179a5ec9ea81740eca5b482d12e")),
    lie("starknet-contract", "the call goes to a stranger's contract", PAYMENT, STARKNET, |answer| put(answer, "/initiate_transaction/to", "0xef")),
    lie("starknet-spender", "the approval is for a stranger", "the user's tokens, up to the approval", STARKNET, |answer| put(answer, "/approval_transaction/calldata/0", "0xef")),
    lie("starknet-token", "the approval is for another token", "that token", STARKNET, |answer| put(answer, "/approval_transaction/to", "0xef")),
    lie("starknet-unlimited", "the approval is for everything that the user will ever have", "the user's tokens", STARKNET, |answer| {
        put(answer, "/approval_transaction/calldata/1", "0xffffffffffffffffffffffffffffffff");
        put(answer, "/approval_transaction/calldata/2", "0xffffffffffffffffffffffffffffffff");
    }),
    lie("starknet-hash", "the call has a word of another secret's hash", PAYMENT, STARKNET, |answer| felt(answer, 4, "0x5a5a5a5a")),
    lie("starknet-prime", "a number is beyond the prime, so that libraries reduce it to another", PAYMENT, STARKNET, |answer| felt(answer, 0, "0x800000000000011000000000000000000000000000000000000000000000001")),
    lie("starknet-trailing", "the call has a felt more than the function takes", PAYMENT, STARKNET, |answer| {
        if let Some(felts) = answer.pointer_mut("/initiate_transaction/calldata").and_then(Value::as_array_mut) {
            felts.push("0x0".into());
        }
    }),
    lie("starknet-domain", "the gasless message is for another chain", "what the user has there", STARKNET, |answer| put(answer, "/typed_data/domain/chainId", "SN_SEPOLIA")),
    lie("starknet-message", "the gasless message names another redeemer than the call", PAYMENT, STARKNET, |answer| put(answer, "/typed_data/message/redeemer", "0xef")),
];

const STOPS: &[Lie] = &[stop("token-pauses-starknet", "the issuer pauses the token once the solver has paid", FROM_ETHER, Conduct::Paused)];

#[rustfmt::skip]
const COMPONENTS: &[Lie] = &[
    component("endpoint-starknet-price-high", "one endpoint of three shows prices a thousand times as high", TOO_MUCH, TO_STARKNET, &prices(Change::Times(1_000))),
    component("endpoint-starknet-price-high-source", "one endpoint of three shows prices a thousand times as high", TOO_MUCH, FROM_STARKNET, &prices(Change::Times(1_000))),
    component("endpoint-starknet-price-low", "one endpoint of three shows prices of 1", TOO_LITTLE, TO_STARKNET, &prices(Change::Is(1))),
    component("endpoint-starknet-amount-high", "one endpoint of three estimates a thousand times the resources", TOO_MUCH, FROM_STARKNET, &amounts(Change::Times(1_000))),
    component("endpoint-starknet-amount-low", "one endpoint of three estimates a single unit of each resource", NOTHING, FROM_STARKNET, &amounts(Change::Is(1))),
    component("endpoint-starknet-nonce-high", "one endpoint of three shows a nonce that is seven too high", TOO_LITTLE, TO_STARKNET, &[of("starknet_getNonce", "", Change::Plus(7))]),
    component("endpoint-starknet-nonce-low", "one endpoint of three shows a nonce of 0", TOO_LITTLE, ONE_CHAIN, &[of("starknet_getNonce", "", Change::Is(0))]),
    paced("endpoint-pace-at-once-starknet", "one endpoint of three shows all blocks at the same time", TO_STARKNET, Pace::AtOnce),
    paced("endpoint-pace-faster-starknet", "one endpoint of three shows blocks ten times as fast", TO_STARKNET, Pace::Faster),
    paced("endpoint-pace-slower-starknet", "one endpoint of three shows blocks ten times as slow", TO_STARKNET, Pace::Slower),
];

/// JSON-RPC as Starknet has it.
pub(super) struct Rpc;

impl Interface for Rpc {
    fn submits(&self, request: &Request) -> bool {
        asks(request, "starknet_addInvokeTransaction")
    }

    fn accepted(&self, request: &Request) -> Option<Reply> {
        let hash = format!("0x{}", "5".repeat(60));
        submitted(request, "starknet_addInvokeTransaction", |_| Some(json!({ "transaction_hash": hash })))
    }

    fn on_other_chain(&self, request: &Request, reply: Reply) -> Reply {
        replaced(request, "starknet_chainId", reply, "0x534e5f4d41494e", "0x534e5f5345504f4c4941")
    }
}
