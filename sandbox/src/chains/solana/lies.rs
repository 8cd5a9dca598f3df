//! The lies about Solana.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::bank::BLOCKHASH;
use super::{CLOCK, RECENT_BLOCKHASHES};
use crate::http::{Reply, Request};
use crate::lies::answers::{PAYMENT, edit, lie};
use crate::lies::components::{Ask, Change, NOTHING, Pace, TOO_LITTLE, TOO_MUCH, each_result, lie as component, of, paced, with_times};
use crate::lies::endpoints::{Interface, asks, replaced, submitted};
use crate::lies::{Lie, Route, Variant};

const SOLANA: Route = ["solana:usdc", "base:usdc"];
const SOL: Route = ["solana:sol", "base:usdc"];
const TO_SOLANA: Route = ["base:usdc", "solana:sol"];

/// Changes one bit of a byte of a base64 transaction, counted from its end.
fn byte(answer: &mut Value, place: &str, from_end: usize) {
    edit(answer, place, |text| {
        let mut bytes = BASE64.decode(text).ok()?;
        *bytes.len().checked_sub(from_end).and_then(|at| bytes.get_mut(at))? ^= 1;
        Some(BASE64.encode(bytes))
    });
}

/// Returns the data of the recent blockhashes account without its newest hundred entries, if a call asks for it.
fn oldest_blockhashes(call: &Value, ask: &mut Ask<'_>) -> Option<Value> {
    let mut call = call.clone();
    if call.pointer("/params/0/0").and_then(Value::as_str) != Some(RECENT_BLOCKHASHES) {
        return None;
    }
    call.pointer_mut("/params/1")?.as_object_mut()?.remove("dataSlice");
    let all = BASE64.decode(ask(&call)?.pointer("/result/value/0/data/0")?.as_str()?).ok()?;
    let (count, hashes) = all.split_first_chunk::<8>()?;
    Some(json!(BASE64.encode([count, hashes.get(100 * BLOCKHASH..)?].concat())))
}

pub(super) const VARIANTS: &[Variant] = &[
    Variant::new("solver-never-pays", SOLANA),
    Variant::new("solver-pays-less", TO_SOLANA),
    Variant::new("token-freezes", ["base:eth", "solana:usdc"]),
    Variant::new("endpoint-fails", SOLANA),
    Variant::new("endpoint-stale", SOLANA),
    Variant::new("endpoint-other-chain", SOLANA),
    Variant::new("endpoint-swallows", TO_SOLANA),
];

pub(super) const LIES: &[(u8, &[Lie])] = &[(0, COMPONENTS), (1, ANSWERS), (2, ENCODINGS)];

#[rustfmt::skip]
const ANSWERS: &[Lie] = &[
    lie("solana-bytes", "one bit of the transaction's last instruction is another", PAYMENT, SOL, |answer| byte(answer, "/versioned_tx", 20)),
    lie("solana-accounts", "one bit of an account of the transaction is another", PAYMENT, SOL, |answer| byte(answer, "/versioned_tx", 200)),
    lie("solana-gasless", "the gasless transaction differs from the other one", PAYMENT, SOLANA, |answer| byte(answer, "/versioned_tx_gasless", 20)),
];

#[rustfmt::skip]
const ENCODINGS: &[Lie] = &[
    lie("solana-trailing", "the transaction has a byte more than it says", "whatever another reader sees in it", SOL, |answer| {
        edit(answer, "/versioned_tx", |text| Some(BASE64.encode([BASE64.decode(text).ok()?, vec![0]].concat())));
    }),
    lie("solana-spaces", "the transaction's text has a space in it", "whatever another reader sees in it", SOL, |answer| {
        edit(answer, "/versioned_tx", |text| Some(format!(" {text}")));
    }),
    lie("solana-token-account", "one bit of an account of the token's transaction is another", PAYMENT, SOLANA, |answer| byte(answer, "/versioned_tx", 300)),
];

