//! Lies of one of three endpoints about a single component of a transaction, or about block times. The other two
//! endpoints are honest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{Act, EndpointLie, Liar, Lie};
use crate::chains::{solana, sui};
use crate::http::{Reply, Request};

/// A part of an endpoint's answer, and how it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// A JSON-RPC method, or the end of a path.
    method: &'static str,
    /// The path to it from the result, for example `/reward/*/*`. `*` matches each item, and `key=value` each item
    /// whose member `key` is `value`.
    place: &'static str,
    change: Change,
}

/// How a number or a text is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Multiplied by this.
    Times(u32),
    /// Divided by this.
    Part(u32),
    /// Increased by this.
    Plus(u32),
    /// Decreased by this.
    Less(u32),
    /// Replaced by this.
    Is(u32),
    /// The negation of a truth value, or another hash of the same length.
    Other,
    /// Blockhashes that have nearly expired, in place of the newest ones.
    Oldest,
}

/// How fast the blocks of a chain seem to come, judging by their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// All blocks have the same time.
    AtOnce,
    /// Ten times the true speed.
    Faster,
    /// A tenth of the true speed.
    Slower,
}

impl Pace {
    /// Returns the false form of a time in seconds or milliseconds since 1970.
    fn told(self, time: u64, now_millis: u64) -> u64 {
        // Seconds have ten digits, milliseconds thirteen.
        let now = if time < 100_000_000_000 { now_millis / 1_000 } else { now_millis };
        let ago = now.saturating_sub(time);
        now.saturating_sub(match self {
            Self::AtOnce => 0,
            Self::Faster => ago / 10,
            Self::Slower => ago.saturating_mul(10),
        })
    }
}

impl Change {
    fn of(self, number: u128) -> u128 {
        match self {
            Self::Times(times) => number.saturating_mul(times.into()),
            Self::Part(parts) => number.checked_div(parts.into()).unwrap_or_default(),
            Self::Plus(more) => number.saturating_add(more.into()),
            Self::Less(less) => number.saturating_sub(less.into()),
            Self::Is(other) => other.into(),
            Self::Other | Self::Oldest => number,
        }
    }

    fn of_float(self, number: f64) -> f64 {
        match self {
            Self::Times(times) => number * f64::from(times),
            Self::Part(parts) => number / f64::from(parts),
            Self::Is(other) => f64::from(other),
            _ => number,
        }
    }

    /// Changes a truth value, a hash, or a number in any format.
    fn apply(self, value: &mut Value) {
        *value = match &*value {
            Value::Bool(truth) => json!(*truth ^ (self == Self::Other)),
            Value::String(text) if self == Self::Other => json!(other_hash(text)),
            Value::String(text) => match (text.strip_prefix("0x").map(|digits| u128::from_str_radix(digits, 16)), text.parse()) {
                (Some(Ok(number)), _) => json!(format!("{:#x}", self.of(number))),
                (None, Ok(number)) => json!(self.of(number).to_string()),
                _ => return,
            },
            Value::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(number), _) => json!(u64::try_from(self.of(number.into())).unwrap_or(u64::MAX)),
                (None, Some(number)) => json!(self.of_float(number)),
                _ => return,
            },
            _ => return,
        };
    }
}

/// Returns a text with different digits in its middle.
fn other_hash(text: &str) -> String {
    let middle = text.len() / 2..(text.len() / 2).saturating_add(4);
    text.char_indices().map(|(index, digit)| if middle.contains(&index) { if digit == '5' { '7' } else { '5' } } else { digit }).collect()
}

