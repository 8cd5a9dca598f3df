//! Decides what to do next, as a pure function of the stored order and the observation: no I/O, no clock, no key.
//!
//! Each rule prevents a swap from being lost; `tests/decide` has a test for each.

use std::time::Duration;

use countersign::{Family, Hold, HtlcState, Leg, Refusal};
use countersign_transport::Chains;
use serde::Serialize;

use super::kept::{KeptOrder, Outcome, Path, Purpose, Sendable};
use super::observe::{LegView, Observed, RecordView};
use super::parties::Owner;

/// What the driver does next, and the status that it reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The status of the order.
    pub status: Status,
    /// What to do now; `None` to observe again later.
    pub action: Option<Action>,
}

/// The status of a driven order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// Nothing was signed. The order waits for the owner.
    Unsigned,
    /// Nothing was signed here and the deadline has passed, so the driver no longer pays. A payment from another wallet may still be on
    /// its way.
    Expired,
    /// The payment is signed, and not known to be on chain.
    Paying,
    /// The owner has to do something that the driver cannot do.
    NeedsOwner {
        /// The task.
        what: OwnerTask,
    },
    /// The order is paid, and waits until the secret may be released.
    Waiting {
        /// What it waits for, for display.
        reason: String,
        /// The stable code of the reason.
        code: &'static str,
    },
    /// The secret was released, or is about to be. The redemption is followed until it is final.
    Redeeming,
    /// The secret is public, or was released and time is running out: redeem at once.
    RedeemNow,
    /// The swap cannot complete. The owner can refund once the timelock has expired.
    AwaitingRefund {
        /// Why it cannot complete, for display.
        reason: String,
    },
    /// The refund is under way.
    Refunding,
    /// The record was refused. The secret is not released, and the driver follows what is on chain.
    Refused {
        /// Why it was refused.
        refusal: Refusal,
    },
    /// The source is redeemed, and the owner was not paid: the funds are probably lost.
    Lost,
    /// The swap ended.
    Ended {
        /// How it ended.
        outcome: Outcome,
    },
}

/// What only the owner can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OwnerTask {
    /// Provide the secret whose hash the order contains. Without it, nothing is paid.
    Secret,
    /// Broadcast the signed funding.
    BroadcastFunding,
    /// Redeem, because nobody else can or may.
    Redeem,
    /// Broadcast the signed redemption.
    BroadcastRedemption,
    /// Sign or broadcast the refund.
    Refund,
}

/// An action of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Verify once more, and ask the owner to sign the funding.
    Sign,
    /// Send the signed funding.
    Pay,
    /// Record that the owner was given something to broadcast. From then on, it may be on chain.
    HandOut(Sendable),
    /// Redeem the destination. This releases the secret.
    Redeem {
        /// How the secret is released.
        path: Path,
        /// Whether the secret is out already, so that nothing may delay the redemption.
        is_urgent: bool,
    },
    /// Refund the source.
    Refund,
    /// Record how the swap ended.
    End(Outcome),
}

/// What the driver can do for an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Means {
    /// Whether the owner can redeem on the destination chain.
    pub owner_redeems: bool,
    /// Whether transactions can be broadcast on the source chain.
    pub source_connected: bool,
    /// Whether transactions can be broadcast on the destination chain.
    pub destination_connected: bool,
    /// Whether the service's relayer may get the secret.
    pub relayer_allowed: bool,
    /// Whether the owner pays although somebody else holds the secret.
    pub secret_is_elsewhere: bool,
}

impl Means {
    pub(super) fn new(
        kept: &KeptOrder,
        owner: &impl Owner,
        chains: &impl Chains,
        relayer_allowed: bool,
        secret_is_elsewhere: bool,
    ) -> Self {
        let request = kept.swap.request();
        let (source, destination) = (request.source.asset.chain(), request.destination.asset.chain());
        Self {
            owner_redeems: owner.can_redeem(destination),
            source_connected: chains.has(source),
            destination_connected: chains.has(destination),
            relayer_allowed,
            secret_is_elsewhere,
        }
    }
}

