//! The page of one order: what it asks a wallet to sign, as countersign's own page shows it. Every byte is explained.
//!
//! Only this file uses the crates that verify. The sandbox's answers do not depend on them.

use countersign::{Policy, Refusal, Registry, json};
use countersign_view::{Documents, Page};
use serde_json::{Map, Value, json};

use super::orders::state_of;
use crate::home;
use crate::http::Reply;
use crate::order::{Order, Side};
use crate::service;
use crate::world::World;

/// The page has its own policy in a `meta` element, where this directive would be ignored.
const POLICY: &str = "frame-ancestors 'none'";

pub(super) fn page(world: &World, id: &str) -> Reply {
    let Some(order) = world.ledger.by_id(id) else { return Reply::text(404, "order not found") };
    match html(world, &order) {
        Ok(html) => super::html_reply(html.replacen("<main>", &format!("<main>{}", state(&order, world.clock.millis())), 1), POLICY),
        Err(refusal) => Reply::text(500, format!("the order cannot be shown: {}", refusal.reason())),
    }
}

fn html(world: &World, order: &Order) -> Result<String, Refusal> {
    let response = json!({ "status": "Ok", "result": order.answer });
    let [registry, request, response, record] =
        [home::registry(world), request(order), response, service::stated(world, &order.as_made())].map(|document| document.to_string());
    let registry = Registry::from_json(registry.as_bytes())?;
    let (request, response, record) =
        (json::parse(request.as_bytes())?, json::parse(response.as_bytes())?, json::parse(record.as_bytes())?);
    let documents = Documents { request: &request, response: &response, record: Some(&record) };
    Ok(Page::new(documents, &registry, &Policy::default()).to_html())
}

/// Returns the state of the order today. What is verified is the record as first created, because that is what gets
/// signed.
fn state(order: &Order, now: u64) -> String {
    format!("<p>By now: {}. Below is the order as it was when it was made.</p>", state_of(order, now).text)
}

/// Returns the request that created the order.
fn request(order: &Order) -> Value {
    let mut request = Map::new();
    request.insert("source".to_owned(), side(&order.source));
    request.insert("destination".to_owned(), side(&order.destination));
    request.insert("nonce".to_owned(), json!(order.nonce));
    // If the request had no secret hash, the service generated the secret.
    if order.kept_secret.is_none() {
        request.insert("secret_hash".to_owned(), json!(order.source.secret_hash));
    }
    Value::Object(request)
}

fn side(side: &Side) -> Value {
    json!({ "asset": side.asset, "owner": side.owner, "delegate": side.delegate, "amount": side.amount.to_string() })
}