/// Changes the values at a place.
fn visit(value: &mut Value, place: &str, change: &mut dyn FnMut(&mut Value)) {
    let Some(rest) = place.strip_prefix('/') else { return change(value) };
    let (step, rest) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
    match (value, step.split_once('=')) {
        (Value::Array(items), Some((key, wanted))) => {
            let is_wanted = |item: &&mut Value| item.get(key).and_then(Value::as_str) == Some(wanted);
            items.iter_mut().filter(is_wanted).for_each(|item| visit(item, rest, change));
        }
        (Value::Array(items), None) if step != "*" => {
            if let Some(item) = step.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                visit(item, rest, change);
            }
        }
        (Value::Array(items), None) => items.iter_mut().for_each(|item| visit(item, rest, change)),
        (Value::Object(members), None) if step == "*" => members.values_mut().for_each(|member| visit(member, rest, change)),
        (Value::Object(members), None) => {
            if let Some(member) = members.get_mut(step) {
                visit(member, rest, change);
            }
        }
        _ => {}
    }
}

/// Returns the answers in a JSON-RPC body: several for a batch.
pub(super) fn answers(body: &mut Value) -> Vec<&mut Value> {
    match body {
        Value::Array(answers) => answers.iter_mut().collect(),
        one => vec![one],
    }
}

/// Changes results in a JSON-RPC body. `change` gets each call and its result.
fn each_result(request: &Request, reply: Reply, change: &mut dyn FnMut(&Value, &mut Value)) -> Reply {
    let (Ok(asked), Ok(mut answered)) = (serde_json::from_slice::<Value>(&request.body), serde_json::from_slice::<Value>(&reply.body))
    else {
        return reply;
    };
    let one = std::slice::from_ref(&asked);
    let calls = asked.as_array().map_or(one, Vec::as_slice);
    for answer in answers(&mut answered) {
        let call = calls.iter().find(|call| call.get("id") == answer.get("id"));
        if let (Some(call), Some(result)) = (call, answer.get_mut("result")) {
            change(call, result);
        }
    }
    Reply { body: answered.to_string().into_bytes(), ..reply }
}

/// Returns whether a request is a call of this path on a node without JSON-RPC.
fn is_call(request: &Request, path: &str) -> bool {
    path.starts_with('/') && request.path.ends_with(path)
}

fn is_grpc(reply: &Reply) -> bool {
    reply.headers.iter().any(|(name, value)| name == "content-type" && value.starts_with("application/grpc-web"))
}

/// Returns the reply of an endpoint that lies about these components.
pub(super) fn tell(components: &[Component], request: &Request, mut answer: impl FnMut(&Request) -> Reply) -> Reply {
    let mut reply = answer(request);
    for Component { method, place, change } in components.iter().copied() {
        if is_call(request, method) && is_grpc(&reply) {
            let mut number = |number: u64| u64::try_from(change.of(number.into())).unwrap_or(u64::MAX);
            reply = sui::with_changed(reply, place, &mut number);
        } else if is_call(request, method) {
            if let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) {
                visit(&mut value, place, &mut |found| change.apply(found));
                reply.body = value.to_string().into_bytes();
            }
        } else {
            reply = each_result(request, reply, &mut |call, result| {
                let is_asked = call.get("method").and_then(Value::as_str) == Some(method);
                let oldest = if is_asked && change == Change::Oldest { oldest_blockhashes(request, call, &mut answer) } else { None };
                if is_asked {
                    visit(result, place, &mut |found| match &oldest {
                        Some(oldest) => *found = oldest.clone(),
                        None => change.apply(found),
                    });
                }
            });
        }
    }
    reply
}

/// Returns the account of the recent blockhashes without the newest ones, if a call asks for it.
fn oldest_blockhashes(request: &Request, call: &Value, answer: &mut dyn FnMut(&Request) -> Reply) -> Option<Value> {
    let mut call = call.clone();
    if call.pointer("/params/0/0").and_then(Value::as_str) != Some(solana::RECENT_BLOCKHASHES) {
        return None;
    }
    call.pointer_mut("/params/1")?.as_object_mut()?.remove("dataSlice");
    let whole = answer(&Request { body: call.to_string().into_bytes(), ..request.clone() });
    let whole: Value = serde_json::from_slice(&whole.body).ok()?;
    let all = BASE64.decode(whole.pointer("/result/value/0/data/0")?.as_str()?).ok()?;
    Some(json!(BASE64.encode(solana::oldest_blockhashes(&all)?)))
}

