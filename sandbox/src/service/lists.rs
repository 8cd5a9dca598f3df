//! The service's lists: chains, assets, liquidity, rules, schemas, statistics and orders.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::quote::{FEE, priced, worth};
use super::{Refused, stated};
use crate::accounts;
use crate::http::{Request, put};
use crate::ledger::Role;
use crate::order::{Order, Status};
use crate::world::{Chain, World};

const DEFAULT_PAGE: usize = 10;
const LARGEST_PAGE: usize = 500;

pub(super) fn chains(world: &World) -> Value {
    let chain = |chain: &Chain| {
        let mut row = chain.listing.chain.clone();
        put(&mut row, "assets", json!(chain.listing.assets));
        row
    };
    world.chains.values().map(chain).collect()
}

pub(super) fn assets(world: &World, request: &Request) -> Value {
    let wanted = request.parameter("chain").or_else(|| request.parameter("chains"));
    let chains =
        world.chains.iter().filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted.split(',').any(|chain| chain == *name)));
    chains.flat_map(|(_, chain)| chain.listing.assets.iter().cloned()).collect()
}

pub(super) fn liquidity(world: &World) -> Value {
    let row = |(name, chain): (&String, &Chain)| {
        let engine = chain.engine();
        let solver = engine.address_of(&accounts::key(accounts::SOLVER));
        let assets = chain.listing.assets.iter().filter_map(|asset| {
            let id = asset.get("id")?.as_str()?;
            let balance = engine.balance(&solver, id).ok()?.to_string();
            Some(json!({ "asset": id, "balance": balance, "virtual_balance": balance, "readable_balance": balance, "fiat_value": "0" }))
        });
        let assets: Vec<Value> = assets.collect();
        json!({ "solver_id": world.solver(), "chain": name, "address": chain.listing.solver, "assets": assets, "liquidity": assets })
    };
    world.chains.iter().map(row).collect()
}

pub(super) fn policy() -> Value {
    json!({ "default": "open", "isolation_groups": [], "blacklist_pairs": [], "whitelist_overrides": [] })
}

/// Returns the schemas of the chains' contracts.
pub(super) fn schemas(world: &World) -> Vec<Value> {
    let listed = |chain: &Chain, member: &str| chain.listing.chain.get(member).and_then(Value::as_array).cloned().unwrap_or_default();
    let lists = world
        .chains
        .values()
        .flat_map(|chain| ["supported_htlc_schemas", "supported_token_schemas"].into_iter().flat_map(move |member| listed(chain, member)));
    let names: BTreeSet<String> = lists.filter_map(|name| name.as_str().map(str::to_owned)).collect();
    names.into_iter().map(|name| json!({ "name": name, "schema": {} })).collect()
}

/// Returns the total value of completed orders, in USD.
fn moved(world: &World) -> Result<u128, Refused> {
    let mut micros = 0_u128;
    for (asset, amount) in world.ledger.completed() {
        // A chain of an earlier start may be absent now.
        if let Ok(asset) = priced(world, &asset) {
            micros = micros.saturating_add(worth(amount, &asset));
        }
    }
    Ok(micros / 1_000_000)
}

pub(super) fn fees(world: &World) -> Result<Value, Refused> {
    Ok(json!((moved(world)?.saturating_mul(FEE.into()) / 10_000).to_string()))
}

pub(super) fn volume(world: &World) -> Result<Value, Refused> {
    Ok(json!(moved(world)?.to_string()))
}

pub(super) fn orders(world: &World, request: &Request) -> Result<Value, Refused> {
    let asked = |name: &str| request.parameter(name).filter(|value| !value.is_empty()).map(|value| value.to_lowercase());
    let number =
        |name: &str, default: usize| asked(name).map_or(Ok(default), |text| text.parse().map_err(|_| format!("{name} is not a number")));
    let page = number("page", 1)?.max(1);
    let per_page = number("per_page", DEFAULT_PAGE)?.clamp(1, LARGEST_PAGE);
    let owned = |name: &str, role: Role| asked(name).map(|owner| (key_of(&owner).to_owned(), role));
    let transaction = asked("tx_hash").map(|id| (id.split_once(':').map_or(id.as_str(), |(id, _)| id).to_owned(), Role::Any));
    let words = [owned("from_owner", Role::From), owned("to_owner", Role::To), owned("address", Role::Any), transaction];
    let words: Vec<_> = words.iter().flatten().map(|(word, role)| (word.as_str(), *role)).collect();
    let filter = Filter {
        from_chain: asked("from_chain"),
        to_chain: asked("to_chain"),
        status: asked("status").map(|status| status.split(',').map(str::to_owned).collect()),
        now: world.clock.millis(),
    };
    let first = page.saturating_sub(1).saturating_mul(per_page);
    let found = world.ledger.find(&words, |order| filter.takes(order), first, per_page);
    let data = found.orders.iter().map(|order| stated(world, order)).collect();
    Ok(listed(data, page, per_page, found.total))
}

fn listed(data: Vec<Value>, page: usize, per_page: usize, total: usize) -> Value {
    json!({ "data": data, "page": page, "total_pages": total.div_ceil(per_page), "total_items": total, "per_page": per_page })
}

/// Returns the name under which the ledger finds an owner. A compressed public key and its x coordinate name the same
/// owner.
fn key_of(owner: &str) -> &str {
    let is_key = owner.len() == 66 && (owner.starts_with("02") || owner.starts_with("03"));
    if is_key { owner.get(2..).unwrap_or(owner) } else { owner }
}

struct Filter {
    from_chain: Option<String>,
    to_chain: Option<String>,
    status: Option<BTreeSet<String>>,
    now: u64,
}

impl Filter {
    fn takes(&self, order: &Order) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        let status = order.status(self.now);
        let is_status = |name: &String| match name.as_str() {
            "all" | "display" => true,
            "not-initiated" => status == Status::NotInitiated,
            "in-progress" => status == Status::InProgress,
            "completed" | "fulfilled" => status == Status::Completed,
            "refunded" => status == Status::Refunded,
            "expired" => status == Status::Expired,
            "pending" => matches!(status, Status::NotInitiated | Status::InProgress),
            _ => false,
        };
        is(&self.from_chain, order.source.chain())
            && is(&self.to_chain, order.destination.chain())
            && self.status.as_ref().is_none_or(|wanted| wanted.iter().any(is_status))
    }
}
