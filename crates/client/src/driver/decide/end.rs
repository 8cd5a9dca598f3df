//! The end of a swap: whether it has ended, and the redemption, once nothing may delay it.

use countersign::{
    Leg,
    evidence::{Hold, HtlcState},
};

use super::super::journal::{Delivery, Outcome, Purpose, SecretRoute};
use super::super::observation::{RecordObservation, Release};
use super::{Action, Capabilities, Decision, Order, OwnerTask, Status, WaitingFor, act, rest};

impl Order<'_> {
    /// Decides for an order that has ended on chain; `None` if it has not.
    pub(super) fn ended(&self) -> Option<Decision> {
        let ended = |outcome| Some(act(Status::Ended { outcome }, Action::End(outcome)));
        if self.is_redeemed(Leg::Destination) && self.is_certain(Leg::Destination) {
            return ended(Outcome::Complete);
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

    /// Returns whether the solver has both: the source with the secret, and its own payment. A redemption of the source that only the
    /// service states needs a secret that is out.
    pub(super) fn is_stolen(&self) -> bool {
        self.is_redeemed(Leg::Source) && self.is_refunded(Leg::Destination) && (self.observed.source.is_seen() || self.secret_is_out())
    }

    /// Returns whether the secret is out, and something is at stake: an order that was never paid is only redeemed if there is something
    /// to redeem.
    pub(super) fn can_redeem_now(&self) -> bool {
        let is_at_stake = super::is_paid(self.kept, self.observed) || self.kept.secret_was_sent();
        self.secret_is_out() && (is_at_stake || (self.is_locked(Leg::Destination) && self.observed.destination.is_seen()))
            // What the owner was given to broadcast stays with the owner while nothing can be sent from here.
            || (self.kept.redemption_was_printed() && self.kept.signed(Purpose::Redemption).is_some() && !self.capabilities.destination_connected)
    }

    /// Decides for an order whose secret is out. No margin, record or refusal may delay the redemption.
    pub(super) fn redeem_now(&self) -> Decision {
        let is_followed = self.kept.secret_left().is_some() && !self.is_short_of_time();
        let status = if is_followed { Status::Redeeming } else { Status::RedeemNow };
        if self.is_refunded(Leg::Destination) && self.observed.destination.is_seen() {
            return self.refund(Hold::Refunded);
        }
        // The solver can still redeem the source with the secret, so the owner must refund first.
        if self.source_has_run_out() && !self.is_locked(Leg::Destination) && self.observed.destination.is_seen() {
            return self.refund_when_due();
        }
        if self.is_absent(Leg::Destination) {
            return if self.is_redeemed(Leg::Source) { rest(Status::Lost) } else { self.refund(Hold::NotFunded) };
        }
        let is_with_owner = self.kept.signed(Purpose::Redemption).is_some() && !self.capabilities.destination_connected;
        if self.kept.own_secret().is_none() && self.observed.public_secret.is_none() && !is_with_owner {
            if self.source_has_run_out() {
                return self.refund_when_due();
            }
            return self.refund_if_overdue(rest(status));
        }
        if self.is_redeemed(Leg::Destination) && self.observed.destination.is_seen() {
            // The redemption is on chain, but not final yet.
            return rest(Status::Redeeming);
        }
        // A secret that is public, or that the relayer has already, may be sent to the relayer freely.
        let is_known = self.is_public() || self.kept.relayer_has_secret();
        let decision = self.redeem_by(status, true, is_known);
        // Once the source's timelock is over, either may succeed and neither may wait for the other, so they take turns.
        if self.source_has_run_out() && (decision.action.is_none() || self.is_refunds_turn()) {
            let refund = self.refund_when_due();
            return if refund.action.is_some() || decision.action.is_none() { refund } else { decision };
        }
        self.refund_if_overdue(decision)
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
        // With nothing on the destination, a redemption would win nothing and show the secret to whoever does not know it yet.
        if self.is_absent(Leg::Destination) {
            return rest(status);
        }
        let names_own_key = self.kept.swap.request().destination.delegate.is_some();
        let is_signed = self.kept.signed(Purpose::Redemption).is_some();
        if self.capabilities.owner_redeems || is_signed {
            if is_signed && !self.capabilities.destination_connected {
                return rest(Status::NeedsOwner { what: OwnerTask::BroadcastRedemption });
            }
            if !self.is_due(Delivery::Redemption) {
                return rest(status);
            }
            return act(status, Action::Redeem { path: SecretRoute::Own, is_urgent });
        }
        // If the request names the owner's own redeem key, the relayer cannot redeem and would only learn the secret.
        let may_ask = self.capabilities.relayer_allowed && self.capabilities.relayer_alone && self.observed.release.is_ok();
        if (is_known || may_ask) && !names_own_key {
            if !self.is_due(Delivery::Secret) {
                return rest(status);
            }
            // The chain is checked again before the secret is sent, unless the relayer can know it already.
            return act(status, Action::Redeem { path: SecretRoute::Relayer, is_urgent: is_known });
        }
        rest(Status::NeedsOwner { what: OwnerTask::Redeem })
    }

    /// Decides for an order that is paid, and whose secret is still here.
    pub(super) fn paid(&self) -> Decision {
        if let Some(decision) = self.nothing_was_paid() {
            return decision;
        }
        self.refund_if_overdue(self.paid_in_time())
    }

    fn paid_in_time(&self) -> Decision {
        if let RecordObservation::Refused(refusal) = &self.observed.record
            && !self.chains_decide()
        {
            if self.source_has_run_out() {
                return self.refund_when_due();
            }
            return rest(Status::Refused { refusal: refusal.clone() });
        }
        if self.source_has_run_out() {
            return self.refund_when_due();
        }
        if self.is_refunded(Leg::Destination) {
            return self.refund(Hold::Refunded);
        }
        // A payment that may have been sent is sent again until it is seen on chain. It is always the same transaction.
        if !self.is_locked(Leg::Source) && !self.is_refunded(Leg::Source) && !self.is_locked(Leg::Destination) {
            return self.pay_again();
        }
        if self.is_refunded(Leg::Source) {
            return rest(Status::Refunding);
        }
        // The payment is known to the chain, and in no block.
        if !self.is_locked(Leg::Destination) && self.is_raised() {
            return act(Status::Paying, Action::Raise);
        }
        if self.kept.own_secret().is_none() {
            let is_ours = self.kept.swap.request().secret_hash.is_some();
            return rest(Status::Waiting { on: if is_ours { WaitingFor::SecretElsewhere } else { WaitingFor::SecretOfService } });
        }
        match &self.observed.release {
            Ok(_) => self.redeem_by(Status::Redeeming, false, false),
            Err(hold) if hold.is_transient() || *hold == Hold::Redeemed => rest(Status::Waiting { on: WaitingFor::Evidence(hold.clone()) }),
            // If the owner has broadcast what was printed, only haste helps. That may be so, and is no reason to publish the secret.
            Err(Hold::NoTime { .. }) if self.kept.redemption_was_printed() => rest(Status::RedeemNow),
            Err(hold) => rest(Status::AwaitingRefund { reason: hold.clone() }),
        }
    }

    /// Returns whether the chains alone decide: both are connected, and the source shows the owner's payment, or the destination proves the
    /// solver's (a reorganization may hide the owner's). A newer record is then displayed and has no effect.
    pub(super) fn chains_decide(&self) -> bool {
        let Capabilities { source_connected, destination_connected, .. } = self.capabilities;
        let is_proven = self.is_locked(Leg::Destination) && matches!(self.observed.release, Ok(Release::Evidence(_)));
        source_connected && destination_connected && self.observed.source.is_seen() && (self.is_locked(Leg::Source) || is_proven)
    }
}
