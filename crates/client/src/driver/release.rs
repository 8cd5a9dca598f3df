//! Decides from the service's record alone whether the secret may be released. **A record is not evidence**, so this is used only
//! where the caller has chosen [`TrustTheService`](super::TrustTheService).

use countersign::{
    Leg, OrderRecord, Policy, Registry,
    chains::{Pace, UnixTime},
    evidence::Hold,
};

use crate::status::{funded_at, is_complete, timelock};

/// Checks the service's statements in a record whose terms have been verified, at `now`.
///
/// A record does not contain the chain's own count, so its blocks are taken to be as fast as its [fastest pace](countersign::chains::Pace). The
/// margin is that of the destination's finality rule, and at least half an hour.
///
/// # Errors
///
/// The [`Hold`] that says why the secret may not be released.
pub(super) fn check(record: &OrderRecord, registry: &Registry, policy: &Policy, now: UnixTime) -> Result<(), Hold> {
    let swap = &record.destination_swap;
    if is_complete(record) || swap.is_redeemed() {
        return Err(Hold::Redeemed);
    }
    if swap.is_refunded() {
        return Err(Hold::Refunded);
    }
    if swap.initiate_tx_hash.is_none() {
        return Err(Hold::NotFunded);
    }
    let (block, current, required) = (swap.initiate_block_number, swap.current_confirmations, swap.required_confirmations);
    if block.is_none() || current < required {
        let reached = if block.is_none() { "in no block".to_owned() } else { format!("{current} blocks deep") };
        return Err(Hold::NotFinal { reached, needed: format!("{required} blocks deep") });
    }
    if swap.filled_amount < swap.amount {
        return Err(Hold::differs("amount", swap.amount, swap.filled_amount));
    }
    let unknown = || Hold::Unclear("the record does not show when the solver can refund its payment".to_owned());
    let asset = registry.asset(swap.asset.as_str()).ok_or_else(unknown)?;
    let counted = |pace: &Pace| pace.counted(None);
    let most = timelock(record, Leg::Destination, registry, counted).ok_or_else(unknown)?;
    let ends = funded_at(record, Leg::Destination).ok_or_else(unknown)?.saturating_add(most);
    // A funding time in the future must not make the remaining time longer than the timelock itself.
    let left = ends.saturating_duration_since(now).min(most).as_secs();
    let margin = policy.finality_of(asset, swap.amount).margin.millis(counted(&asset.chain.pace)) / 1_000;
    let needed = u64::try_from(margin).unwrap_or(u64::MAX).max(30 * 60);
    if left < needed {
        return Err(Hold::NoTime { left, needed, unit: "seconds" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use countersign_testkit::lines::accepted_case;
    use serde_json::{Value, json};

    use super::*;
    use crate::status::{format_time, parse_time};

    /// Checks a record at `seconds` after its creation. The service states that the solver paid 600 s after its creation, and `change`
    /// changes what it states.
    fn check_at(seconds: u64, change: impl Fn(&mut Value)) -> Result<(), &'static str> {
        // Arbitrum's 600 blocks take at least 7200 s.
        let registry = include_str!("../../../../fixtures/registry.json")
            .replace(r#""id": "evm:42161","#, r#""id": "evm:42161", "block_time": 12, "min_block_time": 12,"#);
        let mut order: Value = serde_json::from_str(&accepted_case("evm-record-evm-v2").tree().at("/order").unwrap().text()).unwrap();
        let created = parse_time(order["created_at"].as_str().unwrap()).unwrap();
        let swap = &mut order["destination_swap"];
        swap["initiate_tx_hash"] = json!("aa".repeat(32));
        swap["initiate_block_number"] = json!("1234");
        swap["initiate_timestamp"] = json!(format_time(created.saturating_add(std::time::Duration::from_secs(600))));
        swap["filled_amount"] = swap["amount"].clone();
        swap["current_confirmations"] = swap["required_confirmations"].clone();
        change(&mut order);
        let record = OrderRecord::from_json(order.to_string().as_bytes()).unwrap();
        let now = created.saturating_add(std::time::Duration::from_secs(seconds));
        check(&record, &Registry::from_json(registry.as_bytes()).unwrap(), &Policy::default(), now).map_err(|hold| hold.code().name())
    }

    /// Half an hour of the 7200 s must be left.
    const LAST: u64 = 600 + 7_200 - 1_800;

    #[test]
    fn the_secret_leaves_only_when_it_is_safe() {
        for (seconds, expected) in
            [(600, Ok(())), (LAST, Ok(())), (LAST + 1, Err("destination_no_time")), (u64::MAX, Err("destination_no_time"))]
        {
            assert_eq!(check_at(seconds, |_| {}), expected, "{seconds}");
        }
        for (member, value, code) in [
            ("initiate_tx_hash", json!(""), "destination_not_funded"),
            ("initiate_block_number", json!("0"), "destination_not_final"),
            ("required_confirmations", json!(99), "destination_not_final"),
            ("filled_amount", json!("1"), "destination_differs"),
            ("refund_tx_hash", json!("cc".repeat(32)), "destination_refunded"),
            ("redeem_tx_hash", json!("bb".repeat(32)), "destination_redeemed"),
        ] {
            assert_eq!(check_at(600, |order| order["destination_swap"][member] = value.clone()), Err(code), "{member}");
        }
        // Without a time of funding or creation, the remaining time is unknown.
        let no_time = |order: &mut Value| {
            order["destination_swap"]["initiate_timestamp"] = Value::Null;
            order["created_at"] = json!("");
        };
        assert_eq!(check_at(600, no_time), Err("destination_unclear"));
    }

    #[test]
    fn a_funding_in_the_future_makes_no_room() {
        let at = |time: &'static str| move |order: &mut Value| order["destination_swap"]["initiate_timestamp"] = json!(time);
        // The remaining time is capped at the timelock itself, which is enough.
        assert_eq!(check_at(0, at("2099-01-01T00:00:00Z")), Ok(()));
        // A funding time that is too far in the past leaves too little time.
        assert_eq!(check_at(600, at("2026-03-04T00:00:00Z")), Err("destination_no_time"));
    }
}
