//! The refund of the source.

use countersign::{
    Family, Leg,
    evidence::{Hold, HtlcState},
};

use super::super::journal::{Delivery, Purpose};
use super::{Action, Decision, Order, OwnerTask, Status, act, rest};

impl Order<'_> {
    /// Returns whether the source's timelock has expired, by the chain's own count. All endpoints that agree must have seen it, so that
    /// one endpoint with an invented height cannot turn a release into a refund.
    pub(super) fn source_has_run_out(&self) -> bool {
        match self.observed.source.state() {
            Some(HtlcState::Locked(locked)) => locked.has_run_out() || (!self.observed.source.is_seen() && locked.left() == 0),
            _ => false,
        }
    }

    /// Returns whether the source's timelock is over by time, with a margin, while the source's chain cannot be read. A refund can only pay
    /// the owner, and a chain refuses one that is too early, so it is tried.
    pub(super) fn is_refund_overdue(&self) -> bool {
        let is_unreadable =
            self.capabilities.source_connected && self.observed.source.state().is_none_or(|state| matches!(state, HtlcState::Unclear(_)));
        is_unreadable && self.observed.refund_from.is_some_and(|from| self.observed.now >= from)
    }

    /// Refunds an order for which there is nothing else to do, if that is overdue.
    pub(super) fn refund_if_overdue(&self, otherwise: Decision) -> Decision {
        let may_help = self.kept.may_be_paid() && !self.is_redeemed(Leg::Destination);
        if otherwise.action.is_none() && may_help && self.is_refund_overdue() {
            return self.refund_when_due();
        }
        otherwise
    }

    /// Refunds the source once that is possible, because the swap cannot complete.
    pub(super) fn refund(&self, reason: Hold) -> Decision {
        if self.source_has_run_out() || self.is_refund_overdue() {
            return self.refund_when_due();
        }
        rest(Status::AwaitingRefund { reason })
    }

    /// Returns whether the refund was tried less recently than the redemption.
    pub(super) fn is_refunds_turn(&self) -> bool {
        let last = |what| self.kept.attempts(what).1;
        last(Delivery::Refund).max(last(Delivery::RefundRequest)) <= last(Delivery::Redemption).max(last(Delivery::Secret))
    }

    /// Refunds the source, whose timelock is over, unless that was tried a moment ago.
    pub(super) fn refund_when_due(&self) -> Decision {
        if self.is_due(Delivery::Refund) && self.is_due(Delivery::RefundRequest) { self.refund_at_once() } else { rest(self.refunding()) }
    }

    /// Refunds the source, whenever it was last tried.
    pub(super) fn refund_at_once(&self) -> Decision {
        match self.refunding() {
            Status::Refunding => act(Status::Refunding, Action::Refund),
            needs_owner => rest(needs_owner),
        }
    }

    /// Returns the status of a refund that is possible: under way, or only the owner's own key can do it.
    fn refunding(&self) -> Status {
        let is_signed = self.kept.signed(Purpose::Refund).is_some();
        // On Bitcoin-like chains the relayer cannot refund what only the owner's key can spend.
        let is_owners = self.kept.swap.request().source.delegate.is_some() && self.observed.source_family == Some(Family::Bitcoin);
        if !self.capabilities.source_connected && (is_signed || is_owners) {
            return Status::NeedsOwner { what: OwnerTask::Refund };
        }
        Status::Refunding
    }
}
