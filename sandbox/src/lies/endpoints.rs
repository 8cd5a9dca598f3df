//! The lies of one endpoint of a chain. The other two endpoints are honest.

use std::collections::BTreeMap;
use std::time::Duration;

use alloy_primitives::keccak256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::components::{self, Component, Pace};
use super::{Act, Conduct, Liar, Lie};
use crate::http::{Reply, Request};

/// How an endpoint lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointLie {
    /// Repeats its first answers for ever.
    Stale,
    /// Accepts transactions and does not relay them.
    Swallows,
    /// Fails every call.
    Fails,
    /// Delays every call by a second and a half.
    Slow,
    /// Never answers.
    Hangs,
    /// Cuts its answers in half.
    Half,
    /// Answers with an HTML page.
    Html,
    /// Claims to be on another chain.
    OtherChain,
    /// Claims a chain that is a hundred thousand blocks longer than the true one.
    Ahead,
    /// Denies that anything is locked.
    Denies,
    /// Claims a lock that does not exist.
    Invents,
    /// Changes components of a transaction.
    Component(&'static [Component]),
    /// Changes the times of blocks.
    Pace(Pace),
}

/// Returns whether a call submits a transaction, in any family's interface.
fn submits(request: &Request) -> bool {
    let body = String::from_utf8_lossy(&request.body);
    let methods = ["eth_sendRawTransaction", "\"sendTransaction\"", "starknet_addInvokeTransaction"];
    request.path.ends_with("/broadcasthex")
        || request.path.ends_with("/broadcasttransaction")
        || request.path.ends_with("/ExecuteTransaction")
        || (request.method == "POST" && request.path == "/tx")
        || methods.iter().any(|method| body.contains(method))
}

impl EndpointLie {
    /// Returns which of the three endpoints lies. A value that a wallet takes from the first endpoint alone is under
    /// that endpoint's control.
    pub(super) const fn place(self) -> usize {
        if matches!(self, Self::Component(_) | Self::Pace(_)) { 0 } else { 2 }
    }

    /// Returns how long a call waits.
    pub(super) const fn delay(self) -> Option<Duration> {
        match self {
            Self::Slow => Some(Duration::from_millis(1_500)),
            Self::Hangs => Some(Duration::from_secs(120)),
            _ => None,
        }
    }

    pub(super) fn tell(
        self,
        chain: &str,
        request: &Request,
        now_millis: u64,
        remembered: &mut BTreeMap<String, Reply>,
        answer: impl Fn(&Request) -> Reply,
    ) -> Reply {
        match self {
            Self::Stale if !submits(request) => {
                let key = format!("{chain} {} {} {}", request.path, request.query, without_id(&request.body));
                let first = remembered.entry(key).or_insert_with(|| answer(request)).clone();
                with_id(first, &request.body)
            }
            Self::Swallows if submits(request) => {
                accepted(request).unwrap_or_else(|| Reply::text(503, "accepted, said the endpoint, and did nothing"))
            }
            Self::Fails => Reply::text(500, "internal error"),
            Self::Html => Reply::new(200, "text/html", "<html><body>Upgrade your plan to use this endpoint.</body></html>"),
            Self::Half => {
                let mut reply = answer(request);
                reply.body.truncate(reply.body.len() / 2);
                reply
            }
            Self::OtherChain => other_chain(request, answer(request)),
            Self::Ahead => ahead(request, answer(request)),
            Self::Denies if !submits(request) => without_locks(request, answer(request)),
            Self::Component(components) if !submits(request) => components::tell(components, request, answer),
            Self::Pace(pace) if !submits(request) => components::tell_times(pace, now_millis, request, answer(request)),
            Self::Invents if request.path.ends_with("/utxo") => Reply::json(
                200,
                &json!([{
                    "txid": "aa".repeat(32), "vout": 0, "value": 100_000_000_000_u64,
                    "status": { "confirmed": true, "block_height": 1, "block_hash": "bb".repeat(32), "block_time": 1_700_000_000 },
                }]),
            ),
            _ => answer(request),
        }
    }
}

/// Returns how an endpoint of each family answers when it has accepted a transaction, or `None` where computing the
/// id takes a node.
fn accepted(request: &Request) -> Option<Reply> {
    if request.path == "/tx" {
        let text = std::str::from_utf8(&request.body).ok()?;
        let transaction: bitcoin::Transaction = bitcoin::consensus::encode::deserialize_hex(text.trim()).ok()?;
        return Some(Reply::text(200, transaction.compute_txid().to_string()));
    }
    let call: Value = serde_json::from_slice(&request.body).ok()?;
    if request.path.ends_with("/broadcasthex") {
        // The first field of a signed transaction is its signed part, whose hash is the id.
        let bytes = hex::decode(call.get("transaction")?.as_str()?).ok()?;
        let (length, start) = match bytes.get(1..3)? {
            [low, high] if *low >= 0x80 => (usize::from(low & 0x7f) | usize::from(*high) << 7, 3_usize),
            [length, _] => (usize::from(*length), 2),
            _ => return None,
        };
        let id = hex::encode(Sha256::digest(bytes.get(start..start.checked_add(length)?)?));
        return Some(Reply::json(
            200,
            &json!({ "result": true, "code": "SUCCESS", "message": "", "txid": id, "transaction": call.get("transaction") }),
        ));
    }
    let first = call.pointer("/params/0").and_then(Value::as_str);
    let result = match call.get("method")?.as_str()? {
        "eth_sendRawTransaction" => json!(keccak256(hex::decode(first?).ok()?).to_string()),
        // The first signature follows the number of signatures.
        "sendTransaction" => json!(bs58::encode(BASE64.decode(first?).ok()?.get(1..65)?).into_string()),
        "starknet_addInvokeTransaction" => json!({ "transaction_hash": format!("0x{}", "5".repeat(60)) }),
        _ => return None,
    };
    Some(Reply::json(200, &json!({ "jsonrpc": "2.0", "id": call.get("id"), "result": result })))
}

