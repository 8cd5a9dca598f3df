//! The status of an order, derived from its record and the current time (`docs/spec/service.md#status`).
//!
//! The state follows from the transactions in the record. Only whether an order is late depends on the clock, because a record does
//! not contain that.

use std::time::Duration;

use countersign::chains::network::Coin;
use countersign::wire::{RecordTime, SwapRecord};
pub use countersign::wire::{format_time, parse_time};
use countersign::{
    Leg, OrderRecord, Policy, Registry,
    chains::{Pace, Span, UnixTime},
};
use serde::Serialize;

/// The state of an order, as the service's record states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// The order waits for the owner's payment.
    Created,
    /// The owner did not pay in time.
    Expired,
    /// The owner's payment was seen and is not in a block yet.
    InitiateDetected,
    /// The owner has paid.
    Initiated,
    /// The solver has paid. The secret redeems the destination.
    AwaitingRedeem,
    /// The redemption was seen and is not in a block yet.
    RedeemDetected,
    /// The owner has received the destination funds.
    Redeemed,
    /// The solver did not pay in time, or has refunded its payment. The owner can refund after the timelock.
    AwaitingRefund,
    /// The owner's refund was seen and is not in a block yet.
    RefundDetected,
    /// The owner has the source funds back.
    Refunded,
    /// The solver has redeemed the source and refunded the destination: the owner's funds are lost.
    Lost,
}

impl State {
    /// Returns the state of a record at `now`. The first row of the table in `docs/spec/service.md#status` that matches
    /// wins. Clocks differ, so the states that depend on `now` are for display, not for decisions.
    #[must_use]
    pub fn from_record(record: &OrderRecord, registry: &Registry, now: UnixTime) -> Self {
        let (source, destination) = (&record.source_swap, &record.destination_swap);
        let pays_bitcoin = is_bitcoin(destination, registry);
        if destination.redeem_tx_hash.is_some() {
            return if destination.redeem_block_number.is_some() || pays_bitcoin { Self::Redeemed } else { Self::RedeemDetected };
        }
        if source.redeem_tx_hash.is_some() && destination.refund_tx_hash.is_some() {
            return Self::Lost;
        }
        if pays_bitcoin && source.redeem_tx_hash.is_some() {
            return Self::Redeemed;
        }
        if source.refund_tx_hash.is_some() {
            return if source.refund_block_number.is_some() { Self::Refunded } else { Self::RefundDetected };
        }
        if destination.refund_tx_hash.is_some() {
            return Self::AwaitingRefund;
        }
        let late = nominal_deadline(record, registry).is_some_and(|deadline| now > deadline);
        if destination.initiate_tx_hash.is_some() {
            return Self::AwaitingRedeem;
        }
        match (source.initiate_tx_hash.is_some(), late) {
            (true, true) => Self::AwaitingRefund,
            (true, false) if source.initiate_block_number.is_some() => Self::Initiated,
            (true, false) => Self::InitiateDetected,
            (false, true) => Self::Expired,
            (false, false) => Self::Created,
        }
    }

    /// Returns the name for display, in lower-case words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Expired => "expired",
            Self::InitiateDetected => "initiate detected",
            Self::Initiated => "initiated",
            Self::AwaitingRedeem => "awaiting redeem",
            Self::RedeemDetected => "redeem detected",
            Self::Redeemed => "redeemed",
            Self::AwaitingRefund => "awaiting refund",
            Self::RefundDetected => "refund detected",
            Self::Refunded => "refunded",
            Self::Lost => "lost",
        }
    }
}

/// The state of an order, and its deadlines.
///
/// Times that depend on a timelock are nominal, because most chains count blocks, not seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The state.
    pub state: State,
    /// Whether the swap is complete by the service's own rule: `destination_swap.redeem_tx_hash` is set.
    pub complete: bool,
    /// When the owner's payment must be confirmed; `None` if the record contains neither this time nor its time of creation.
    pub deadline: Option<UnixTime>,
    /// When the owner can refund the payment; `None` if the source is not funded, or if the time is unknown.
    pub refund_possible_from: Option<UnixTime>,
    /// When the solver can refund its payment; `None` if the destination is not funded, or if the time is unknown. The secret must be
    /// used well before.
    pub solver_refund_possible_from: Option<UnixTime>,
}

impl Status {
    /// Returns the status of a record at `now`.
    #[must_use]
    pub fn from_record(record: &OrderRecord, registry: &Registry, now: UnixTime) -> Self {
        Self {
            state: State::from_record(record, registry, now),
            complete: is_complete(record),
            deadline: deadline(record, registry),
            refund_possible_from: refund_possible_from(record, Leg::Source, registry),
            solver_refund_possible_from: refund_possible_from(record, Leg::Destination, registry),
        }
    }