/// The shortest and the longest wait before something is sent again.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// The longest wait before the owner's redemption is sent again: margins are minutes, and some transactions expire in one.
const REDEEM_AGAIN: Duration = Duration::from_secs(20);

/// How long after the deadline a payment from another wallet is still expected, in seconds.
const GIVEN_UP_AFTER: u64 = 24 * 3_600;

/// Decides what to do next with an order. A pure function: the same input always gives the same decision.
#[must_use]
pub fn decide(kept: &KeptOrder, observed: &Observed, means: Means) -> Decision {
    let order = Order { kept, observed, means };
    if let Some(outcome) = kept.outcome() {
        return rest(Status::Ended { outcome });
    }
    // What is on chain takes precedence over all statements.
    if let Some(decision) = order.ended() {
        return decision;
    }
    let decision = if order.secret_is_out() {
        order.redeem_now()
    } else if is_paid(kept, observed) {
        order.paid()
    } else {
        order.unpaid()
    };
    // A statement of the service can raise the alarm, but does not change the action.
    if order.is_redeemed(Leg::Source) && order.is_refunded(Leg::Destination) {
        return Decision { status: Status::Lost, ..decision };
    }
    decision
}

/// Returns whether the owner's funds are on chain, or may be. A payment that was about to be sent may have arrived, even if the service
/// states that it has not.
#[must_use]
pub fn is_paid(kept: &KeptOrder, observed: &Observed) -> bool {
    let is_there = matches!(observed.source.state(), Some(HtlcState::Locked(_) | HtlcState::Redeemed { .. } | HtlcState::Refunded { .. }));
    kept.may_be_paid() || is_there
}

const fn rest(status: Status) -> Decision {
    Decision { status, action: None }
}

const fn act(status: Status, action: Action) -> Decision {
    Decision { status, action: Some(action) }
}

struct Order<'o> {
    kept: &'o KeptOrder,
    observed: &'o Observed,
    means: Means,
}

