//! `POST /v2/orders`.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::quote::{bought, priced};
use super::{Refused, body, text};
use crate::chains::Terms;
use crate::http::Request;
use crate::ledger::request_key;
use crate::order::{Order, Side};
use crate::world::World;

/// Orders that have been created but are not on disk yet. Terms are checked for one order at a time, while several
/// orders share one write to the disk.
#[derive(Debug, Default)]
pub(crate) struct Creating {
    made: Mutex<Made>,
    written: Condvar,
}

#[derive(Debug, Default)]
struct Made {
    /// The number of the newest order.
    last: u64,
    /// The requests and HTLCs of orders that are not on disk yet.
    keys: BTreeSet<String>,
}

impl Creating {
    /// Waits until no order of the same request is being written.
    fn enter(&self, request: &str) -> MutexGuard<'_, Made> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.written.wait_while(made, |made| made.keys.contains(request)).unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, keys: &[String]) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            made.keys.remove(key);
        }
        drop(made);
        self.written.notify_all();
    }
}

pub(super) fn create(world: &World, request: &Request) -> Result<Value, Refused> {
    let body = body(request)?;
    let side = |name: &str| body.get(name).filter(|side| side.is_object()).ok_or_else(|| format!("{name} is missing"));
    let (source, destination) = (side("source")?, side("destination")?);
    let given_hash = text(&body, "secret_hash").map(|hash| parse_hash(&hash)).transpose()?;
    let nonce = text(&body, "nonce");
    let owner = text(source, "owner").unwrap_or_default();

    let key = if nonce.is_none() && given_hash.is_none() {
        // Two such requests cannot be told apart.
        String::new()
    } else {
        request_key(&owner, &json!([nonce, source, destination]), &given_hash.map(hex::encode).unwrap_or_default())
    };
    // A repeated request waits for the first one, and then finds its order.
    let mut made = world.creating.enter(&key);
    if let Some(order) = world.ledger.by_request(&key) {
        return Ok(order.answer);
    }

    let number = world.ledger.count().max(made.last).saturating_add(1);
    let (secret_hash, kept_secret) = match given_hash {
        Some(hash) => (hash, None),
        None => {
            let secret = world.derived("secret", number);
            (Sha256::digest(secret).into(), Some(hex::encode(secret)))
        }
    };
    let source = terms(world, source, true, secret_hash)?;
    let destination = terms(world, destination, false, secret_hash)?;
    if source.asset == destination.asset {
        return Err("source and destination are the same asset".into());
    }
    let (paid, received) = (priced(world, &source.asset)?, priced(world, &destination.asset)?);
    if destination.amount > bought(source.amount, &paid, &received) {
        return Err("the destination's amount is more than the source pays for".into());
    }
    let settings = world.settings();
    let (payer, payee) = (world.chain_of(&source.asset)?, world.chain_of(&destination.asset)?);
    let (source_leg, mut answer) = {
        let mut engine = payer.engine();
        if settings.no_approval {
            engine.approve(&source)?;
        }
        (engine.leg(&source)?, if settings.v1_messages { engine.v1_payloads(&source)? } else { engine.payloads(&source)? })
    };
    if let Some(message) = answer.get_mut("typed_data").filter(|_| settings.no_typed_data) {
        *message = Value::Null;
    }
    let destination_leg = payee.engine().leg(&destination)?;
    let mut keys = Vec::new();
    for (chain, leg) in [(&source.asset, &source_leg), (&destination.asset, &destination_leg)] {
        let chain = chain.split_once(':').map_or("", |(chain, _)| chain);
        keys.push(format!("{chain}/{}", leg.swap_id));
        if keys.last().is_some_and(|key| made.keys.contains(key)) || world.ledger.by_swap(chain, &leg.swap_id).is_some() {
            return Err("there is an order with these terms and this secret hash already".into());
        }
    }

    let id = hex::encode(world.derived("order", number));
    answer.shift_insert(0, "order_id".to_owned(), json!(id));
    let order = Order {
        number,
        created_at: world.clock.millis(),
        nonce: nonce.unwrap_or_else(|| number.to_string()),
        affiliate_fees: body.get("affiliate_fees").filter(|fees| fees.is_array()).cloned().unwrap_or_else(|| json!([])),
        integrator: request.header("service-app-id").unwrap_or("sandbox").chars().take(256).collect(),
        source: Side::new(&source, source_leg, paid.usd),
        destination: Side::new(&destination, destination_leg, received.usd),
        kept_secret,
        answer: lied(world, answer),
        id,
    };
    let key = if key.is_empty() { order.id.clone() } else { key };
    keys.push(key.clone());
    made.last = number;
    made.keys.extend(keys.iter().cloned());
    drop(made);
    let added = world.ledger.add(&order, &key);
    world.creating.leave(&keys);
    added?;
    world.note(format!("{}: {} -> {}, order made", short(&order.id), order.source.asset, order.destination.asset));
    Ok(order.answer)
}

fn lied(world: &World, answer: Map<String, Value>) -> Value {
    let mut answer = Value::Object(answer);
    world.lies.answer(&mut answer);
    answer
}

/// Returns the first digits of an order's id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

fn parse_hash(text: &str) -> Result<[u8; 32], Refused> {
    let mut hash = [0; 32];
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode_to_slice(digits, &mut hash).map_err(|_| "secret_hash is not 32 bytes of hex")?;
    Ok(hash)
}

fn terms(world: &World, side: &Value, is_source: bool, secret_hash: [u8; 32]) -> Result<Terms, Refused> {
    let name = if is_source { "source" } else { "destination" };
    let asset = text(side, "asset").ok_or_else(|| format!("{name}.asset is missing"))?.to_lowercase();
    let amount = text(side, "amount").ok_or_else(|| format!("{name}.amount is missing"))?;
    let amount: u128 = amount.parse().map_err(|_| format!("{name}.amount is not a number of base units"))?;
    let chain = world.chain_of(&asset)?;
    let listed = priced(world, &asset)?;
    if amount == 0 || amount > listed.max {
        return Err(format!("{name}.amount is out of range").into());
    }
    let timelock = if is_source { "source_timelock" } else { "destination_timelock" };
    let timelock = chain.listing.chain.get(timelock).and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0);
    let owner = text(side, "owner");
    let is_optional = is_source && ["bitcoin", "litecoin"].iter().any(|family| asset.starts_with(family));
    if owner.is_none() && !is_optional {
        return Err(format!("{name}.owner is missing").into());
    }
    let delegate = text(side, "delegate");
    Ok(Terms { asset, amount, owner: owner.unwrap_or_default(), delegate, is_source, timelock, secret_hash })
}