#[rustfmt::skip]
const COMPONENTS: &[Lie] = &[
    component("endpoint-solana-blockhash", "one endpoint of three offers blockhashes that are nearly spent", TOO_LITTLE, TO_SOLANA, &[of("getMultipleAccounts", "/value/*/data/0", Change::By(oldest_blockhashes))]),
    component("endpoint-solana-blockhash-source", "one endpoint of three offers blockhashes that are nearly spent", NOTHING, SOL, &[of("getMultipleAccounts", "/value/*/data/0", Change::By(oldest_blockhashes))]),
    component("endpoint-solana-height-high", "one endpoint of three shows a block height that is far ahead", TOO_LITTLE, TO_SOLANA, &[of("getBlockHeight", "", Change::Plus(1_000_000))]),
    component("endpoint-solana-height-low", "one endpoint of three shows a block height of 1", TOO_LITTLE, TO_SOLANA, &[of("getBlockHeight", "", Change::Is(1))]),
    component("endpoint-solana-validity", "one endpoint of three says the opposite about the validity of blockhashes", NOTHING, TO_SOLANA, &[of("isBlockhashValid", "/value", Change::Other)]),
    component("endpoint-solana-priority-high", "one endpoint of three shows a priority fee of 4,000 lamports for a unit", TOO_MUCH, TO_SOLANA, &[of("getRecentPrioritizationFees", "/*/prioritizationFee", Change::Is(4_000_000_000))]),
    component("endpoint-solana-priority-high-source", "one endpoint of three shows a priority fee of 4,000 lamports for a unit", TOO_MUCH, SOL, &[of("getRecentPrioritizationFees", "/*/prioritizationFee", Change::Is(4_000_000_000))]),
    component("endpoint-solana-rent-high", "one endpoint of three shows a rent a thousand times as high", NOTHING, SOL, &[of("getMinimumBalanceForRentExemption", "", Change::Times(1_000))]),
    component("endpoint-solana-rent-low", "one endpoint of three shows no rent", TOO_LITTLE, SOL, &[of("getMinimumBalanceForRentExemption", "", Change::Is(0))]),
    paced("endpoint-pace-at-once-solana", "one endpoint of three shows all slots at the same time", TO_SOLANA, Pace::AtOnce),
    paced("endpoint-pace-faster-solana", "one endpoint of three shows slots ten times as fast", TO_SOLANA, Pace::Faster),
    paced("endpoint-pace-slower-solana", "one endpoint of three shows slots ten times as slow", TO_SOLANA, Pace::Slower),
];

/// JSON-RPC as Solana has it.
pub(super) struct Rpc;

impl Interface for Rpc {
    fn submits(&self, request: &Request) -> bool {
        asks(request, "\"sendTransaction\"")
    }

    fn accepted(&self, request: &Request) -> Option<Reply> {
        submitted(request, "sendTransaction", |call| {
            // The first signature follows the number of signatures.
            Some(json!(bs58::encode(BASE64.decode(call.pointer("/params/0")?.as_str()?).ok()?.get(1..65)?).into_string()))
        })
    }

    fn on_other_chain(&self, request: &Request, reply: Reply) -> Reply {
        replaced(request, "getGenesisHash", reply, "\"result\":\"5", "\"result\":\"4")
    }

    /// The chain's time is also in an account.
    fn with_times(&self, request: &Request, reply: Reply, told: &dyn Fn(u64) -> u64) -> Reply {
        each_result(request, with_times(reply, told), &mut |call, result| {
            let keys = call.pointer("/params/0").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let Some(index) = keys.iter().position(|key| key.as_str() == Some(CLOCK)) else { return };
            edit(result, &format!("/value/{index}/data/0"), |text| {
                let mut data = BASE64.decode(text).ok()?;
                // In seconds since 1970.
                let time = data.get_mut(32..40)?.first_chunk_mut::<8>()?;
                *time = told(u64::from_le_bytes(*time)).to_le_bytes();
                Some(BASE64.encode(data))
            });
        })
    }
}
