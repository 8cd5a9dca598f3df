//! Decides what to do next, as a pure function of the stored order and the observation: no I/O, no clock, no key.
//!
//! Each rule prevents a swap from being lost; `tests/decide` has a test for each.

mod end;
mod pay;
mod refund;

use std::fmt;
use std::time::Duration;

use countersign::{
    Leg, Refusal,
    evidence::{Hold, HtlcState},
    text,
};
use countersign_transport::Chains;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::journal::{Delivery, Outcome, Purpose, SecretRoute};
use super::kept::OrderState;
use super::observation::{LegObservation, OrderObservation};
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
        /// What it waits for. Serialized as the members `reason` and `code`.
        #[serde(flatten)]
        on: WaitingFor,
    },
    /// The secret was released, or is about to be. The redemption is followed until it is final.
    Redeeming,
    /// The secret is public, or was released and time is running out: redeem at once.
    RedeemNow,
    /// The swap cannot complete. The owner can refund once the timelock has expired.
    AwaitingRefund {
        /// Why it cannot complete. Serialized as its text.
        #[serde(serialize_with = "as_text")]
        reason: Hold,
    },
    /// The refund is under way.
    Refunding,
    /// The record was refused. The secret is not released, and the driver follows what is on chain.
    Refused {
        /// Why it was refused. Serialized without a remedy, which depends on the stage: see [`Progress::message`](super::Progress::message).
        #[serde(serialize_with = "as_finding")]
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

impl Status {
    /// Returns the stable name, in snake case: the member `status` of its JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Expired => "expired",
            Self::Paying => "paying",
            Self::NeedsOwner { .. } => "needs_owner",
            Self::Waiting { .. } => "waiting",
            Self::Redeeming => "redeeming",
            Self::RedeemNow => "redeem_now",
            Self::AwaitingRefund { .. } => "awaiting_refund",
            Self::Refunding => "refunding",
            Self::Refused { .. } => "refused",
            Self::Lost => "lost",
            Self::Ended { .. } => "ended",
        }
    }
}

impl fmt::Display for Status {
    /// Writes a sentence for the owner. Untrusted text in it is escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsigned => "nothing is signed yet",
            Self::Expired => "expired: nothing was signed here in time",
            Self::Paying => "paying",
            Self::NeedsOwner { .. } => "waiting for you",
            Self::Waiting { on } => return write!(f, "paid; {}", text::escape_untrusted(&on.to_string())),
            Self::Redeeming => "redeeming",
            Self::RedeemNow => "REDEEM NOW: others may know the secret, and the destination is not redeemed yet",
            Self::AwaitingRefund { reason } => {
                return write!(f, "waiting for the refund: {}", text::escape_untrusted(&reason.to_string()));
            }
            Self::Refunding => "refunding",
            // What to do depends on whether the order is paid, which only the progress knows.
            Self::Refused { refusal } => return write!(f, "the record was refused: {}", refusal.finding()),
            Self::Lost => "LOST: the source is redeemed, and the destination refunded",
            Self::Ended { outcome } => outcome.name(),
        })
    }
}

/// What a paid order waits for before the secret may be released.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitingFor {
    /// The proof that the destination is funded, and what is missing of it.
    Evidence(Hold),
    /// The holder of the secret, which is not stored here although the request contains its hash.
    SecretElsewhere,
    /// The service, which has chosen the secret.
    SecretOfService,
}

impl WaitingFor {
    /// Returns the stable code: that of the hold, or `no_secret`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Evidence(hold) => hold.code().name(),
            Self::SecretElsewhere | Self::SecretOfService => "no_secret",
        }
    }
}

impl fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evidence(hold) => hold.fmt(f),
            Self::SecretElsewhere => f.write_str("the secret is not stored here"),
            Self::SecretOfService => f.write_str("the service holds the secret"),
        }
    }
}

impl Serialize for WaitingFor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("WaitingFor", 2)?;
        map.serialize_field("reason", &format_args!("{self}"))?;
        map.serialize_field("code", self.code())?;
        map.end()
    }
}

fn as_finding<S: Serializer>(refusal: &Refusal, serializer: S) -> Result<S::Ok, S::Error> {
    refusal.finding().serialize(serializer)
}