    /// Returns whether the order has ended, complete or refunded.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        self.complete || matches!(self.state, State::Refunded)
    }
}

/// Returns whether the swap is complete, by the service's own rule (`docs/spec/service.md#status`).
#[must_use]
pub fn is_complete(record: &OrderRecord) -> bool {
    record.destination_swap.redeem_tx_hash.is_some()
}

/// Returns when the party that funded a leg can refund it, in nominal time; `None` if the leg is not funded, or if the time is
/// unknown.
///
/// If the record does not contain the time of the funding, the order's time of creation is used instead: no funding is earlier.
#[must_use]
pub fn refund_possible_from(record: &OrderRecord, leg: Leg, registry: &Registry) -> Option<UnixTime> {
    let swap = swap(record, leg);
    if !swap.is_funded() {
        return None;
    }
    Some(funded_at(record, leg)?.saturating_add(timelock(record, leg, registry, |pace| pace.nominal)?))
}

/// Returns when the source's timelock is over by time, even if its blocks are slower than usual: the time at the slower one of the known
/// paces, and the margin of the chain's finality rule. `None` if that is unknown. `sent_at` is when the payment was last sent from here; [`UnixTime::EPOCH`] if it was
/// not. What the service states about the payment does not count, because it could put the refund off for ever.
pub(crate) fn refund_overdue_from(record: &OrderRecord, sent_at: UnixTime, registry: &Registry, policy: &Policy) -> Option<UnixTime> {
    let swap = &record.source_swap;
    let asset = registry.asset(swap.asset.as_str())?;
    let funded = time(&record.created_at)?.max(sent_at);
    let margin = seconds(policy.finality_of(asset, swap.amount).margin.millis(asset.chain.pace.slowest()));
    Some(funded.saturating_add(timelock(record, Leg::Source, registry, Pace::slowest)?).saturating_add(margin))
}

/// Returns how long a leg's timelock takes at one of the chain's paces; `None` if its asset is not pinned.
pub(crate) fn timelock(record: &OrderRecord, leg: Leg, registry: &Registry, pace: fn(&Pace) -> u64) -> Option<Duration> {
    let swap = swap(record, leg);
    let pace = pace(&registry.asset(swap.asset.as_str())?.chain.pace);
    Some(seconds(Span::Units(swap.timelock).millis(pace)))
}

/// Returns when a leg was funded, as its record states it; else when the order was created.
pub(crate) fn funded_at(record: &OrderRecord, leg: Leg) -> Option<UnixTime> {
    time(&swap(record, leg).initiate_timestamp).or_else(|| time(&record.created_at))
}

fn time(stated: &Option<RecordTime>) -> Option<UnixTime> {
    stated.as_ref()?.time()
}

fn seconds(millis: u128) -> Duration {
    Duration::from_secs(u64::try_from(millis / 1_000).unwrap_or(u64::MAX))
}

const fn swap(record: &OrderRecord, leg: Leg) -> &SwapRecord {
    match leg {
        Leg::Source => &record.source_swap,
        _ => &record.destination_swap,
    }
}

/// Returns when the owner's payment must be confirmed: the record's deadline, otherwise the time of creation plus the
/// service's payment window; `None` if both are unknown.
#[must_use]
pub fn deadline(record: &OrderRecord, registry: &Registry) -> Option<UnixTime> {
    time(&record.deadline).or_else(|| nominal_deadline(record, registry))
}

/// Returns how long the source chain needs for the confirmations that the service requires, at the slower one of the known paces; [`Duration::MAX`] if the
/// source asset is not pinned.
#[must_use]
pub fn confirmation_time(record: &OrderRecord, registry: &Registry) -> Duration {
    let swap = &record.source_swap;
    let asset = registry.asset(swap.asset.as_str());
    asset.map_or(Duration::MAX, |asset| asset.chain.confirmation_time(swap.required_confirmations))
}

fn nominal_deadline(record: &OrderRecord, registry: &Registry) -> Option<UnixTime> {
    let asset = registry.asset(record.source_swap.asset.as_str())?;
    Some(time(&record.created_at)?.saturating_add(asset.chain.profile.payment_window))
}

fn is_bitcoin(swap: &SwapRecord, registry: &Registry) -> bool {
    registry.asset(swap.asset.as_str()).is_some_and(|asset| asset.chain.profile.coin == Some(Coin::Bitcoin))
}
