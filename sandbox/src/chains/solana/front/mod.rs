//! The JSON-RPC interface of a Solana node.

mod accounts;
mod params;
mod slots;
mod transactions;
mod views;

use serde_json::{Value, json};

use super::engine::Solana;
use crate::http::{Reply, Request};
use params::{Failure, Params};

/// The maximum length of a request body.
const MAX_BODY: usize = 50 * 1_024;

type Answer = Result<Value, Failure>;

/// Answers a request.
pub(super) fn answer(solana: &mut Solana, request: &Request) -> Reply {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/health") => return Reply::text(200, "ok"),
        ("POST", _) => {}
        _ => return Reply::text(405, "Used HTTP Method is not allowed. POST or OPTIONS is required\n"),
    }
    if request.header("content-type").is_some_and(|kind| !kind.trim_start().to_ascii_lowercase().starts_with("application/json")) {
        return Reply::text(415, "Supplied content type is not allowed. Content-Type: application/json is required\n");
    }
    if request.body.len() > MAX_BODY {
        return Reply::text(413, "Request Entity Too Large\n");
    }
    let reply = match serde_json::from_slice::<Value>(&request.body) {
        Err(_) => Some(refused(&Value::Null, &Failure::new(-32_700, "Parse error"))),
        Ok(Value::Array(calls)) if calls.is_empty() => Some(refused(&Value::Null, &Failure::invalid_request())),
        Ok(Value::Array(calls)) => {
            let replies: Vec<_> = calls.iter().filter_map(|call| reply(solana, call)).collect();
            (!replies.is_empty()).then_some(Value::Array(replies))
        }
        Ok(call) => reply(solana, &call),
    };
    reply.map_or_else(|| Reply::new(200, "application/json", ""), |reply| Reply::json(200, &reply))
}

fn refused(id: &Value, failure: &Failure) -> Value {
    json!({"jsonrpc": "2.0", "error": failure.shown(), "id": id})
}

/// Answers one call. Returns `None` for a notification.
fn reply(solana: &mut Solana, call: &Value) -> Option<Value> {
    let id = call.get("id");
    let is_id = |id: &&Value| id.is_null() || id.is_string() || id.is_u64();
    let shown = id.filter(is_id).unwrap_or(&Value::Null);
    let method = call.get("method").and_then(Value::as_str);
    let is_call = call.get("jsonrpc").is_none_or(|version| version == "2.0") && id.is_none_or(|id| is_id(&id));
    let (Some(method), true) = (method, is_call) else { return Some(refused(shown, &Failure::invalid_request())) };
    let params = match call.get("params") {
        None | Some(Value::Null) => Ok(Params::default()),
        Some(Value::Array(params)) => Ok(Params(params)),
        Some(_) => Err(Failure::params("Invalid params: invalid type: map, expected a tuple")),
    };
    let result = params.and_then(|params| result(solana, method, &params));
    id?;
    Some(match result {
        Ok(result) => json!({"jsonrpc": "2.0", "result": result, "id": shown}),
        Err(failure) => refused(shown, &failure),
    })
}

fn result(solana: &mut Solana, method: &str, params: &Params<'_>) -> Answer {
    match method {
        "sendTransaction" => return solana.send_transaction(params),
        "simulateTransaction" => return solana.simulate_transaction(params),
        _ => {}
    }
    let solana = &*solana;
    match method {
        "getAccountInfo" => solana.account_info(params),
        "getBalance" => solana.lamports(params),
        "getMultipleAccounts" => solana.multiple_accounts(params),
        "getMinimumBalanceForRentExemption" => solana.rent(params),
        "getSignatureStatuses" => solana.signature_statuses(params),
        "getSignaturesForAddress" => solana.signatures_for_address(params),
        "getTransaction" => solana.transaction(params),
        _ => solana.about_slots(method, params),
    }
}
