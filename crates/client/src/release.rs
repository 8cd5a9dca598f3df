//! Decides from the service's record alone whether the secret may be released. **A record is not evidence**, so this is used only
//! where the caller has chosen [`TrustTheService`](crate::driver::TrustTheService).

use countersign::{Hold, Leg, OrderRecord, Policy, Registry, UnixTime};

use crate::status::{is_complete, refund_possible_from, timelock};

/// Checks the service's statements in a record whose terms have been verified, at `now`.
///
/// Time is nominal here, because a record does not contain the chain's own count. The margin of the destination's finality rule is
/// converted with the chain's nominal block time, and is at least half an hour.
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
    let ends = refund_possible_from(record, Leg::Destination, registry).ok_or_else(unknown)?;
    // A funding time in the future must not make the remaining time longer than the timelock itself.
    let most = timelock(record, Leg::Destination, registry).ok_or_else(unknown)?;
    let left = ends.saturating_duration_since(now).min(most).as_secs();
    let margin = asset.chain.nominal_millis(policy.finality_of(&asset.chain).margin) / 1_000;
    let needed = u64::try_from(margin).unwrap_or(u64::MAX).max(30 * 60);
    if left < needed {
        return Err(Hold::NoTime { left, needed, unit: "seconds" });
    }
    Ok(())
}
