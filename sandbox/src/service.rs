//! The service's interface under `/v2`, as `docs/spec/service.md` describes it, with the relayer's calls that clients
//! use.

mod actions;
pub(crate) mod create;
mod lists;
mod quote;

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::ledger::LedgerError;
use crate::order::Order;
use crate::world::World;
pub(crate) use actions::HASHES;
pub(crate) use create::short;

/// Why a call is refused.
#[derive(Debug)]
enum Refused {
    /// The HTTP status, and what is wrong with the request.
    Call(u16, String),
    /// The ledger has failed.
    Ledger(LedgerError),
}

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self::Call(400, text)
    }
}

impl From<&str> for Refused {
    fn from(text: &str) -> Self {
        Self::Call(400, text.to_owned())
    }
}

fn missing(what: &str) -> Refused {
    Refused::Call(404, format!("{what} not found"))
}

/// Answers a call of a client.
#[must_use]
pub fn answer(world: &World, request: &Request) -> Reply {
    match route(world, request) {
        Ok(result) => Reply::json(200, &json!({ "status": "Ok", "result": result })),
        Err(Refused::Call(status, text)) => Reply::json(status, &json!({ "status": "Error", "error": text })),
        Err(Refused::Ledger(error)) => {
            world.note(format!("service: {error}"));
            Reply::json(500, &json!({ "status": "Error", "error": "the ledger failed" }))
        }
    }
}

/// Returns whether a path belongs to the service's interface, and not to the page.
#[must_use]
pub fn serves(path: &str) -> bool {
    segments(path).next().is_some_and(|first| ["v2", "relayer"].contains(&first))
}

/// Returns the segments of a path. Clients put two slashes after the service's URL, so empty segments are skipped.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

fn route(world: &World, request: &Request) -> Result<Value, Refused> {
    let segments: Vec<&str> = segments(&request.path).collect();
    match segments.as_slice() {
        ["v2", rest @ ..] => call(world, request, rest),
        ["relayer", "bitcoin", action] if request.method == "POST" => relay(world, request, action),
        _ => Err(missing("path")),
    }
}

/// Serves the relayer's paths that clients use for Bitcoin in place of `/v2/orders`. The request body names the
/// order.
fn relay(world: &World, request: &Request, action: &str) -> Result<Value, Refused> {
    let body = body(request)?;
    let order = order(world, &text(&body, "order_id").ok_or("order_id is missing")?)?;
    world.note(format!("{}: POST bitcoin/{action}", short(&order.id)));
    match action {
        "instant-refund" | "redeem" if world.lies.relayer_idles() => Ok(json!("accepted")),
        "instant-refund-hash" => actions::instant_refund_hashes(world, &order),
        "instant-refund" => actions::instant_refund(world, &order, &body),
        "redeem" => actions::broadcast(world, &order, &body),
        _ => Err(missing("path")),
    }
}

fn call(world: &World, request: &Request, segments: &[&str]) -> Result<Value, Refused> {
    match (request.method.as_str(), segments) {
        ("GET", ["health"]) => Ok(json!("Online")),
        ("GET", ["quote"]) => quote::quote(world, request),
        ("GET", ["chains"]) => Ok(lists::chains(world)),
        ("GET", ["assets"]) => Ok(lists::assets(world, request)),
        ("GET", ["liquidity"]) => Ok(lists::liquidity(world)),
        ("GET", ["policy"]) => Ok(lists::policy()),
        ("GET", ["schemas"]) => Ok(lists::schemas(world).into()),
        ("GET", ["schemas", name]) => lists::schemas(world)
            .into_iter()
            .find(|schema| schema.get("name").and_then(Value::as_str) == Some(name))
            .ok_or_else(|| missing("schema")),
        ("GET", ["fee" | "fees"]) => lists::fees(world),
        ("GET", ["volume"]) => lists::volume(world),
        ("GET", ["apps", "earnings"]) => Ok(json!([])),
        ("GET", ["orders"]) => lists::orders(world, request),
        ("POST", ["orders"]) => create::create(world, request),
        ("GET", ["orders", id]) => Ok(stated(world, &order(world, id)?)),
        ("GET", ["orders", id, "instant-refund-hash"]) => actions::instant_refund_hashes(world, &order(world, id)?),
        ("PATCH", ["orders", id]) => actions::act(world, order(world, id)?, request),
        (_, ["orders", ..]) => Err(Refused::Call(405, "method not allowed".to_owned())),
        _ => Err(missing("path")),
    }
}

fn order(world: &World, id: &str) -> Result<Order, Refused> {
    world.ledger.by_id(&id.to_lowercase()).ok_or_else(|| missing("order"))
}

/// Returns the record of an order as the service states it, including its lies.
#[must_use]
pub fn stated(world: &World, order: &Order) -> Value {
    let height = |asset: &str| world.chain_of(asset).map_or(0, |chain| chain.engine().height());
    let heights = [height(&order.source.asset), height(&order.destination.asset)];
    let mut record = order.record(heights, &world.solver());
    world.lies.record(&mut record, order);
    record
}

fn body(request: &Request) -> Result<Value, Refused> {
    let value: Value = serde_json::from_slice(&request.body).map_err(|error| format!("malformed JSON: {error}"))?;
    if value.is_object() { Ok(value) } else { Err("the body is not an object".into()) }
}

/// Returns a text, or a number as text, or `None` if the member is absent, null or empty.
fn text(value: &Value, name: &str) -> Option<String> {
    match value.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    }
}
