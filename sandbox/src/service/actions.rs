//! `PATCH /v2/orders/{order}?action=..`.

use std::sync::PoisonError;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::create::short;
use super::{Refused, body, text};
use crate::chains::Engine;
use crate::http::Request;
use crate::order::Order;
use crate::world::World;

pub(super) fn act(world: &World, order: Order, request: &Request) -> Result<Value, Refused> {
    let action = request.parameter("action").unwrap_or_default();
    world.note(format!("{}: PATCH {action}", short(&order.id)));
    if world.lies.relayer_idles() {
        return Ok(json!("accepted"));
    }
    match action.as_str() {
        "initiate" => initiate(world, &order, &body(request)?),
        "redeem" => redeem(world, &order, &body(request)?),
        "refund" => refund(world, &order),
        "instant-refund" => instant_refund(world, &order, &body(request)?),
        _ => Err(format!("unknown action: {action}").into()),
    }
}

/// Sends something for a user, once: clients ask again until they see it.
fn relay(
    world: &World,
    order: &Order,
    action: &'static str,
    asset: &str,
    send: impl FnOnce(&mut Box<dyn Engine>) -> Result<String, String>,
) -> Result<Value, Refused> {
    // Held while it is sent, so that of two calls at once only one sends.
    let mut relayed = world.relayed.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(transaction) = relayed.get(&order.number).and_then(|sent| sent.get(action)) {
        return Ok(json!(transaction));
    }
    let chain = world.chain_of(asset)?;
    let transaction = send(&mut chain.engine())?;
    relayed.entry(order.number).or_default().insert(action, transaction.clone());
    drop(relayed);
    // What is answered is on the chain already.
    world.settle(chain);
    Ok(json!(transaction))
}

fn initiate(world: &World, order: &Order, body: &Value) -> Result<Value, Refused> {
    if let Some(seen) = &order.source.initiated {
        return Ok(json!(seen.transaction));
    }
    let signature = text(body, "signature").ok_or("signature is missing")?;
    relay(world, order, "initiate", &order.source.asset, |engine| engine.initiate(&order.source.terms(true), &signature))
}

fn redeem(world: &World, order: &Order, body: &Value) -> Result<Value, Refused> {
    let text = text(body, "secret").ok_or("secret is missing")?;
    let mut secret = [0; 32];
    hex::decode_to_slice(text.strip_prefix("0x").unwrap_or(&text), &mut secret).map_err(|_| "secret is not 32 bytes of hex")?;
    if hex::encode(Sha256::digest(secret)) != order.destination.secret_hash {
        return Err("the secret is not that of the order".into());
    }
    world.lies.learnt(&order.id, secret);
    if let Some(seen) = &order.destination.redeemed {
        return Ok(json!(seen.transaction));
    }
    if order.destination.initiated.is_none() {
        return Err("the destination is not initiated".into());
    }
    relay(world, order, "redeem", &order.destination.asset, |engine| engine.redeem(&order.destination.terms(false), &secret))
}

fn refund(world: &World, order: &Order) -> Result<Value, Refused> {
    if let Some(seen) = &order.source.refunded {
        return Ok(json!(seen.transaction));
    }
    relay(world, order, "refund", &order.source.asset, |engine| engine.refund(&order.source.terms(true)))
}

fn instant_refund(world: &World, order: &Order, body: &Value) -> Result<Value, Refused> {
    if let Some(seen) = &order.source.refunded {
        return Ok(json!(seen.transaction));
    }
    if order.destination.initiated.is_some() && !order.destination.has_ended() {
        return Err("the solver has paid already".into());
    }
    let given = match (body.get("signatures"), text(body, "signature")) {
        (Some(Value::Array(given)), _) => given.iter().filter_map(|signature| signature.as_str().map(str::to_owned)).collect(),
        (_, Some(one)) => vec![one],
        _ => return Err("signatures is missing".into()),
    };
    relay(world, order, "instant-refund", &order.source.asset, |engine| engine.instant_refund(&order.source.terms(true), &given))
}

pub(super) fn instant_refund_hashes(world: &World, order: &Order) -> Result<Value, Refused> {
    let chain = world.chain_of(&order.source.asset)?;
    let hashes = chain.engine().instant_refund_hashes(&order.source.terms(true))?;
    Ok(json!(hashes))
}
