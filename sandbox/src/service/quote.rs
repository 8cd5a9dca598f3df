//! Quotes: the value of the input at the listed prices, less a fee of 0.3 %.

use alloy_primitives::U256;
use serde_json::{Value, json};

use super::Refused;
use crate::http::Request;
use crate::world::World;

/// The solver's fee, in basis points.
pub(super) const FEE: u64 = 30;

/// The properties of an asset that a quote depends on.
pub(super) struct Priced {
    decimals: u32,
    /// The price of a whole unit, in millionths of a USD.
    price: u64,
    pub(super) usd: f64,
    pub(super) max: u128,
}

/// Finds an asset in the lists.
pub(super) fn priced(world: &World, id: &str) -> Result<Priced, Refused> {
    let asset = world.chain_of(id)?.asset(id).ok_or_else(|| format!("unknown asset: {id}"))?;
    let number = |name: &str| asset.get(name).and_then(Value::as_u64);
    let usd = asset.get("price").and_then(Value::as_f64).unwrap_or(1.0);
    let max = asset.get("max_amount").and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(u128::MAX);
    let decimals = number("decimals").and_then(|decimals| decimals.try_into().ok()).unwrap_or(0);
    // Listed prices have at most six decimals.
    let price = format!("{usd:.6}").replace('.', "").parse().unwrap_or(1_000_000);
    Ok(Priced { decimals, price, usd, max })
}

fn ten_to(exponent: u32) -> U256 {
    U256::from(10).saturating_pow(U256::from(exponent))
}

/// Returns how much of one asset `amount` of another buys.
pub(super) fn bought(amount: u128, from: &Priced, to: &Priced) -> u128 {
    let worth = U256::from(amount).saturating_mul(U256::from(from.price)).saturating_mul(ten_to(to.decimals));
    let cost = U256::from(to.price.max(1)).saturating_mul(ten_to(from.decimals));
    let kept = U256::from(10_000_u64.saturating_sub(FEE));
    let paid = worth.checked_div(cost).unwrap_or_default().saturating_mul(kept).checked_div(U256::from(10_000)).unwrap_or_default();
    paid.try_into().unwrap_or(u128::MAX)
}

/// Returns how much has to be paid for `amount` of the second asset, rounded up.
fn needed(amount: u128, from: &Priced, to: &Priced) -> u128 {
    let worth = U256::from(amount).saturating_mul(U256::from(to.price)).saturating_mul(ten_to(from.decimals));
    let cost = U256::from(from.price.max(1)).saturating_mul(ten_to(to.decimals));
    let kept = U256::from(10_000_u64.saturating_sub(FEE));
    let paid = worth.saturating_mul(U256::from(10_000)).div_ceil(cost.saturating_mul(kept));
    let mut paid: u128 = paid.try_into().unwrap_or(u128::MAX);
    while bought(paid, from, to) < amount && paid < u128::MAX {
        paid = paid.saturating_add((paid / 10_000).max(1));
    }
    paid
}

/// Returns the value of an amount, in millionths of a USD.
pub(super) fn worth(amount: u128, asset: &Priced) -> u128 {
    let worth = U256::from(amount).saturating_mul(U256::from(asset.price)).checked_div(ten_to(asset.decimals));
    worth.and_then(|worth| worth.try_into().ok()).unwrap_or(u128::MAX)
}

fn leg(id: &str, amount: u128, asset: &Priced) -> Value {
    let unit = ten_to(asset.decimals);
    let (whole, rest) = U256::from(amount).div_rem(unit);
    let width = usize::try_from(asset.decimals).unwrap_or(0);
    let display = if width == 0 { whole.to_string() } else { format!("{whole}.{:0>width$}", rest.to_string()) };
    let micros = worth(amount, asset);
    let value = format!("{}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100);
    json!({ "asset": id, "amount": amount.to_string(), "display": display, "value": value })
}

pub(super) fn quote(world: &World, request: &Request) -> Result<Value, Refused> {
    let asked = |name: &str| request.parameter(name).filter(|value| !value.is_empty());
    let from = asked("from").ok_or("from is missing")?.to_lowercase();
    let to = asked("to").ok_or("to is missing")?.to_lowercase();
    if from == to {
        return Err("from and to are the same asset".into());
    }
    let (source, destination) = (priced(world, &from)?, priced(world, &to)?);
    let number = |name: &str| {
        let parse = |text: String| text.parse::<u128>().map_err(|_| format!("{name} is not a number of base units"));
        asked(name).map(parse).transpose()
    };
    let (paid, received) = match (number("from_amount")?, number("to_amount")?) {
        (Some(paid), None) => (paid, bought(paid, &source, &destination)),
        (None, Some(received)) => (needed(received, &source, &destination), received),
        _ => return Err("one of from_amount and to_amount is needed".into()),
    };
    if paid == 0 || received == 0 {
        return Err("the amount is too small".into());
    }
    if paid > source.max || received > destination.max {
        return Err("the amount exceeds the liquidity".into());
    }
    Ok(json!([{
        "source": leg(&from, paid, &source), "destination": leg(&to, received, &destination), "solver_id": world.solver(),
        "estimated_time": 20, "slippage": 50, "fee": FEE, "fixed_fee": "0",
    }]))
}
