//! Decides from the service's record alone whether the secret may be released. **A record is not evidence**, so this is used only
//! where the caller has chosen [`TrustTheService`](crate::driver::TrustTheService).

use countersign::{Hold, Leg, OrderRecord, Pace, Policy, Registry, UnixTime};

use crate::status::{funded_at, is_complete, timelock};

/// Checks the service's statements in a record whose terms have been verified, at `now`.
///
/// A record does not contain the chain's own count, so its blocks are taken to be as fast as its [fastest pace](countersign::Pace). The
/// margin is that of the destination's finality rule, and at least half an hour.
///
/// # Errors
///
/// The [`Hold`] that says why the secret may not be released.
pub(crate) fn check(record: &OrderRecord, registry: &Registry, policy: &Policy, now: UnixTime) -> Result<(), Hold> {
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
