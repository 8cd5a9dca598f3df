//! The outcome of the owner's own request to refund an order. No I/O.

use countersign::Refusal;

use super::decide::{OwnerTask, Status};
use super::journal::{Delivery, Outcome};
use super::kept::OrderState;
use super::progress::Progress;

/// The outcome of [`Driver::refund`](super::Driver::refund).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefundEnd {
    /// The refund was sent, or the source chain shows it already. Follow the order to see it.
    Refunding,
    /// Nothing was refunded, and why. It may be possible later.
    NotYet(String),
    /// The service did not accept the request a moment ago.
    NotAccepted,
    /// Something failed that the refund needs. Untrusted text in it is not escaped.
    Unavailable(String),
    /// Only the owner's own key can refund.
    NeedsOwner,
    /// The order or the refund was refused.
    Refused(Refusal),
    /// The order ended before.
    Ended(Outcome),
    /// The service alone states that the order is lost. That must not keep anybody from a refund.
    StatedLost,
    /// The payment was redeemed, and the destination was refunded.
    Lost,
}

impl RefundEnd {
    /// Returns the outcome of a refund from the progress of its step. `kept` is the order as stored after the step. `source_connected` is
    /// whether the source chain is connected.
    #[must_use]
    pub fn new(progress: &Progress, kept: &OrderState, source_connected: bool) -> Self {
        let was_sent = kept.was_sent(Delivery::RefundRequest) || kept.was_sent(Delivery::Refund);
        // A refund that was sent in this step is under way, whatever is stated about the order. One that was sent before may have come too late,
        // and a step that ends the order has sent none.
        if progress.acted && was_sent && !matches!(progress.status, Status::Ended { .. }) {
            return Self::Refunding;
        }
        // The relayer, or a transaction sent earlier, has refunded it.
        if progress.is_refunded && matches!(progress.status, Status::Refunding) {
            return Self::Refunding;
        }
        // The source chain alone shows that it is too early or too late, even if the service fails.
        let is_too_early = matches!(progress.status, Status::Waiting { .. } | Status::AwaitingRefund { .. });
        // An order that expired is open again once its chain shows a payment.
        let is_expired = matches!(progress.status, Status::Ended { outcome: Outcome::Expired });
        let is_too_late = matches!(progress.status, Status::Ended { .. } | Status::Lost) && !is_expired;
        if let Some(trouble) = progress.failure().filter(|_| !(source_connected && (is_too_early || is_too_late))) {
            return Self::Unavailable(trouble.to_owned());
        }
        let not_yet = |reason: &str| Self::NotYet(reason.to_owned());
        match &progress.status {
            Status::Refunding if was_sent => Self::Refunding,
            Status::Refunding => Self::NotAccepted,
            Status::NeedsOwner { what: OwnerTask::Refund } => Self::NeedsOwner,
            Status::Refused { refusal } => Self::Refused(refusal.clone()),
            Status::Ended { outcome } => Self::Ended(*outcome),
            Status::Lost if !source_connected => Self::StatedLost,
            Status::Lost => Self::Lost,
            Status::Unsigned | Status::Expired => not_yet("nothing was paid for this order"),
            Status::Paying => not_yet("the payment for this order has not arrived yet"),
            Status::Waiting { .. } | Status::AwaitingRefund { .. } => not_yet("the timelock of your payment has not expired"),
            other => not_yet(&other.to_string()),
        }
    }
}