/// Returns the reply with some of its text replaced.
fn replaced(reply: Reply, from: &str, to: &str) -> Reply {
    let text = String::from_utf8_lossy(&reply.body).replace(from, to);
    Reply { body: text.into_bytes(), ..reply }
}

fn asks(request: &Request, method: &str) -> bool {
    String::from_utf8_lossy(&request.body).contains(method)
}

fn other_chain(request: &Request, reply: Reply) -> Reply {
    if request.path == "/block-height/0" {
        return Reply::text(200, "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f");
    }
    // Base poses as Polygon. The other families change their identities in the same way.
    let identities = [
        ("eth_chainId", "\"0x2105\"", "\"0x89\""),
        ("starknet_chainId", "0x534e5f4d41494e", "0x534e5f5345504f4c4941"),
        ("getGenesisHash", "\"result\":\"5", "\"result\":\"4"),
    ];
    identities.into_iter().filter(|(method, ..)| asks(request, method)).fold(reply, |reply, (_, from, to)| replaced(reply, from, to))
}

fn ahead(request: &Request, reply: Reply) -> Reply {
    if request.path == "/blocks/tip/height" {
        let height: u64 = String::from_utf8_lossy(&reply.body).trim().parse().unwrap_or(0);
        return Reply::text(200, height.saturating_add(100_000).to_string());
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) else { return reply };
    if !asks(request, "eth_getBlockByNumber") && !asks(request, "eth_blockNumber") {
        return reply;
    }
    let further = |text: &str| {
        u64::from_str_radix(text.trim_start_matches("0x"), 16).ok().map(|height| format!("{:#x}", height.saturating_add(100_000)))
    };
    for answer in components::answers(&mut value) {
        for place in ["/result", "/result/number"] {
            if let Some(number) = answer.pointer_mut(place).filter(|number| number.is_string()) {
                let changed = number.as_str().and_then(further);
                *number = changed.map_or(Value::Null, Value::String);
            }
        }
    }
    Reply::json(reply.status, &value)
}

/// Hides what is locked: contract calls return zeros, and addresses have no outputs and no history.
fn without_locks(request: &Request, reply: Reply) -> Reply {
    if request.path.ends_with("/utxo") || request.path.contains("/txs") {
        return Reply::json(200, &json!([]));
    }
    if !asks(request, "eth_call") && !asks(request, "eth_getLogs") {
        return reply;
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) else { return reply };
    for answer in components::answers(&mut value) {
        match answer.get_mut("result") {
            Some(Value::String(text)) if text.len() > 66 => *text = format!("0x{}", "0".repeat(text.len().saturating_sub(2))),
            Some(Value::Array(logs)) => logs.clear(),
            _ => {}
        }
    }
    Reply::json(reply.status, &value)
}

/// Returns a JSON-RPC body without the members that differ between calls.
fn without_id(body: &[u8]) -> String {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return hex::encode(body) };
    if let Some(members) = value.as_object_mut() {
        members.remove("id");
    }
    value.to_string()
}

/// Returns an old reply with the id of a new call.
fn with_id(reply: Reply, body: &[u8]) -> Reply {
    let id = serde_json::from_slice::<Value>(body).ok().and_then(|call| call.get("id").cloned());
    let answer = serde_json::from_slice::<Value>(&reply.body).ok().filter(|answer| answer.get("id").is_some());
    match (id, answer) {
        (Some(id), Some(mut answer)) => {
            if let Some(place) = answer.get_mut("id") {
                *place = id;
            }
            Reply::json(reply.status, &answer)
        }
        _ => reply,
    }
}

const ROUTE: [&str; 2] = ["base:usdc", "litecoin:ltc"];
const TO_EVM: [&str; 2] = ["litecoin:ltc", "base:usdc"];
const TRON: [&str; 2] = ["tron:usdt", "base:usdc"];
const SOLANA: [&str; 2] = ["solana:usdc", "base:usdc"];
const STARKNET: [&str; 2] = ["starknet:strk", "base:usdc"];
const SUI: [&str; 2] = ["sui:sui", "base:usdc"];
const ENOUGH: &str = "nothing, if the other two are enough";
const SECRET: &str = "the whole payment: the secret goes out and the redemption is never mined";

