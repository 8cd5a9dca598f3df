//! When a secret may be released.
//!
//! Whoever learns the secret can redeem the source leg. It is released only once the destination leg holds what was promised,
//! in a block, under terms that were verified, and with enough of its timelock left that the redemption lands before the
//! solver could take its payment back.

use std::time::Duration;

use countersign::{Leg, OrderRecord, Registry, U256};

use crate::status::{is_complete, refund_possible_from, timelock};

/// The default for the minimum time that must be left before the solver could take its payment back: a redemption needs some
/// blocks.
pub const HEADROOM: Duration = Duration::from_secs(30 * 60);

/// Why a secret is not released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hold {
    /// The solver has not paid yet.
    #[error("the destination is not funded")]
    NotFunded,
    /// The solver's payment is not in a block yet, or not deep enough.
    #[error("the funding of the destination has {current} of {required} confirmations, block {block}")]
    NotConfirmed {
        /// Block of the payment, 0 if there is none.
        block: u64,
        /// Confirmations so far.
        current: u64,
        /// Confirmations that the service waits for.
        required: u64,
    },
    /// The solver has paid less than was promised.
    #[error("the destination holds {actual} of {expected} base units")]
    Underfunded {
        /// Base units promised.
        expected: U256,
        /// Base units paid.
        actual: U256,
    },
    /// The solver has taken its payment back.
    #[error("the destination is refunded")]
    Refunded,
    /// The destination is redeemed already.
    #[error("the destination is already redeemed")]
    Redeemed,
    /// The solver could take its payment back before the redemption lands.
    #[error("the solver can take its payment back in {left} s; {needed} s are needed")]
    NoRoom {
        /// Seconds until then.
        left: u64,
        /// Seconds that are needed.
        needed: u64,
    },
    /// Nothing says when the solver could take its payment back.
    #[error("nothing says when the solver can take its payment back")]
    TimeUnknown,
    /// The secret is that of another order.
    #[error("this is not the secret of the order's hash")]
    OtherSecret,
}

impl Hold {
    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFunded => "destination_not_funded",
            Self::NotConfirmed { .. } => "destination_not_confirmed",
            Self::Underfunded { .. } => "destination_underfunded",
            Self::Refunded => "destination_refunded",
            Self::Redeemed => "destination_redeemed",
            Self::NoRoom { .. } => "destination_no_room",
            Self::TimeUnknown => "destination_time_unknown",
            Self::OtherSecret => "secret_wrong",
        }
    }

    /// Returns whether waiting may help.
    #[must_use]
    pub const fn may_end(&self) -> bool {
        matches!(self, Self::NotFunded | Self::NotConfirmed { .. } | Self::Underfunded { .. })
    }
}

/// Checks whether the secret may be released, by a record whose terms have been verified ([`crate::Flow::follow`]) and the
/// current time in Unix seconds, which must not run behind.
///
/// The record is what the service states: a wallet that reads the destination chain itself checks there first.
///
/// # Errors
///
/// [`Hold`], which says why it may not.
pub fn check(record: &OrderRecord, registry: &Registry, now: u64, headroom: Duration) -> Result<(), Hold> {
    let swap = &record.destination_swap;
    if is_complete(record) || swap.is_redeemed() {
        return Err(Hold::Redeemed);
    }
    if swap.is_refunded() {
        return Err(Hold::Refunded);
    }
    if swap.initiate_tx_hash.is_empty() {
        return Err(Hold::NotFunded);
    }
    let (block, current, required) = (swap.initiate_block_number, swap.current_confirmations, swap.required_confirmations);
    if block == 0 || current < required {
        return Err(Hold::NotConfirmed { block, current, required });
    }
    if swap.filled_amount < swap.amount {
        return Err(Hold::Underfunded { expected: swap.amount, actual: swap.filled_amount });
    }
    let ends = refund_possible_from(record, Leg::Destination, registry).ok_or(Hold::TimeUnknown)?;
    // A funding that lies in the future by this clock must not make more room than the timelock itself.
    let most = timelock(record, Leg::Destination, registry).ok_or(Hold::TimeUnknown)?;
    let (left, needed) = (ends.saturating_sub(now).min(most), headroom.as_secs());
    if left < needed {
        return Err(Hold::NoRoom { left, needed });
    }
    Ok(())
}