fn as_text<S: Serializer>(hold: &Hold, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hold)
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
    /// Send this part of the signed payment: the transactions that the owner broadcasts, or the gasless message.
    Pay(Delivery),
    /// Sign the payment again for a higher fee, with the same coins, and send it. If that is not possible, send it as it is.
    Raise,
    /// Record that the owner was given something to broadcast. From then on, it may be on chain.
    HandOut(Delivery),
    /// Redeem the destination. This releases the secret.
    Redeem {
        /// How the secret is released.
        path: SecretRoute,
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
pub struct Capabilities {
    /// Whether the owner can redeem on the destination chain.
    pub owner_redeems: bool,
    /// Whether transactions can be broadcast on the source chain.
    pub source_connected: bool,
    /// Whether transactions can be broadcast on the destination chain.
    pub destination_connected: bool,
    /// Whether the service's relayer may get the secret, as a fallback beside the owner's own account.
    pub relayer_allowed: bool,
    /// Whether the relayer may redeem alone, for an owner who cannot. The service can then keep the secret, take the source and let the
    /// destination run out, so the owner must have chosen to trust it.
    pub relayer_alone: bool,
    /// Whether the owner pays although somebody else holds the secret.
    pub secret_is_elsewhere: bool,
}

impl Capabilities {
    /// Returns what a connected owner can do. What the caller allows is added to it.
    pub(super) fn new(kept: &OrderState, owner: &impl Owner, chains: &impl Chains) -> Self {
        let request = kept.swap.request();
        let (source, destination) = (request.source.asset.chain(), request.destination.asset.chain());
        Self {
            owner_redeems: owner.can_redeem(destination),
            source_connected: chains.has(source),
            destination_connected: chains.has(destination),
            ..Self::default()
        }
    }
}

/// The shortest and the longest wait before something is sent again.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// The longest wait before the owner's redemption is sent again: margins are minutes, and some transactions expire in one.
const MAX_REDEEM_RETRY_DELAY: Duration = Duration::from_secs(20);

/// Decides what to do next with an order. A pure function: the same input always gives the same decision.
#[must_use]
pub fn decide(kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities) -> Decision {
    let order = Order { kept, observed, capabilities };
    // An expired order is open again once a payment is seen. The journal may not say so: what the service states is not recorded, and a full
    // disk prevents it.
    if let Some(outcome) = kept.outcome().filter(|outcome| *outcome != Outcome::Expired || !is_there(observed)) {
        return rest(Status::Ended { outcome });
    }
    // What is on chain takes precedence over all statements.
    if let Some(decision) = order.ended() {
        return decision;
    }
    let decision = if order.can_redeem_now() {
        order.redeem_now()
    } else if is_paid(kept, observed) {
        order.paid()
    } else {
        order.unpaid()
    };
    // A statement of the service can raise the alarm, but does not change the action.
    if order.is_stolen() { Decision { status: Status::Lost, ..decision } } else { decision }
}

/// Decides whether to refund an order now, because the owner asked for it. It never pays and never releases the secret.
#[must_use]
pub fn decide_refund(kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities) -> Decision {
    let order = Order { kept, observed, capabilities };
    let usual = decide(kept, observed, capabilities);
    if matches!((&usual.status, &usual.action), (Status::Ended { .. }, _) | (_, Some(Action::End(_)))) {
        return usual;
    }
    // Neither holds for a source that the chain shows as ended.
    if order.source_has_run_out() || order.is_refund_overdue() {
        return order.refund_at_once();
    }
    Decision { action: None, ..usual }
}

/// Returns whether the source shows a payment, by a quorum, or by the service's word where its chain is not read.
pub(super) fn is_there(observed: &OrderObservation) -> bool {
    matches!(observed.source.state(), Some(HtlcState::Locked(_) | HtlcState::Redeemed { .. } | HtlcState::Refunded { .. }))
}

/// Returns whether the owner's funds are on chain, or may be. A payment that was about to be sent may have arrived, even if the service
/// states that it has not.
#[must_use]
pub fn is_paid(kept: &OrderState, observed: &OrderObservation) -> bool {
    kept.may_be_paid() || is_there(observed)
}

const fn rest(status: Status) -> Decision {
    Decision { status, action: None }
}

const fn act(status: Status, action: Action) -> Decision {
    Decision { status, action: Some(action) }
}

struct Order<'o> {
    kept: &'o OrderState,
    observed: &'o OrderObservation,
    capabilities: Capabilities,
}

