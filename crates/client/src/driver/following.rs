//! When to stop following an order, and what its end means. No I/O.

use std::collections::BTreeSet;

use countersign::{OrderRecord, Refusal, evidence::Hold};
use countersign_transport::Chains;

use super::decide::{OwnerTask, Status, WaitingFor};
use super::journal::Outcome;
use super::kept::OrderState;
use super::parties::TrustTheService;
use super::progress::{DriveError, Progress, Trouble};
use crate::secret::Secret;
use crate::status::State;

/// Follows one driven order: decides after each of the driver's steps whether to go on.
///
/// A paid order is followed until it ends or until the owner has to act, whatever fails. An order that is not paid is followed only as long
/// as everything works, because nothing is at stake.
///
/// ```
/// use countersign_client::driver::{Change, Following, OrderState, Stop};
///
/// /// Returns what to tell the owner at last; `None` to go on. `kept` is the order as stored
/// /// after the step.
/// fn last_words(
///     following: &mut Following,
///     kept: &OrderState,
///     change: &Change,
/// ) -> Option<String> {
///     match following.hear(kept, &change.result).stop? {
///         Stop::Ended(outcome) => Some(format!("{outcome:?}")),
///         Stop::Owner(task) => Some(format!("please do: {task:?}")),
///         other => Some(format!("not finished: {other:?}")),
///     }
/// }
/// # let _ = last_words;
/// ```
#[derive(Debug, Clone)]
pub struct Following {
    trusts: bool,
    source_connected: bool,
    destination_connected: bool,
    is_paid: bool,
    is_alarmed: bool,
    told: BTreeSet<StatedEnd>,
}

/// What follows from one step of the driver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FollowStep {
    /// What to tell the owner, in this order. The progress itself is not part of it.
    pub alerts: Vec<Alert>,
    /// Why to stop following the order; `None` to go on.
    pub stop: Option<Stop>,
}

/// Something that the owner should hear while an order is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alert {
    /// The step failed, and the driver tries it again, because the order is paid.
    Retrying,
    /// It is not known whether the payment arrived. From now on the order counts as paid.
    MaybePaid,
    /// Redeem at once. Told once.
    RedeemNow,
    /// The service states this end, and nothing else shows it, so the order is followed. Told once for each end.
    StatedOnly(StatedEnd),
}

/// Why an order is not followed any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The order ended.
    Ended(Outcome),
    /// The order ended as the service states, on a chain that is not connected. That is not recorded: the order can be followed again.
    Stated(StatedEnd),
    /// Nothing was signed or paid, and the owner does not sign now.
    NotSigned,
    /// Only the owner can continue.
    Owner(OwnerTask),
    /// The service states that the solver has paid. Only the destination chain can prove that, and it is not connected.
    EvidenceNeeded,
    /// Nothing was paid, and this did not work.
    Unavailable(String),
    /// Nothing was paid, and the record was refused.
    Refused(Refusal),
    /// Nothing was paid, and the step failed.
    Failed(DriveError),
}

/// An end of an order that the service states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StatedEnd {
    /// The owner has received the destination funds.
    Complete,
    /// The owner has the source funds back.
    Refunded,
    /// Nothing was paid in time.
    Expired,
    /// The source was redeemed and the destination refunded.
    Lost,
}

impl StatedEnd {
    /// Returns the end that a status states; `None` if it states none.
    #[must_use]
    pub const fn from_status(status: &crate::status::Status) -> Option<Self> {
        match status.state {
            State::Lost => Some(Self::Lost),
            _ if status.complete => Some(Self::Complete),
            State::Refunded => Some(Self::Refunded),
            State::Expired => Some(Self::Expired),
            _ => None,
        }
    }

    /// Returns the name for display, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Refunded => "refunded",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }

    /// Returns whether what is known about the secret agrees with the end. A completion and a loss need a secret that is out, because
    /// nobody can redeem without it. A refund needs the opposite: while the secret is out, the destination has to be redeemed.
    ///
    /// The secret is out if the record contains it, or if by `kept`, the order in the store, it may have left this machine. What only the
    /// owner's signer has seen agrees with either end.
    #[must_use]
    pub fn agrees_with_secret(self, record: &OrderRecord, kept: Option<&OrderState>) -> bool {
        match self {
            Self::Complete | Self::Lost => kept.is_some_and(OrderState::secret_has_left) || is_revealed(record),
            Self::Refunded => !kept.is_some_and(OrderState::secret_was_sent) && !is_revealed(record),
            Self::Expired => true,
        }
    }
}

/// Returns whether the record contains the right secret: its hash is the secret hash of the order.
fn is_revealed(record: &OrderRecord) -> bool {
    let hash = record.destination_swap.secret_hash;
    let is_right = |text: &String| Secret::parse(text).is_ok_and(|secret| secret.hash() == hash);
    [&record.source_swap, &record.destination_swap].iter().any(|swap| swap.secret.as_ref().is_some_and(is_right))
}