impl Order<'_> {
    const fn leg(&self, leg: Leg) -> &LegView {
        match leg {
            Leg::Source => &self.observed.source,
            _ => &self.observed.destination,
        }
    }

    fn is_redeemed(&self, leg: Leg) -> bool {
        matches!(self.leg(leg).state(), Some(HtlcState::Redeemed { .. }))
    }

    fn is_refunded(&self, leg: Leg) -> bool {
        matches!(self.leg(leg).state(), Some(HtlcState::Refunded { .. }))
    }

    fn is_locked(&self, leg: Leg) -> bool {
        matches!(self.leg(leg).state(), Some(HtlcState::Locked(_)))
    }

    /// Returns whether the state of a leg is in a final block, read from the chain itself. A statement of the service never ends an
    /// order, even where the caller trusts the service.
    const fn is_certain(&self, leg: Leg) -> bool {
        self.leg(leg).is_final()
    }

    /// Returns whether the secret may have left this machine, or is public.
    fn secret_is_out(&self) -> bool {
        let has_left = match self.kept.secret_left() {
            // A signed redemption that was neither sent nor handed out exists only on this machine.
            Some(Path::Own) => self.kept.may_be_sent(Sendable::Redemption),
            Some(Path::Relayer) => true,
            None => false,
        };
        has_left || self.is_public()
    }

    /// Returns whether the secret is public: it was observed, or the source chain shows that it was used. A redemption that only the
    /// service states does not count, because the service could state one to get the secret released.
    fn is_public(&self) -> bool {
        let is_used = self.is_redeemed(Leg::Source) && self.observed.source.is_seen();
        self.observed.public_secret.is_some() || is_used
    }

    /// Decides for an order that has ended on chain; `None` if it has not.
    fn ended(&self) -> Option<Decision> {
        let ended = |outcome| Some(act(Status::Ended { outcome }, Action::End(outcome)));
        if self.is_redeemed(Leg::Destination) {
            let is_proven = match &self.observed.destination {
                LegView::Seen { is_final, .. } => *is_final,
                // Anybody who has the secret can publish it, so it proves a redemption only if nobody but the owner had it.
                LegView::Stated(state) => {
                    let is_ours = self.kept.secret_left() == Some(Path::Own);
                    is_ours && (self.observed.public_secret.is_some() || self.is_own(state))
                }
                LegView::Unknown(_) => false,
            };
            if is_proven {
                return ended(Outcome::Complete);
            }
        }
        // While the destination can still be redeemed with a secret that is out, nothing else ends the order.
        if self.secret_is_out() && self.is_locked(Leg::Destination) && self.observed.destination.is_seen() {
            return None;
        }
        if self.is_refunded(Leg::Source) && self.is_certain(Leg::Source) {
            return ended(Outcome::Refunded);
        }
        let is_lost = self.is_redeemed(Leg::Source) && self.is_refunded(Leg::Destination);
        if is_lost && self.is_certain(Leg::Source) && self.is_certain(Leg::Destination) {
            return ended(Outcome::Lost);
        }
        None
    }

    /// Returns whether a redemption is one that the owner signed.
    fn is_own(&self, state: &HtlcState) -> bool {
        let HtlcState::Redeemed { transaction: Some(stated), .. } = state else { return false };
        self.kept.has_signed(Purpose::Redemption, stated)
    }

    /// Decides for an order whose secret is out. No margin, record or refusal may delay the redemption.
    fn redeem_now(&self) -> Decision {
        let is_followed = self.kept.secret_left().is_some() && !self.is_short_of_time();
        let status = if is_followed { Status::Redeeming } else { Status::RedeemNow };
        if self.is_refunded(Leg::Destination) && self.observed.destination.is_seen() {
            return self.refund("the solver has taken the payment back");
        }
        // The solver can still redeem the source with the secret, so the owner must refund first.
        if self.source_has_run_out() && !self.is_locked(Leg::Destination) && self.observed.destination.is_seen() {
            return self.refund("the solver did not redeem in time");
        }
        if matches!(self.observed.destination, LegView::Seen { state: HtlcState::Absent, .. }) && self.is_redeemed(Leg::Source) {
            return rest(Status::Lost);
        }
        if self.kept.own_secret().is_none() && self.observed.public_secret.is_none() {
            return rest(status);
        }
        if self.is_redeemed(Leg::Destination) && self.observed.destination.is_seen() {
            // The redemption is on chain, but not final yet.
            return rest(Status::Redeeming);
        }
        // A secret that is public, or that the relayer has already, may be sent to the relayer freely.
        let is_known = self.is_public() || self.kept.secret_left() == Some(Path::Relayer);
        let decision = self.redeem_by(status, true, is_known);
        match decision.action {
            None if self.source_has_run_out() => self.refund("the redemption is under way, and the source's timelock has passed"),
            _ => decision,
        }
    }

    /// Returns whether at least half of the destination's timelock has elapsed, or less than the margin of its chain is left.
    const fn is_short_of_time(&self) -> bool {
        let is_half_over = match self.observed.destination.state() {
            Some(HtlcState::Locked(locked)) => locked.left() <= locked.timelock / 2,
            _ => false,
        };
        is_half_over || matches!(self.observed.release, Err(Hold::NoTime { .. }))
    }

    /// Chooses who redeems: the owner if possible, the relayer only where that is allowed.
    fn redeem_by(&self, status: Status, is_urgent: bool, is_known: bool) -> Decision {
        let names_own_key = self.kept.swap.request().destination.delegate.is_some();
        let is_signed = self.kept.signed(Purpose::Redemption).is_some();
        if self.means.owner_redeems || is_signed {
            if is_signed && !self.means.destination_connected {
                return rest(Status::NeedsOwner { what: OwnerTask::BroadcastRedemption });
            }
            if !self.is_due(Sendable::Redemption) {
                return rest(status);
            }
            return act(status, Action::Redeem { path: Path::Own, is_urgent });
        }
        // If the request names the owner's own redeem key, the relayer cannot redeem and would only learn the secret.
        if (is_known || (self.means.relayer_allowed && self.observed.release.is_ok())) && !names_own_key {
            if !self.is_due(Sendable::Secret) {
                return rest(status);
            }
            // The chain is checked again before the secret is sent, unless the relayer can know it already.
            return act(status, Action::Redeem { path: Path::Relayer, is_urgent: is_known });
        }
        rest(Status::NeedsOwner { what: OwnerTask::Redeem })
    }

    fn unpaid(&self) -> Decision {
        let is_signed = self.kept.signed(Purpose::Funding).is_some();
        match &self.observed.record {
            RecordView::Refused(refusal) => return rest(Status::Refused { refusal: refusal.clone() }),
            // An old record is not enough to pay.
            RecordView::Unknown(_) => return rest(if is_signed { Status::Paying } else { Status::Unsigned }),
            RecordView::Verified(_) => {}
        }
        if self.is_too_late() {
            return self.expired(is_signed);
        }
        let request = self.kept.swap.request();
        if request.secret_hash.is_some() && self.kept.own_secret().is_none() && !self.means.secret_is_elsewhere {
            return rest(Status::NeedsOwner { what: OwnerTask::Secret });
        }
        if !is_signed {
            return act(Status::Unsigned, Action::Sign);
        }
        self.pay()
    }

    /// Decides for an order that is too late to pay. It ends only if nothing can have been paid; a statement of the service that it has
    /// received nothing is not enough.
    fn expired(&self, is_signed: bool) -> Decision {
        let is_absent = matches!(self.observed.source, LegView::Seen { state: HtlcState::Absent, .. });
        // A signed payment that was neither sent nor handed out exists only on this machine.
        let payment = if self.kept.is_gasless() { Sendable::Gasless } else { Sendable::Funding };
        let is_held = is_signed && !self.kept.may_be_sent(payment);
        if is_held || !is_signed && (is_absent || self.is_late_by(GIVEN_UP_AFTER)) {
            let outcome = Outcome::Expired;
            return act(Status::Ended { outcome }, Action::End(outcome));
        }
        rest(if is_signed { Status::Paying } else { Status::Expired })
    }

    /// Returns whether a payment would not be confirmed before the deadline. Without a known deadline it is always too late.
    fn is_too_late(&self) -> bool {
        let left = self.observed.deadline.map_or(0, |deadline| deadline.saturating_sub(self.observed.now));
        left <= self.observed.confirmation_time
    }

    fn is_late_by(&self, seconds: u64) -> bool {
        self.observed.deadline.is_some_and(|deadline| self.observed.now > deadline.saturating_add(seconds))
    }

    /// Sends the signed payment: always the same one, never a new one.
    fn pay(&self) -> Decision {
        let Some((transactions, gasless)) = self.kept.signed(Purpose::Funding) else { return rest(Status::Paying) };
        let broadcasts = !transactions.is_empty() && !self.kept.was_sent(Sendable::Funding);
        if broadcasts && !self.means.source_connected {
            let status = Status::NeedsOwner { what: OwnerTask::BroadcastFunding };
            let is_handed_out = self.kept.may_be_sent(Sendable::Funding);
            return if is_handed_out { rest(status) } else { act(status, Action::HandOut(Sendable::Funding)) };
        }
        let next = if broadcasts { Sendable::Funding } else { Sendable::Gasless };
        let is_done = !broadcasts && (gasless.is_none() || self.kept.was_sent(Sendable::Gasless));
        if is_done || !self.is_due(next) { rest(Status::Paying) } else { act(Status::Paying, Action::Pay) }
    }

    fn paid(&self) -> Decision {
        // A payment that may have been sent is sent again until it is seen on chain. It is always the same transaction.
        let is_there = self.is_locked(Leg::Source);
        if let RecordView::Refused(refusal) = &self.observed.record {
            if self.source_has_run_out() {
                return self.refund(&refusal.to_string());
            }
            return rest(Status::Refused { refusal: refusal.clone() });
        }
        if self.source_has_run_out() {
            return self.refund("the solver did not pay in time");
        }
        if self.is_refunded(Leg::Destination) {
            return self.refund("the solver has taken the payment back");
        }
        if !is_there && !self.is_refunded(Leg::Source) && !self.is_locked(Leg::Destination) {
            let is_absent = matches!(self.observed.source, LegView::Seen { state: HtlcState::Absent, .. });
            if is_absent && self.is_late_by(GIVEN_UP_AFTER) && self.kept.signed(Purpose::Funding).is_none() {
                return act(Status::Ended { outcome: Outcome::Expired }, Action::End(Outcome::Expired));
            }
            // A payment after the deadline would only lock the funds, so it is not sent again.
            return if self.is_too_late() { rest(Status::Paying) } else { self.pay() };
        }
        if self.is_refunded(Leg::Source) {
            return rest(Status::Refunding);
        }
        if self.kept.own_secret().is_none() {
            let what = if self.kept.swap.request().secret_hash.is_some() {
                "the secret is not stored here"
            } else {
                "the service holds the secret"
            };
            return rest(Status::Waiting { reason: what.to_owned(), code: "no_secret" });
        }
        match &self.observed.release {
            Ok(_) => self.redeem_by(Status::Redeeming, false, false),
            Err(hold) if hold.may_end() || *hold == Hold::Redeemed => rest(Status::Waiting { reason: hold.to_string(), code: hold.code() }),
            Err(hold) => rest(Status::AwaitingRefund { reason: hold.to_string() }),
        }
    }

    /// Returns whether the source's timelock has expired, by the chain's own count. All endpoints that agree must have seen it, so that
    /// one endpoint with an invented height cannot turn a release into a refund.
    fn source_has_run_out(&self) -> bool {
        match self.observed.source.state() {
            Some(HtlcState::Locked(locked)) => locked.has_run_out() || (!self.observed.source.is_seen() && locked.left() == 0),
            _ => false,
        }
    }

    /// Refunds the source once that is possible.
    fn refund(&self, reason: &str) -> Decision {
        if !self.source_has_run_out() {
            return rest(Status::AwaitingRefund { reason: reason.to_owned() });
        }
        let is_signed = self.kept.signed(Purpose::Refund).is_some();
        if is_signed && !self.means.source_connected {
            return rest(Status::NeedsOwner { what: OwnerTask::Refund });
        }
        // On Bitcoin-like chains the relayer cannot refund what only the owner's key can spend.
        let request = &self.kept.swap.request().source;
        if !self.means.source_connected && request.delegate.is_some() && self.observed.source_family == Some(Family::Bitcoin) {
            return rest(Status::NeedsOwner { what: OwnerTask::Refund });
        }
        if self.is_due(Sendable::Refund) && self.is_due(Sendable::RefundRequest) {
            act(Status::Refunding, Action::Refund)
        } else {
            rest(Status::Refunding)
        }
    }

    /// Returns whether something may be sent (again). Each attempt waits longer than the previous one.
    fn is_due(&self, what: Sendable) -> bool {
        let (attempts, last) = self.kept.attempts(what);
        let Some(again) = attempts.checked_sub(1) else { return true };
        let most = if what == Sendable::Redemption { REDEEM_AGAIN } else { AGAIN.1 };
        let wait = AGAIN.0.as_secs().saturating_mul(1_u64.checked_shl(again).unwrap_or(u64::MAX)).min(most.as_secs());
        // A clock that was set back must not stop a redemption.
        self.observed.now < last || self.observed.now >= last.saturating_add(wait)
    }
}