const fn lie(name: &'static str, about: &'static str, at_stake: &'static str, route: [&'static str; 2], lie: EndpointLie) -> Lie {
    Lie { name, liar: Liar::Endpoint, about, at_stake, route, act: Act::Endpoint(lie), conduct: None }
}

pub(super) const LIES: &[Lie] = &[
    lie("endpoint-fails", "one endpoint of three fails at everything", ENOUGH, ROUTE, EndpointLie::Fails),
    lie("endpoint-fails-tron", "one endpoint of three fails at everything", ENOUGH, TRON, EndpointLie::Fails),
    lie("endpoint-fails-solana", "one endpoint of three fails at everything", ENOUGH, SOLANA, EndpointLie::Fails),
    lie("endpoint-fails-starknet", "one endpoint of three fails at everything", ENOUGH, STARKNET, EndpointLie::Fails),
    lie("endpoint-fails-sui", "one endpoint of three fails at everything", ENOUGH, SUI, EndpointLie::Fails),
    lie("endpoint-stale", "one endpoint of three repeats its first answers", ENOUGH, ROUTE, EndpointLie::Stale),
    lie("endpoint-stale-evm", "one endpoint of three repeats its first answers", ENOUGH, TO_EVM, EndpointLie::Stale),
    lie("endpoint-stale-tron", "one endpoint of three repeats its first answers", ENOUGH, TRON, EndpointLie::Stale),
    lie("endpoint-stale-solana", "one endpoint of three repeats its first answers", ENOUGH, SOLANA, EndpointLie::Stale),
    lie("endpoint-stale-starknet", "one endpoint of three repeats its first answers", ENOUGH, STARKNET, EndpointLie::Stale),
    lie("endpoint-stale-sui", "one endpoint of three repeats its first answers", ENOUGH, SUI, EndpointLie::Stale),
    lie("endpoint-slow", "one endpoint of three answers late by a second and a half", ENOUGH, ROUTE, EndpointLie::Slow),
    lie("endpoint-hangs", "one endpoint of three answers nothing", ENOUGH, ROUTE, EndpointLie::Hangs),
    lie("endpoint-half", "one endpoint of three cuts its answers in half", ENOUGH, ROUTE, EndpointLie::Half),
    lie("endpoint-html", "one endpoint of three has a page of HTML for everything", ENOUGH, ROUTE, EndpointLie::Html),
    lie(
        "endpoint-other-chain",
        "one endpoint of three is that of another chain",
        "what the user has there",
        ROUTE,
        EndpointLie::OtherChain,
    ),
    lie(
        "endpoint-other-chain-solana",
        "one endpoint of three is that of another chain",
        "what the user has there",
        SOLANA,
        EndpointLie::OtherChain,
    ),
    lie(
        "endpoint-other-chain-starknet",
        "one endpoint of three is that of another chain",
        "what the user has there",
        STARKNET,
        EndpointLie::OtherChain,
    ),
    lie(
        "endpoint-ahead",
        "one endpoint of three invents a height",
        "the swap, if its timelocks seem to be over",
        ROUTE,
        EndpointLie::Ahead,
    ),
    lie(
        "endpoint-denies",
        "one endpoint of three knows nothing of what is locked",
        "the swap, if it is given up",
        ROUTE,
        EndpointLie::Denies,
    ),
    lie(
        "endpoint-denies-evm",
        "one endpoint of three knows nothing of what is locked",
        "the swap, if it is given up",
        TO_EVM,
        EndpointLie::Denies,
    ),
    lie(
        "endpoint-invents",
        "one endpoint of three shows a payment that is not there",
        "the whole payment: a wallet that believes it shows the secret",
        ROUTE,
        EndpointLie::Invents,
    )
    .while_solver(Conduct::NeverPays),
    lie("endpoint-swallows", "one endpoint of three accepts transactions and keeps them", SECRET, ROUTE, EndpointLie::Swallows),
    lie("endpoint-swallows-evm", "one endpoint of three accepts transactions and keeps them", SECRET, TO_EVM, EndpointLie::Swallows),
    lie(
        "endpoint-swallows-tron",
        "one endpoint of three accepts transactions and keeps them",
        SECRET,
        ["base:eth", "tron:trx"],
        EndpointLie::Swallows,
    ),
    lie(
        "endpoint-swallows-solana",
        "one endpoint of three accepts transactions and keeps them",
        SECRET,
        ["base:usdc", "solana:sol"],
        EndpointLie::Swallows,
    ),
    lie(
        "endpoint-swallows-starknet",
        "one endpoint of three accepts transactions under an id of its own and keeps them",
        SECRET,
        ["base:usdc", "starknet:wbtc"],
        EndpointLie::Swallows,
    ),
    lie(
        "endpoint-swallows-sui",
        "one endpoint of three refuses transactions that are right",
        SECRET,
        ["base:usdc", "sui:sui"],
        EndpointLie::Swallows,
    ),
];