/// The members that hold times in the answers of the families' nodes.
const TIMES: [&str; 5] = ["timestamp", "mediantime", "block_time", "blockTime", "block_timestamp"];

/// Returns an endpoint's reply with changed times.
pub(super) fn tell_times(pace: Pace, now_millis: u64, request: &Request, reply: Reply) -> Reply {
    let told = |time: u64| pace.told(time, now_millis);
    if is_grpc(&reply) {
        return sui::with_times(request, reply, told);
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) else { return reply };
    if !value.is_object() && !value.is_array() {
        return reply;
    }
    each_time(&mut value, &told);
    let reply = Reply { body: value.to_string().into_bytes(), ..reply };
    // Solana's time is in an account.
    each_result(request, reply, &mut |call, result| {
        let keys = call.pointer("/params/0").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let Some(index) = keys.iter().position(|key| key.as_str() == Some(solana::CLOCK)) else { return };
        let Some(place) = result.pointer_mut(&format!("/value/{index}/data/0")) else { return };
        let data = place.as_str().and_then(|text| BASE64.decode(text).ok());
        if let Some(clock) = data.and_then(|data| solana::with_clock(data, told)) {
            *place = json!(BASE64.encode(clock));
        }
    })
}

fn each_time(value: &mut Value, told: &dyn Fn(u64) -> u64) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_time(item, told)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let hex = member.as_str().and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
                match (TIMES.contains(&name.as_str()), member.as_u64(), hex) {
                    (true, Some(time), _) => *member = json!(told(time)),
                    (true, None, Some(time)) => *member = json!(format!("{:#x}", told(time))),
                    _ => each_time(member, told),
                }
            }
        }
        _ => {}
    }
}

const EVM: [&str; 2] = ["base:eth", "arbitrum:eth"];
/// Both sides on one chain, so that the redemption is not the account's first transaction.
const ONE_EVM: [&str; 2] = ["base:eth", "base:usdc"];
const ONE_STARKNET: [&str; 2] = ["starknet:strk", "starknet:wbtc"];
const BITCOIN: [&str; 2] = ["bitcoin_testnet:btc", "litecoin_testnet:ltc"];
const FROM_TRON: [&str; 2] = ["tron:trx", "base:usdc"];
const TO_TRON: [&str; 2] = ["base:usdc", "tron:trx"];
const FROM_SOLANA: [&str; 2] = ["solana:sol", "base:usdc"];
const TO_SOLANA: [&str; 2] = ["base:usdc", "solana:sol"];
const FROM_STARKNET: [&str; 2] = ["starknet:strk", "base:usdc"];
const TO_STARKNET: [&str; 2] = ["base:usdc", "starknet:wbtc"];
const FROM_SUI: [&str; 2] = ["sui:sui", "base:usdc"];
const TO_SUI: [&str; 2] = ["base:usdc", "sui:sui"];

const TOO_MUCH: &str = "the fees, or the swap, if they are more than the user has";
const TOO_LITTLE: &str = "the whole payment: the secret goes out in a transaction that nobody mines";
const NOTHING: &str = "the swap, if nothing can be sent";
const TIMELOCKS: &str = "the whole payment: the timelocks are over sooner or later than it seems";

const fn of(method: &'static str, place: &'static str, change: Change) -> Component {
    Component { method, place, change }
}

