//! The JSON-RPC interface of a Solana node.

mod accounts;
mod params;
mod slots;
mod transactions;
mod views;

use serde_json::Value;

use super::engine::Solana;
use crate::chains::rpc::{self, Fault};
use crate::http::{Reply, Request};
use params::Params;

/// The maximum length of a request body.
const MAX_BODY: usize = 50 * 1_024;

type Answer = Result<Value, Fault>;

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
    let batch = |calls: usize| (calls == 0).then(invalid_request);
    let reply = rpc::answer(&request.body, "Parse error", batch, |call| reply(solana, call));
    reply.map_or_else(|| Reply::new(200, "application/json", ""), |reply| Reply::json(200, &reply))
}

fn invalid_request() -> Fault {
    Fault::request("Invalid request")
}

/// Answers one call. Returns `None` for a notification.
fn reply(solana: &mut Solana, call: &Value) -> Option<Value> {
    let id = call.get("id");
    let is_id = |id: &&Value| id.is_null() || id.is_string() || id.is_u64();
    let shown = id.filter(is_id).unwrap_or(&Value::Null);
    let method = call.get("method").and_then(Value::as_str);
    let is_call = call.get("jsonrpc").is_none_or(|version| version == "2.0") && id.is_none_or(|id| is_id(&id));
    let (Some(method), true) = (method, is_call) else { return Some(rpc::reply(shown, Err(invalid_request()))) };
    let params = match call.get("params") {
        None | Some(Value::Null) => Ok(Params::default()),
        Some(Value::Array(params)) => Ok(Params(params)),
        Some(_) => Err(Fault::params("Invalid params: invalid type: map, expected a tuple")),
    };
    let result = params.and_then(|params| result(solana, method, &params));
    id?;
    Some(rpc::reply(shown, result))
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
