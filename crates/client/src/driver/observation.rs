//! What is known about an order at one moment: what [`decide`](super::decide()) decides on.

use std::time::Duration;

use countersign::reader::Fate;
use countersign::{
    Family, Funded, Refusal, VerifiedRecord,
    chains::UnixTime,
    evidence::{Hold, HtlcState},
};

use super::parties::TrustTheService;

/// What is known about an order at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OrderObservation {
    /// The time of the observation: the caller's clock, or the time of the newest block that enough endpoints show if that
    /// is later.
    pub now: UnixTime,
    /// The service's record.
    pub record: RecordObservation,
    /// The source leg, where the owner pays.
    pub source: LegObservation,
    /// The destination leg, where the owner is paid.
    pub destination: LegObservation,
    /// The family of the source chain; `None` if no record could be verified.
    pub source_family: Option<Family>,
    /// The family of the destination chain; `None` if no record could be verified.
    pub destination_family: Option<Family>,
    /// The proof that the secret may be released, or why it may not.
    pub release: Result<Release, Hold>,
    /// A published secret that matches the order's hash; `None` if none was seen.
    pub public_secret: Option<[u8; 32]>,
    /// When the owner's payment must be confirmed; `None` if that is unknown.
    pub deadline: Option<UnixTime>,
    /// What becomes of a payment that was sent and that the source chain does not show.
    pub payment: PaymentFate,
    /// From when a payment that is in no block needs a higher fee; `None` if nothing was signed here.
    pub payment_overdue_from: Option<UnixTime>,
    /// The milliseconds of one unit of the source's timelock, as its blocks show; `None` if nothing was measured.
    pub source_pace: Option<u64>,
    /// The same of the destination's timelock.
    pub destination_pace: Option<u64>,
    /// How long the source chain needs to confirm a payment, at the slower one of its known paces.
    pub confirmation_time: Duration,
    /// When the source's timelock is over by time, with the margin of its chain; `None` if that is unknown.
    pub refund_from: Option<UnixTime>,
    /// Whether every connected chain was read, at a newest block that fits the caller's clock. Otherwise why not, for display: nothing is
    /// paid then.
    pub heads: Result<(), String>,
}

/// What becomes of a payment that was sent and that its chain does not show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PaymentFate {
    /// It may still be included, or nobody knows.
    #[default]
    Open,
    /// By as many endpoints as must agree, it can never be included. Contains the reason.
    Dead(String),
}

/// What is known about the service's record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordObservation {
    /// It could not be fetched. The text says why, for display.
    Unknown(String),
    /// The service was not asked, because the secret is out and the chains decide.
    NotAsked,
    /// It was refused: it contradicts the request or the response, or its terms have changed.
    Refused(Refusal),
    /// Every term was verified and is unchanged.
    Verified(Box<VerifiedRecord>),
}

/// What is known about one leg.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LegObservation {
    /// Nothing is known. The text says why, for display.
    Unknown(String),
    /// The service states it; the chain was not read.
    Stated(HtlcState),
    /// It was read from the chain.
    Seen {
        /// The state.
        state: HtlcState,
        /// Whether the state is in a final block, by the policy's finality rule.
        is_final: bool,
        /// The time of the newest block.
        head_time: UnixTime,
    },
}

/// The reason why the secret may be released.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Release {
    /// The destination chain itself shows the payment.
    Evidence(Funded),
    /// The caller has chosen to trust the service: see [`TrustTheService`].
    Trust(TrustTheService),
}

impl PaymentFate {
    pub(super) fn of(fate: &Fate) -> Self {
        match fate {
            Fate::Dead(why) => Self::Dead(why.clone()),
            Fate::Open | Fate::Included => Self::Open,
        }
    }
}

impl LegObservation {
    /// Returns the state, whether stated or read from the chain; `None` if it is unknown.
    #[must_use]
    pub const fn state(&self) -> Option<&HtlcState> {
        match self {
            Self::Unknown(_) => None,
            Self::Stated(state) | Self::Seen { state, .. } => Some(state),
        }
    }

    /// Returns whether the state was read from the chain, in a final block.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Seen { is_final: true, .. })
    }

    /// Returns whether the state was read from the chain.
    #[must_use]
    pub const fn is_seen(&self) -> bool {
        matches!(self, Self::Seen { .. })
    }
}

impl OrderObservation {
    /// Creates an observation in which nothing is known except the time and the record.
    #[must_use]
    pub fn unknown(now: UnixTime, record: RecordObservation) -> Self {
        let why = match &record {
            RecordObservation::Unknown(why) => why.clone(),
            RecordObservation::Refused(refusal) => refusal.finding().to_string(),
            RecordObservation::Verified(_) | RecordObservation::NotAsked => String::new(),
        };
        Self {
            now,
            record,
            source: LegObservation::Unknown(why.clone()),
            destination: LegObservation::Unknown(why.clone()),
            release: Err(Hold::Unclear(why)),
            source_family: None,
            destination_family: None,
            public_secret: None,
            deadline: None,
            payment: PaymentFate::Open,
            payment_overdue_from: None,
            source_pace: None,
            destination_pace: None,
            confirmation_time: Duration::ZERO,
            refund_from: None,
            heads: Ok(()),
        }
    }
}
