//! The payment: whether the order may still be paid, and sending what was signed.

use std::time::Duration;

use countersign::json::At;
use countersign::{
    Code, Family, Leg, Refusal,
    evidence::{Hold, HtlcState},
    text,
};

use super::super::journal::{Delivery, KEPT_FUNDINGS, Outcome, Purpose};
use super::super::observation::{LegObservation, PaymentFate, RecordObservation};
use super::{Action, Decision, Order, OwnerTask, Status, act, rest};

/// How long after the deadline a payment from another wallet is still expected.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(24 * 3_600);

impl Order<'_> {
    /// Decides for an order that is not paid.
    pub(super) fn unpaid(&self) -> Decision {
        let is_signed = self.kept.signed(Purpose::Funding).is_some() && !self.is_signed_again();
        let waits = || rest(if is_signed { Status::Paying } else { Status::Unsigned });
        match &self.observed.record {
            RecordObservation::Refused(refusal) => return rest(Status::Refused { refusal: refusal.clone() }),
            // An old record is not enough to pay.
            RecordObservation::Unknown(_) | RecordObservation::NotAsked => return waits(),
            RecordObservation::Verified(_) => {}
        }
        if self.is_too_late() {
            return self.expired(is_signed);
        }
        let request = self.kept.swap.request();
        if request.secret_hash.is_some() && self.kept.own_secret().is_none() && !self.capabilities.secret_is_elsewhere {
            return rest(Status::NeedsOwner { what: OwnerTask::Secret });
        }
        if let Err(refusal) = self.check_destination().and_then(|()| self.check_judged()) {
            return rest(Status::Refused { refusal });
        }
        // With endpoints that cannot be used now, the swap could not be finished.
        if self.observed.heads.is_err() {
            return waits();
        }
        if !is_signed {
            return act(Status::Unsigned, Action::Sign);
        }
        self.pay()
    }

    /// Requires that the destination is still to be paid, or has just been. With a secret that is public, or a payment that is old, the
    /// solver could take both.
    fn check_destination(&self) -> Result<(), Refusal> {
        let refuse = |code, why: &str| Err(At::RECORD.refuse_below(code, "/destination_swap").with_reason(why.to_owned()));
        if self.is_public() || self.is_redeemed(Leg::Destination) {
            return refuse(Code::RecordSecretKnown, "the secret was already used on chain");
        }
        let LegObservation::Seen { state, .. } = &self.observed.destination else { return Ok(()) };
        match (state, &self.observed.release) {
            (HtlcState::Refunded { .. }, _) => refuse(Code::RecordRefunded, "the solver has already taken its payment back"),
            (HtlcState::Locked(_), Err(hold @ (Hold::NoTime { .. } | Hold::Differs(_)))) => {
                refuse(Code::DestinationTimelockShort, &hold.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Requires that each chain that was read can be judged: what cannot be judged now can never be redeemed or refunded on evidence.
    ///
    /// Bitcoin-like chains have no contract that could be the wrong one. An address that nobody has paid is unclear there to a node that
    /// does not list spent outputs, and dust at it must not keep anybody from paying.
    fn check_judged(&self) -> Result<(), Refusal> {
        let legs = [
            (Leg::Source, self.observed.source_family, "/source_swap"),
            (Leg::Destination, self.observed.destination_family, "/destination_swap"),
        ];
        for (leg, family, at) in legs {
            if family != Some(Family::Bitcoin)
                && let LegObservation::Seen { state: HtlcState::Unclear(why), .. } = self.leg(leg)
            {
                return Err(At::RECORD.refuse_below(Code::CannotBeJudged, at).with_reason(text::escape_untrusted(why)));
            }
        }
        Ok(())
    }

    /// Decides for an order that is too late to pay. It ends only if nothing can have been paid; a statement of the service that it has
    /// received nothing is not enough.
    fn expired(&self, is_signed: bool) -> Decision {
        // A signed payment that was neither sent nor handed out exists only on this machine.
        let payment = if self.kept.is_gasless() { Delivery::Gasless } else { Delivery::Funding };
        let is_held = is_signed && !self.kept.may_be_sent(payment);
        // A payment from another wallet, or from a copy of this store, may be on its way, or hidden by endpoints that fail.
        let is_known = !matches!(self.observed.source, LegObservation::Unknown(_));
        // Another copy of this store may have paid. The owner can then redeem what the solver has locked.
        let is_at_stake = self.observed.destination.is_seen() && (self.is_locked(Leg::Destination) || self.is_redeemed(Leg::Destination));
        if is_known && !is_at_stake && (is_held || !is_signed && self.is_late_by(GIVEN_UP_AFTER)) {
            let outcome = Outcome::Expired;
            return act(Status::Ended { outcome }, Action::End(outcome));
        }
        rest(if is_signed { Status::Paying } else { Status::Expired })
    }

    /// Decides for a payment that may have been sent and is not on chain.
    pub(super) fn pay_again(&self) -> Decision {
        // That the payment is there was only stated: it was never sent, so it is sent under the conditions of a first attempt. The
        // statement may be about a payment from elsewhere, so the order does not end.
        if !self.kept.may_be_paid() && self.kept.signed(Purpose::Funding).is_some() {
            let first = self.unpaid();
            return if matches!(first.action, Some(Action::End(_))) { rest(Status::Paying) } else { first };
        }
        // Nothing proves that what a signer got was not sent. The one before it was dead or rejected when the signer was asked.
        if self.is_absent(Leg::Source) && self.is_late_by(GIVEN_UP_AFTER) && self.kept.newest_payment_was_handed_out() {
            return act(Status::Ended { outcome: Outcome::Expired }, Action::End(Outcome::Expired));
        }
        // A payment after the deadline would only lock the funds, so it is not sent again.
        if self.is_too_late() {
            return rest(Status::Paying);
        }
        // A new payment is signed under the conditions of the first one.
        if self.is_signed_again() {
            return self.unpaid();
        }
        if self.is_raised() { act(Status::Paying, Action::Raise) } else { self.pay() }
    }

    /// Returns whether the chain itself shows no payment, and proves that what was sent can never be included.
    fn is_payment_dead(&self) -> bool {
        self.is_absent(Leg::Source) && self.kept.newest_payment_may_be_sent() && matches!(self.observed.payment, PaymentFate::Dead(_))
    }

    /// Returns whether as many endpoints as must agree rejected the payment whenever it was sent, and the chain shows none. Somebody
    /// may have kept it nevertheless, so this proves less than a dead payment.
    fn is_payment_rejected(&self) -> bool {
        self.is_absent(Leg::Source) && self.kept.payment_was_rejected()
    }

    /// Returns whether the payment is to be signed again. A dead one is always. A rejected one is once, and only on chains whose HTLC takes
    /// an order's payment once: a Bitcoin-like address can be paid twice.
    fn is_signed_again(&self) -> bool {
        let takes_one = self.observed.source_family.is_some_and(|family| family != Family::Bitcoin);
        self.is_payment_dead() || (takes_one && self.is_payment_rejected() && self.kept.fundings() < 2)
    }

    /// Ends an order whose payment never arrived and cannot arrive any more, once it is too late for another one.
    pub(super) fn nothing_was_paid(&self) -> Option<Decision> {
        let is_over = (self.is_payment_dead() && self.is_too_late()) || (self.is_payment_rejected() && self.is_late_by(GIVEN_UP_AFTER));
        // What the solver has locked nevertheless is the owner's.
        (is_over && !self.is_locked(Leg::Destination))
            .then(|| act(Status::Ended { outcome: Outcome::Expired }, Action::End(Outcome::Expired)))
    }

    /// Returns whether a payment on a Bitcoin-like chain, which was sent and should be in a block by now, is to be signed again for a higher
    /// fee. It spends the same coins and pays the same deposit, so one of the two at most is mined. A payment after the deadline would only
    /// lock the funds, so nothing is raised for it, and the number of payments is bounded.
    pub(super) fn is_raised(&self) -> bool {
        let is_unconfirmed = match &self.observed.source {
            // To a node's own RPC a payment that is in no block is unclear.
            LegObservation::Seen { state: HtlcState::Absent | HtlcState::Unclear(_), .. } => true,
            LegObservation::Seen { state: HtlcState::Locked(locked), is_final, .. } => locked.elapsed == 0 && !is_final,
            _ => false,
        };
        // A clock that was set back must not stop it.
        let is_overdue = self.observed.payment_overdue_from.is_some_and(|from| self.observed.now >= from)
            || self.kept.signed_at(Purpose::Funding).is_some_and(|at| self.observed.now < at);
        self.observed.source_family == Some(Family::Bitcoin)
            && self.capabilities.source_connected
            && is_unconfirmed
            && is_overdue
            && !self.is_too_late()
            && self.kept.newest_payment_may_be_sent()
            && self.kept.payments().is_some_and(|payments| payments.len() < KEPT_FUNDINGS)
            && self.is_due(Delivery::Funding)
    }

    /// Returns whether a payment would not be confirmed before the deadline. Without a known deadline it is always too late.
    fn is_too_late(&self) -> bool {
        let left = self.observed.deadline.map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(self.observed.now));
        left <= self.observed.confirmation_time
    }

    fn is_late_by(&self, delay: Duration) -> bool {
        self.observed.deadline.is_some_and(|deadline| self.observed.now > deadline.saturating_add(delay))
    }

    /// Sends the signed payment: always the newest one.
    fn pay(&self) -> Decision {
        let Some((transactions, gasless)) = self.kept.signed(Purpose::Funding) else { return rest(Status::Paying) };
        // Endpoints may drop what they have accepted. Where the transactions only approve, the gasless message comes next.
        let is_dropped = gasless.is_none() && self.is_absent(Leg::Source);
        let broadcasts = !transactions.is_empty() && (is_dropped || !self.kept.was_sent(Delivery::Funding));
        if broadcasts && !self.capabilities.source_connected {
            let status = Status::NeedsOwner { what: OwnerTask::BroadcastFunding };
            let is_handed_out = self.kept.may_be_sent(Delivery::Funding);
            return if is_handed_out { rest(status) } else { act(status, Action::HandOut(Delivery::Funding)) };
        }
        let next = if broadcasts { Delivery::Funding } else { Delivery::Gasless };
        let is_done = !broadcasts && (gasless.is_none() || self.kept.was_sent(Delivery::Gasless));
        if is_done || !self.is_due(next) { rest(Status::Paying) } else { act(Status::Paying, Action::Pay(next)) }
    }
}
