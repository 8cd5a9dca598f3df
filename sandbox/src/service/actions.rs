//! `PATCH /v2/orders/{order}?action=..`.

use std::sync::PoisonError;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::create::short;
use super::{Refused, body, text};
use crate::chains::Engine;
use crate::http::Request;
use crate::lies::Conduct;
use crate::order::Order;
use crate::world::World;

/// How long the solver has for its payment before an instant refund is possible, in milliseconds.
const ANSWERED_WITHIN: u64 = 10_000;

pub(super) fn act(world: &World, order: Order, request: &Request) -> Result<Value, Refused> {
    let action = request.parameter("action").unwrap_or_default();
    world.note(format!("{}: PATCH {action}", short(&order.id)));
    if world.lies.relayer_idles() {
        return Ok(json!("accepted"));
    }
    if let Some(transaction) = world.lies.invented_redemption().filter(|_| action == "redeem") {
        return Ok(json!(transaction));
    }
    match action.as_str() {
        "initiate" => initiate(world, &order, &body(request)?),
        "redeem" => redeem(world, &order, &body(request)?),
        "refund" => refund(world, &order),
        "instant-refund" => instant_refund(world, &order, &body(request)?),
        _ => Err(format!("unknown action: {action}").into()),
    }
}

/// Sends a user's transaction once. Clients repeat the request until they see the transaction.
fn relay(
    world: &World,
    order: &Order,
    action: &'static str,
    asset: &str,
    send: impl FnOnce(&mut Box<dyn Engine>) -> Result<String, String>,
) -> Result<Value, Refused> {
    // The lock is held while sending, so that of two concurrent calls only one sends.
    let mut relayed = world.relayed.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(transaction) = relayed.get(&order.number).and_then(|sent| sent.get(action)) {
        return Ok(json!(transaction));
    }
    let chain = world.chain_of(asset)?;
    let transaction = send(&mut chain.engine())?;
    relayed.entry(order.number).or_default().insert(action, transaction.clone());
    drop(relayed);
    // The transaction is on the chain before the client learns its id.
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
    // This reads the chain and not the record, because a client that reads the chain itself can be ahead of the
    // record.
    let terms = order.destination.terms(false);
    let sent = relay(world, order, "redeem", &order.destination.asset, |engine| engine.redeem(&terms, &secret));
    sent.map_err(|refused| if order.destination.initiated.is_none() { "the destination is not initiated".into() } else { refused })
}

fn refund(world: &World, order: &Order) -> Result<Value, Refused> {
    if let Some(seen) = &order.source.refunded {
        return Ok(json!(seen.transaction));
    }
    relay(world, order, "refund", &order.source.asset, |engine| engine.refund(&order.source.terms(true)))
}

pub(super) fn instant_refund(world: &World, order: &Order, body: &Value) -> Result<Value, Refused> {
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
    if !given.iter().all(|signature| is_for_instant_refund(signature)) {
        return Err("a signature is not 65 bytes in hex with hash type 83".into());
    }
    if is_awaited(world, order) {
        return Ok(json!("accepted"));
    }
    relay(world, order, "instant-refund", &order.source.asset, |engine| engine.instant_refund(&order.source.terms(true), &given))
}

/// Sends the redemption that a client has signed for the order's destination.
pub(super) fn broadcast(world: &World, order: &Order, body: &Value) -> Result<Value, Refused> {
    if let Some(seen) = &order.destination.redeemed {
        return Ok(json!(seen.transaction));
    }
    let bytes = text(body, "redeem_tx_bytes").ok_or("redeem_tx_bytes is missing")?;
    let chain = world.chain_of(&order.destination.asset)?;
    let reply = chain.answer(&Request::new("POST", "/tx", "", bytes));
    let said = String::from_utf8_lossy(&reply.body).into_owned();
    if reply.status != 200 {
        return Err(said.into());
    }
    world.settle(chain);
    Ok(json!(said))
}

fn is_for_instant_refund(signature: &str) -> bool {
    hex::decode(signature).is_ok_and(|bytes| bytes.len() == 65 && bytes.last() == Some(&0x83))
}

/// Returns whether the solver is still expected to pay. Clients sign an instant refund as soon as they see their own
/// payment, in case no payment follows, and repeat the request at every poll. Until then the request needs no effect,
/// so that a good order is not refunded.
fn is_awaited(world: &World, order: &Order) -> bool {
    if order.destination.initiated.is_some() || world.lies.conduct() == Some(Conduct::NeverPays) {
        return false;
    }
    let now = world.clock.millis();
    order.source.initiated.as_ref().map_or(now <= order.deadline(), |paid| {
        let is_answered = order.source.filled >= order.source.amount && paid.at <= order.deadline();
        is_answered && now <= paid.at.saturating_add(ANSWERED_WITHIN)
    })
}

/// The key under which the hashes are stored next to the relayed transactions.
pub(crate) const HASHES: &str = "hashes";

/// Returns the hashes to sign for an instant refund. They stay the same after the refund, because clients request
/// them at every poll.
pub(super) fn instant_refund_hashes(world: &World, order: &Order) -> Result<Value, Refused> {
    let chain = world.chain_of(&order.source.asset)?;
    let hashes = chain.engine().instant_refund_hashes(&order.source.terms(true));
    let mut relayed = world.relayed.lock().unwrap_or_else(PoisonError::into_inner);
    match (hashes, relayed.get(&order.number).and_then(|sent| sent.get(HASHES))) {
        (Ok(hashes), _) => {
            relayed.entry(order.number).or_default().insert(HASHES, hashes.join(","));
            Ok(json!(hashes))
        }
        (Err(_), Some(hashes)) => Ok(hashes.split(',').collect()),
        (Err(reason), None) => Err(reason.into()),
    }
}
