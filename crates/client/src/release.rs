//! When a secret may leave.
//!
//! Whoever learns the secret can redeem the source side. It leaves only once the destination side holds what was
//! promised, in a block, under terms that were verified, and with enough of its timelock left that the redemption lands
//! before the solver could take its payment back.

use std::time::Duration;

use countersign::Registry;
use countersign::core::{Leg, U256};
use countersign::wire::OrderRecord;

use crate::status::{is_complete, refund_possible_from, timelock};

/// Least time that must be left before the solver could take its payment back: a redemption needs some blocks.
pub const HEADROOM: Duration = Duration::from_secs(30 * 60);

/// Why a secret stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hold {
    /// The solver has not paid yet.
    #[error("the destination side is not funded")]
    NotFunded,
    /// The solver's payment is not in a block yet, or not deep enough.
    #[error("the funding of the destination side has {current} of {required} confirmations, block {block}")]
    NotConfirmed {
        /// Block of the payment, 0 if there is none.
        block: u64,
        /// Confirmations so far.
        current: u64,
        /// Confirmations that the service waits for.
        required: u64,
    },
    /// The solver has paid less than was promised.
    #[error("the destination side holds {got} of {wanted} base units")]
    Underfunded {
        /// Base units promised.
        wanted: U256,
        /// Base units paid.
        got: U256,
    },
    /// The solver has taken its payment back.
    #[error("the destination side is refunded")]
    Refunded,
    /// The destination side is redeemed already.
    #[error("the destination side is already redeemed")]
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
    /// A stable name.
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

    /// Whether waiting may help.
    #[must_use]
    pub const fn may_end(&self) -> bool {
        matches!(self, Self::NotFunded | Self::NotConfirmed { .. } | Self::Underfunded { .. })
    }
}

/// Whether the secret may leave, judged by a record whose terms have been verified ([`crate::Flow::follow`]) at a time in
/// unix seconds.
///
/// The record is the service's word: a wallet that watches the destination chain itself checks there first.
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
        return Err(Hold::Underfunded { wanted: swap.amount, got: swap.filled_amount });
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