const fn lie(
    name: &'static str,
    about: &'static str,
    at_stake: &'static str,
    route: [&'static str; 2],
    components: &'static [Component],
) -> Lie {
    Lie { name, liar: Liar::Endpoint, about, at_stake, route, act: Act::Endpoint(EndpointLie::Component(components)), conduct: None }
}

const fn paced(name: &'static str, about: &'static str, route: [&'static str; 2], pace: Pace) -> Lie {
    Lie { name, liar: Liar::Endpoint, about, at_stake: TIMELOCKS, route, act: Act::Endpoint(EndpointLie::Pace(pace)), conduct: None }
}

/// Returns the components for the base fee in the newest block and in the fee history.
const fn base_fee(change: Change) -> [Component; 2] {
    [of("eth_getBlockByNumber", "/baseFeePerGas", change), of("eth_feeHistory", "/baseFeePerGas/*", change)]
}

/// Returns the components for the three prices of a Starknet block.
const fn starknet_prices(change: Change) -> [Component; 3] {
    [
        of("starknet_getBlockWithTxHashes", "/l1_gas_price/price_in_fri", change),
        of("starknet_getBlockWithTxHashes", "/l2_gas_price/price_in_fri", change),
        of("starknet_getBlockWithTxHashes", "/l1_data_gas_price/price_in_fri", change),
    ]
}

/// Returns the components for the amounts that a fee estimate on Starknet names for each resource.
const fn starknet_amounts(change: Change) -> [Component; 3] {
    [
        of("starknet_estimateFee", "/*/l1_gas_consumed", change),
        of("starknet_estimateFee", "/*/l2_gas_consumed", change),
        of("starknet_estimateFee", "/*/l1_data_gas_consumed", change),
    ]
}

const TRON_ENERGY_PRICE: &str = "/chainParameter/key=getEnergyFee/value";
const TRON_BANDWIDTH_PRICE: &str = "/chainParameter/key=getTransactionFee/value";
const SUI_EPOCH: &str = "/sui.rpc.v2.LedgerService/GetEpoch";
const SUI_COINS: &str = "/sui.rpc.v2.StateService/ListOwnedObjects";
const SUI_SIMULATION: &str = "/sui.rpc.v2.TransactionExecutionService/SimulateTransaction";
const SUI_COST: &str = "/transaction/effects/gas_used/computation_cost";

/// All lies about single components.
#[rustfmt::skip]
pub(super) const LIES: &[Lie] = &[
    lie("endpoint-evm-base-fee-high", "one endpoint of three shows a base fee a thousand times as high", TOO_MUCH, EVM, &base_fee(Change::Times(1_000))),
    lie("endpoint-evm-base-fee-low", "one endpoint of three shows a base fee of 0", TOO_LITTLE, EVM, &base_fee(Change::Is(0))),
    lie("endpoint-evm-tip-high", "one endpoint of three shows tips a thousand times as high", TOO_MUCH, EVM, &[of("eth_feeHistory", "/reward/*/*", Change::Times(1_000))]),
    lie("endpoint-evm-tip-low", "one endpoint of three shows blocks without tips", TOO_LITTLE, EVM, &[of("eth_feeHistory", "/reward/*/*", Change::Is(0))]),
    lie("endpoint-evm-asked-tip-high", "one endpoint of three asks for a tip a thousand times as high", TOO_MUCH, EVM, &[of("eth_maxPriorityFeePerGas", "", Change::Times(1_000))]),
    lie("endpoint-evm-asked-tip-low", "one endpoint of three asks for no tip", TOO_LITTLE, EVM, &[of("eth_maxPriorityFeePerGas", "", Change::Is(0))]),
    lie("endpoint-evm-gas-price-high", "one endpoint of three asks for a gas price a thousand times as high", TOO_MUCH, EVM, &[of("eth_gasPrice", "", Change::Times(1_000))]),
    lie("endpoint-evm-gas-price-low", "one endpoint of three asks for a gas price of 1 wei", TOO_LITTLE, EVM, &[of("eth_gasPrice", "", Change::Is(1))]),
    lie("endpoint-evm-pair", "one endpoint of three shows a base fee a little above that of the others, and no tips", TOO_LITTLE, EVM, &[
        of("eth_feeHistory", "/baseFeePerGas/*", Change::Plus(3_000_000)), of("eth_feeHistory", "/reward/*/*", Change::Is(0)),
        of("eth_maxPriorityFeePerGas", "", Change::Is(0)),
    ]),
    lie("endpoint-evm-gas-high", "one endpoint of three finds that a call uses fifty times the gas", NOTHING, EVM, &[of("eth_simulateV1", "/*/calls/*/gasUsed", Change::Times(50))]),
    lie("endpoint-evm-gas-low", "one endpoint of three finds that a call uses 1 unit of gas", TOO_LITTLE, EVM, &[of("eth_simulateV1", "/*/calls/*/gasUsed", Change::Is(1))]),
    lie("endpoint-evm-nonce-high", "one endpoint of three shows a nonce that is seven too high", TOO_LITTLE, EVM, &[of("eth_getTransactionCount", "", Change::Plus(7))]),
    lie("endpoint-evm-nonce-low", "one endpoint of three shows a nonce of 0", TOO_LITTLE, ONE_EVM, &[of("eth_getTransactionCount", "", Change::Is(0))]),
    lie("endpoint-evm-balance-low", "one endpoint of three shows no coins", NOTHING, EVM, &[of("eth_getBalance", "", Change::Is(0))]),
    lie("endpoint-bitcoin-rate-high", "one endpoint of three estimates fee rates three hundred times as high", TOO_MUCH, BITCOIN, &[of("/fee-estimates", "/*", Change::Times(300))]),
    lie("endpoint-bitcoin-rate-low", "one endpoint of three estimates fee rates of a thousandth", TOO_LITTLE, BITCOIN, &[of("/fee-estimates", "/*", Change::Part(1_000))]),
    lie("endpoint-bitcoin-coins", "one endpoint of three shows coins of half their worth", NOTHING, BITCOIN, &[of("/utxo", "/*/value", Change::Part(2))]),
    lie("endpoint-solana-blockhash", "one endpoint of three offers blockhashes that are nearly spent", TOO_LITTLE, TO_SOLANA, &[of("getMultipleAccounts", "/value/*/data/0", Change::Oldest)]),
    lie("endpoint-solana-blockhash-source", "one endpoint of three offers blockhashes that are nearly spent", NOTHING, FROM_SOLANA, &[of("getMultipleAccounts", "/value/*/data/0", Change::Oldest)]),
    lie("endpoint-solana-height-high", "one endpoint of three shows a block height that is far ahead", TOO_LITTLE, TO_SOLANA, &[of("getBlockHeight", "", Change::Plus(1_000_000))]),
    lie("endpoint-solana-height-low", "one endpoint of three shows a block height of 1", TOO_LITTLE, TO_SOLANA, &[of("getBlockHeight", "", Change::Is(1))]),
    lie("endpoint-solana-validity", "one endpoint of three says the opposite about the validity of blockhashes", NOTHING, TO_SOLANA, &[of("isBlockhashValid", "/value", Change::Other)]),
    lie("endpoint-solana-priority-high", "one endpoint of three shows a priority fee of 4,000 lamports for a unit", TOO_MUCH, TO_SOLANA, &[of("getRecentPrioritizationFees", "/*/prioritizationFee", Change::Is(4_000_000_000))]),
    lie("endpoint-solana-priority-high-source", "one endpoint of three shows a priority fee of 4,000 lamports for a unit", TOO_MUCH, FROM_SOLANA, &[of("getRecentPrioritizationFees", "/*/prioritizationFee", Change::Is(4_000_000_000))]),
    lie("endpoint-solana-rent-high", "one endpoint of three shows a rent a thousand times as high", NOTHING, FROM_SOLANA, &[of("getMinimumBalanceForRentExemption", "", Change::Times(1_000))]),
    lie("endpoint-solana-rent-low", "one endpoint of three shows no rent", TOO_LITTLE, FROM_SOLANA, &[of("getMinimumBalanceForRentExemption", "", Change::Is(0))]),
    lie("endpoint-starknet-price-high", "one endpoint of three shows prices a thousand times as high", TOO_MUCH, TO_STARKNET, &starknet_prices(Change::Times(1_000))),
    lie("endpoint-starknet-price-high-source", "one endpoint of three shows prices a thousand times as high", TOO_MUCH, FROM_STARKNET, &starknet_prices(Change::Times(1_000))),
    lie("endpoint-starknet-price-low", "one endpoint of three shows prices of 1", TOO_LITTLE, TO_STARKNET, &starknet_prices(Change::Is(1))),
    lie("endpoint-starknet-amount-high", "one endpoint of three estimates a thousand times the resources", TOO_MUCH, FROM_STARKNET, &starknet_amounts(Change::Times(1_000))),
    lie("endpoint-starknet-amount-low", "one endpoint of three estimates a single unit of each resource", NOTHING, FROM_STARKNET, &starknet_amounts(Change::Is(1))),
    lie("endpoint-starknet-nonce-high", "one endpoint of three shows a nonce that is seven too high", TOO_LITTLE, TO_STARKNET, &[of("starknet_getNonce", "", Change::Plus(7))]),
    lie("endpoint-starknet-nonce-low", "one endpoint of three shows a nonce of 0", TOO_LITTLE, ONE_STARKNET, &[of("starknet_getNonce", "", Change::Is(0))]),
    lie("endpoint-tron-energy-high", "one endpoint of three shows a price of energy a thousand times as high", TOO_MUCH, TO_TRON, &[of("/wallet/getchainparameters", TRON_ENERGY_PRICE, Change::Times(1_000))]),
    lie("endpoint-tron-energy-high-source", "one endpoint of three shows a price of energy a thousand times as high", TOO_MUCH, FROM_TRON, &[of("/wallet/getchainparameters", TRON_ENERGY_PRICE, Change::Times(1_000))]),
    lie("endpoint-tron-energy-low", "one endpoint of three shows a price of energy of 1 sun", TOO_LITTLE, TO_TRON, &[of("/wallet/getchainparameters", TRON_ENERGY_PRICE, Change::Is(1))]),
    lie("endpoint-tron-bandwidth-high", "one endpoint of three shows a price of bandwidth a million times as high", TOO_MUCH, TO_TRON, &[of("/wallet/getchainparameters", TRON_BANDWIDTH_PRICE, Change::Times(1_000_000))]),
    lie("endpoint-tron-estimate-high", "one endpoint of three finds that a call uses a thousand times the energy", NOTHING, FROM_TRON, &[of("/wallet/triggerconstantcontract", "/energy_used", Change::Times(1_000))]),
    lie("endpoint-tron-estimate-low", "one endpoint of three finds that a call uses 1 unit of energy", NOTHING, FROM_TRON, &[of("/wallet/triggerconstantcontract", "/energy_used", Change::Is(1))]),
    lie("endpoint-tron-reference", "one endpoint of three shows another block to refer to", TOO_LITTLE, TO_TRON, &[
        of("/walletsolidity/getblockbynum", "/blockID", Change::Other), of("/walletsolidity/getnowblock", "/blockID", Change::Other),
    ]),
    lie("endpoint-tron-reference-source", "one endpoint of three shows another block to refer to", NOTHING, FROM_TRON, &[
        of("/walletsolidity/getblockbynum", "/blockID", Change::Other), of("/walletsolidity/getnowblock", "/blockID", Change::Other),
    ]),
    lie("endpoint-tron-reference-old", "one endpoint of three shows an irreversible height that is far back", TOO_LITTLE, TO_TRON, &[of("/walletsolidity/getnowblock", "/block_header/raw_data/number", Change::Less(70_000))]),
    lie("endpoint-sui-price-high", "one endpoint of three shows a reference price a thousand times as high", TOO_MUCH, TO_SUI, &[of(SUI_EPOCH, "/epoch/reference_gas_price", Change::Times(1_000))]),
    lie("endpoint-sui-price-high-source", "one endpoint of three shows a reference price a thousand times as high", TOO_MUCH, FROM_SUI, &[of(SUI_EPOCH, "/epoch/reference_gas_price", Change::Times(1_000))]),
    lie("endpoint-sui-price-low", "one endpoint of three shows a reference price of 1", TOO_LITTLE, TO_SUI, &[of(SUI_EPOCH, "/epoch/reference_gas_price", Change::Is(1))]),
    lie("endpoint-sui-coins", "one endpoint of three shows coins at versions that do not exist", TOO_LITTLE, TO_SUI, &[of(SUI_COINS, "/objects/version", Change::Plus(1))]),
    lie("endpoint-sui-coins-source", "one endpoint of three shows coins at versions that do not exist", NOTHING, FROM_SUI, &[of(SUI_COINS, "/objects/version", Change::Plus(1))]),
    lie("endpoint-sui-coins-empty", "one endpoint of three shows coins that are worth nothing", NOTHING, TO_SUI, &[of(SUI_COINS, "/objects/balance", Change::Is(0))]),
    lie("endpoint-sui-cost-high", "one endpoint of three finds that a transaction costs a thousand times as much", TOO_MUCH, FROM_SUI, &[of(SUI_SIMULATION, SUI_COST, Change::Times(1_000))]),
    lie("endpoint-sui-cost-low", "one endpoint of three finds that a transaction costs nothing", TOO_LITTLE, FROM_SUI, &[of(SUI_SIMULATION, SUI_COST, Change::Is(0))]),
    paced("endpoint-pace-at-once-evm", "one endpoint of three shows all blocks at the same time", EVM, Pace::AtOnce),
    paced("endpoint-pace-faster-evm", "one endpoint of three shows blocks ten times as fast", EVM, Pace::Faster),
    paced("endpoint-pace-slower-evm", "one endpoint of three shows blocks ten times as slow", EVM, Pace::Slower),
    paced("endpoint-pace-at-once-bitcoin", "one endpoint of three shows all blocks at the same time", BITCOIN, Pace::AtOnce),
    paced("endpoint-pace-slower-bitcoin", "one endpoint of three shows blocks ten times as slow", BITCOIN, Pace::Slower),
    paced("endpoint-pace-at-once-solana", "one endpoint of three shows all slots at the same time", TO_SOLANA, Pace::AtOnce),
    paced("endpoint-pace-faster-solana", "one endpoint of three shows slots ten times as fast", TO_SOLANA, Pace::Faster),
    paced("endpoint-pace-slower-solana", "one endpoint of three shows slots ten times as slow", TO_SOLANA, Pace::Slower),
    paced("endpoint-pace-at-once-starknet", "one endpoint of three shows all blocks at the same time", TO_STARKNET, Pace::AtOnce),
    paced("endpoint-pace-faster-starknet", "one endpoint of three shows blocks ten times as fast", TO_STARKNET, Pace::Faster),
    paced("endpoint-pace-slower-starknet", "one endpoint of three shows blocks ten times as slow", TO_STARKNET, Pace::Slower),
    paced("endpoint-pace-at-once-tron", "one endpoint of three shows all blocks at the same time", TO_TRON, Pace::AtOnce),
    paced("endpoint-pace-slower-tron", "one endpoint of three shows blocks ten times as slow", TO_TRON, Pace::Slower),
    paced("endpoint-pace-at-once-sui", "one endpoint of three shows all checkpoints at the same time", TO_SUI, Pace::AtOnce),
    paced("endpoint-pace-slower-sui", "one endpoint of three shows checkpoints ten times as slow", TO_SUI, Pace::Slower),
];