impl Order<'_> {
    const fn leg(&self, leg: Leg) -> &LegObservation {
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

    /// Returns whether the chain itself shows that an HTLC is not funded.
    fn is_absent(&self, leg: Leg) -> bool {
        matches!(self.leg(leg), LegObservation::Seen { state: HtlcState::Absent, .. })
    }

    /// Returns whether the state of a leg is in a final block, read from the chain itself. A statement of the service never ends an
    /// order, even where the caller trusts the service.
    const fn is_certain(&self, leg: Leg) -> bool {
        self.leg(leg).is_final()
    }

    /// Returns whether the secret may have been sent, or is public. A signer that was asked to sign a redemption has seen it too, but if
    /// the signer sent nothing, the swap is as safe as before: a payment of which too little time is left is not redeemed then.
    fn secret_is_out(&self) -> bool {
        self.kept.secret_was_sent() || self.is_public()
    }

    /// Returns whether the secret is public: it was observed, or the source chain shows that it was used. A redemption that only the
    /// service states does not count, because the service could state one to get the secret released.
    fn is_public(&self) -> bool {
        let is_used = self.is_redeemed(Leg::Source) && self.observed.source.is_seen();
        self.observed.public_secret.is_some() || is_used
    }

    /// Returns whether something may be sent (again). Each attempt waits longer than the previous one.
    fn is_due(&self, what: Delivery) -> bool {
        let (attempts, last) = self.kept.attempts(what);
        let Some(again) = attempts.checked_sub(1) else { return true };
        // A payment that was signed again has not been sent yet.
        if what == Delivery::Funding && self.kept.signed_at(Purpose::Funding).is_some_and(|at| at > last) {
            return true;
        }
        let most = if what == Delivery::Redemption { MAX_REDEEM_RETRY_DELAY } else { RETRY_DELAY.1 };
        let wait = RETRY_DELAY.0.as_secs().saturating_mul(1_u64.checked_shl(again).unwrap_or(u64::MAX)).min(most.as_secs());
        // A clock that was set back must not stop a redemption.
        self.observed.now < last || self.observed.now >= last.saturating_add(Duration::from_secs(wait))
    }
}

#[cfg(test)]
mod words {
    use std::collections::BTreeSet;

    use super::*;

    fn words(set: &str) -> BTreeSet<String> {
        countersign_json::objects::words::of(set).into_iter().map(str::to_owned).collect()
    }

    fn written<T: Serialize>(values: &[T], member: Option<&str>) -> BTreeSet<String> {
        let text = |value: &T| {
            let json = serde_json::to_value(value).unwrap();
            member.map_or(&json, |member| &json[member]).as_str().unwrap().to_owned()
        };
        values.iter().map(text).collect()
    }

    /// The next one of each enum, so that a new variant does not compile until it is listed.
    fn status(last: Option<&Status>) -> Option<Status> {
        let refusal = countersign::json::At::RECORD.refuse(countersign::Code::RecordChanged);
        Some(match last {
            None => Status::Unsigned,
            Some(Status::Unsigned) => Status::Expired,
            Some(Status::Expired) => Status::Paying,
            Some(Status::Paying) => Status::NeedsOwner { what: OwnerTask::Secret },
            Some(Status::NeedsOwner { .. }) => Status::Waiting { on: WaitingFor::SecretElsewhere },
            Some(Status::Waiting { .. }) => Status::Redeeming,
            Some(Status::Redeeming) => Status::RedeemNow,
            Some(Status::RedeemNow) => Status::AwaitingRefund { reason: Hold::Refunded },
            Some(Status::AwaitingRefund { .. }) => Status::Refunding,
            Some(Status::Refunding) => Status::Refused { refusal },
            Some(Status::Refused { .. }) => Status::Lost,
            Some(Status::Lost) => Status::Ended { outcome: Outcome::Lost },
            Some(Status::Ended { .. }) => return None,
        })
    }

    const fn task(last: Option<&OwnerTask>) -> Option<OwnerTask> {
        Some(match last {
            None => OwnerTask::Secret,
            Some(OwnerTask::Secret) => OwnerTask::BroadcastFunding,
            Some(OwnerTask::BroadcastFunding) => OwnerTask::Redeem,
            Some(OwnerTask::Redeem) => OwnerTask::BroadcastRedemption,
            Some(OwnerTask::BroadcastRedemption) => OwnerTask::Refund,
            Some(OwnerTask::Refund) => return None,
        })
    }

    const fn outcome(last: Option<&Outcome>) -> Option<Outcome> {
        Some(match last {
            None => Outcome::Complete,
            Some(Outcome::Complete) => Outcome::Refunded,
            Some(Outcome::Refunded) => Outcome::Expired,
            Some(Outcome::Expired) => Outcome::Lost,
            Some(Outcome::Lost) => return None,
        })
    }

    const fn purpose(last: Option<&Purpose>) -> Option<Purpose> {
        Some(match last {
            None => Purpose::Funding,
            Some(Purpose::Funding) => Purpose::Redemption,
            Some(Purpose::Redemption) => Purpose::Refund,
            Some(Purpose::Refund) => return None,
        })
    }

    fn all<T>(next: impl Fn(Option<&T>) -> Option<T>) -> Vec<T> {
        let mut all = Vec::new();
        while let Some(one) = next(all.last()) {
            all.push(one);
        }
        all
    }

    #[test]
    fn what_is_written_is_what_the_lists_of_the_bindings_have() {
        assert_eq!(written(&all(status), Some("status")), words("SwapStatusName"));
        assert_eq!(written(&all(task), None), words("SwapTask"));
        assert_eq!(written(&all(outcome), None), words("SwapOutcome"));
        assert_eq!(written(&all(purpose), None), words("SwapPurpose"));
    }
}