impl Progress {
    /// Returns what did not work in the step and is tried again. A chain that is not connected is not such a failure, because the status
    /// says what to do.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match &self.trouble {
            Some(Trouble::Failed(why)) => Some(why),
            _ => None,
        }
    }
}

impl Following {
    /// Starts to follow a stored order with the connections and the trust of its driver.
    #[must_use]
    pub fn new(kept: &OrderState, chains: &impl Chains, trust: Option<TrustTheService>) -> Self {
        let request = kept.swap.request();
        Self {
            trusts: trust.is_some(),
            source_connected: chains.has(request.source.asset.chain()),
            destination_connected: chains.has(request.destination.asset.chain()),
            is_paid: kept.may_be_paid(),
            is_alarmed: false,
            told: BTreeSet::new(),
        }
    }

    /// Decides after a step of the driver. `kept` is the order as stored after the step: what was about to be sent in it may have arrived,
    /// whatever was observed before.
    pub fn hear(&mut self, kept: &OrderState, result: &Result<Progress, DriveError>) -> FollowStep {
        let was_paid = self.is_paid;
        self.is_paid |= kept.may_be_paid();
        let progress = match result {
            Ok(progress) => progress,
            // A paid order is followed until it ends, whatever fails. A fee above the policy's limit may be below it in an hour, and what is
            // refused of another payment says nothing about the first one.
            Err(_) if self.is_paid => return FollowStep { alerts: vec![Alert::Retrying], stop: None },
            Err(error) => return FollowStep { alerts: Vec::new(), stop: Some(Stop::Failed(error.clone())) },
        };
        self.is_paid |= progress.is_paid || progress.is_stated_paid;
        let mut alerts = Vec::new();
        if self.is_paid && !was_paid && progress.failure().is_some() {
            alerts.push(Alert::MaybePaid);
        }
        if matches!(progress.status, Status::RedeemNow) && !self.is_alarmed {
            self.is_alarmed = true;
            alerts.push(Alert::RedeemNow);
        }
        let stop = match self.stated_end(kept, progress) {
            Some((end, true)) => Some(Stop::Stated(end)),
            Some((end, false)) if self.told.insert(end) => {
                alerts.push(Alert::StatedOnly(end));
                self.stop(progress)
            }
            _ => self.stop(progress),
        };
        FollowStep { alerts, stop }
    }

    /// Returns the end that the service states and no connected chain shows, and whether it counts.
    ///
    /// A stated end counts only for a leg whose chain is not connected: the word of a connected chain decides. It never counts while a
    /// connected destination may still be locked, nor against what is known about the secret.
    fn stated_end(&self, kept: &OrderState, progress: &Progress) -> Option<(StatedEnd, bool)> {
        let stated = progress.stated.as_ref().filter(|_| self.is_paid)?;
        let end = match &progress.status {
            Status::Ended { .. } => return None,
            Status::Lost => StatedEnd::Lost,
            // A payment that was sent from here does not expire.
            _ => StatedEnd::from_status(&stated.status).filter(|end| *end != StatedEnd::Expired)?,
        };
        let (is_read, counts) = match end {
            StatedEnd::Complete => (self.destination_connected, self.trusts),
            StatedEnd::Refunded | StatedEnd::Expired => (self.source_connected, self.trusts && !self.destination_connected),
            // The driver has compared both legs, each with its chain where that is connected.
            StatedEnd::Lost => (self.source_connected && self.destination_connected, matches!(progress.status, Status::Lost)),
        };
        let counts = counts && end.agrees_with_secret(&stated.record, Some(kept));
        (!is_read).then_some((end, counts))
    }

    fn stop(&self, progress: &Progress) -> Option<Stop> {
        // What was observed before an act says nothing about what is left to do.
        if progress.acted {
            return None;
        }
        match &progress.status {
            Status::Ended { outcome } => return Some(Stop::Ended(*outcome)),
            Status::Expired if !self.is_paid => return Some(Stop::Ended(Outcome::Expired)),
            Status::Unsigned if !self.is_paid && progress.failure().is_none() => return Some(Stop::NotSigned),
            Status::Refused { refusal } if !self.is_paid => return Some(Stop::Refused(refusal.clone())),
            Status::NeedsOwner { what } => return Some(Stop::Owner(*what)),
            Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear(_)) } if self.needs_evidence(progress) => {
                return Some(Stop::EvidenceNeeded);
            }
            _ => {}
        }
        // Nothing can have been paid yet, so nobody has to wait for a service that is down.
        let failure = progress.failure().filter(|_| !self.is_paid);
        failure.map(|why| Stop::Unavailable(why.to_owned()))
    }

    fn needs_evidence(&self, progress: &Progress) -> bool {
        let says_funded = progress.stated.as_ref().is_some_and(|stated| stated.status.state == State::AwaitingRedeem);
        says_funded && !self.trusts && !self.destination_connected
    }
}

#[cfg(test)]
mod tests;
