//! The proof that lets the secret go.

use countersign_core::reader::Verdict;
use countersign_core::report::Timelock;
use countersign_core::{FinalityRule, Hold, Judgement, ObservedAt, UnixTime, VerifiedTerms};

use crate::reader::HtlcQuorum;

/// The proof that the destination is funded as verified, that the funding is final, and that there is time left to redeem.
///
/// Only [`Funded::judge`] makes it, from what enough endpoints show ([`HtlcQuorum`]), and it is valid for one order.
///
/// ```compile_fail
/// // Its fields are private: nobody can turn a judgement into a proof.
/// fn forge(judgement: countersign::reader::Judgement) -> countersign::Funded {
///     countersign::Funded(judgement)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Funded(Judgement);

impl Funded {
    /// Compares what the endpoints show of the destination's HTLC with the verified terms. Each endpoint's observation is judged alone,
    /// and enough of them must pass. `now` is the caller's clock. A wrong clock can make an observation too old, but it
    /// never adds time to redeem.
    ///
    /// # Errors
    ///
    /// A [`Hold`] with the reason why the secret must not be released. [`Hold::is_transient`] returns whether waiting may help.
    pub fn judge(terms: &VerifiedTerms, quorum: &HtlcQuorum, rule: &FinalityRule, now: UnixTime) -> Result<Self, Hold> {
        match quorum.quorum().ask(|one| one.judge(terms, rule, now)) {
            Verdict::Stands(_, worst) => worst.judgement(terms, rule, now).map(Self),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(doubt.into()),
        }
    }

    /// Requires that the proof is still valid at `now`, the caller's clock. Call it again right before the secret is
    /// released.
    ///
    /// # Errors
    ///
    /// [`Hold::Stale`] if the chain was read too long ago, and [`Hold::NoTime`] if too little of the timelock is left.
    pub fn check_time(&self, now: UnixTime) -> Result<(), Hold> {
        self.0.check_time(now)
    }

    /// Returns the last time at which [`check_time`](Self::check_time) accepts the proof. Judge again after it, with a new reading.
    #[must_use]
    pub fn fresh_until(&self) -> UnixTime {
        self.0.fresh_until()
    }

    /// Returns the id of the order that this proof is for, in lower case.
    #[must_use]
    pub fn order_id(&self) -> &str {
        self.0.order_id()
    }

    /// Returns what was left of the destination's timelock at the newest block that was seen, with its unit, and with the shortest time in
    /// which the chain may count it.
    #[must_use]
    pub fn left(&self) -> Timelock {
        self.0.left()
    }

    /// Returns where the state was read, and how certain it is: the worst of the best endpoints that were needed.
    #[must_use]
    pub const fn seen(&self) -> &ObservedAt {
        self.0.seen()
    }
}
