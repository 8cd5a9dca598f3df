//! Compares the state of an HTLC with the verified terms.

use countersign_chains::{ChainProfile, Family, Finality, FinalityRule, Span, UnixTime};

use super::{Finding, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, VerifiedTerms};
use crate::reader::Doubt;
use crate::report::{Timelock, TypedValue, text};

/// How one finding compares with the verified terms: the destination is funded as verified, the funding is final, and there is time left
/// to redeem.
///
/// By itself it proves nothing, because anybody can write a finding. The facade's `Funded` is the proof: only observations of its own
/// readers, on which enough endpoints agree, make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    order_id: String,
    left: u64,
    seen: ObservedAt,
    profile: &'static ChainProfile,
    /// The fewest milliseconds in which the chain may count one unit.
    pace: u64,
    margin: u64,
}

/// Why the secret must not be released now, or ever.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// The destination is not funded.
    NotFunded,
    /// The funding is not final yet.
    NotFinal {
        /// How final the funding is, in words.
        reached: String,
        /// How final it must be, in words.
        needed: String,
    },
    /// The HTLC on chain is not the one that was verified.
    Differs(Box<Difference>),
    /// The HTLC holds less than its swaps need.
    NotCovered,
    /// The solver could take the payment back before the redemption is mined.
    NoTime {
        /// What is left of the timelock, in the chain's unit.
        left: u64,
        /// The margin. More than this must be left.
        needed: u64,
        /// The name of the unit: `blocks`, `slots` or `ms`.
        unit: &'static str,
    },
    /// The destination is already redeemed.
    Redeemed,
    /// The solver has taken the payment back.
    Refunded,
    /// The answer is too old to decide on.
    Stale {
        /// Seconds since the newest block that was seen.
        seconds: u64,
    },
    /// Too few endpoints gave the same answer.
    Disagree {
        /// How many endpoints gave the same answer.
        agreed: u32,
        /// How many endpoints must give it.
        needed: u32,
    },
    /// The answer cannot be judged, and why.
    Unclear(String),
}

/// Declares the codes, with their names.
macro_rules! hold_codes {
    ($($variant:ident = $name:literal,)*) => {
        /// The code of a [`Hold`]: which one it is, without its figures. [`HoldCode::name`] never changes once released.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum HoldCode {
            $(#[doc = concat!("[`Hold::", stringify!($variant), "`].")] $variant,)*
        }

        impl HoldCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the stable name, in snake case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

hold_codes! {
    NotFunded = "destination_not_funded",
    NotFinal = "destination_not_final",
    Differs = "destination_differs",
    NotCovered = "destination_not_covered",
    NoTime = "destination_no_time",
    Redeemed = "destination_redeemed",
    Refunded = "destination_refunded",
    Stale = "chain_stale",
    Disagree = "endpoints_disagree",
    Unclear = "destination_unclear",
}

impl std::fmt::Display for HoldCode {
    /// Writes the stable name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A term of an HTLC that differs on chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The name of the term, such as `amount` or `secret hash`.
    pub what: &'static str,
    /// What was verified.
    pub expected: TypedValue,
    /// What the chain has.
    pub actual: TypedValue,
}

impl Hold {
    /// Creates the hold for a term that differs on chain.
    #[must_use]
    pub fn differs(what: &'static str, expected: impl Into<TypedValue>, actual: impl Into<TypedValue>) -> Self {
        Self::Differs(Box::new(Difference { what, expected: expected.into(), actual: actual.into() }))
    }

    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> HoldCode {
        match self {
            Self::NotFunded => HoldCode::NotFunded,
            Self::NotFinal { .. } => HoldCode::NotFinal,
            Self::Differs(_) => HoldCode::Differs,
            Self::NotCovered => HoldCode::NotCovered,
            Self::NoTime { .. } => HoldCode::NoTime,
            Self::Redeemed => HoldCode::Redeemed,
            Self::Refunded => HoldCode::Refunded,
            Self::Stale { .. } => HoldCode::Stale,
            Self::Disagree { .. } => HoldCode::Disagree,
            Self::Unclear(_) => HoldCode::Unclear,
        }
    }

    /// Returns whether waiting may help.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NotFunded | Self::NotFinal { .. } | Self::NotCovered | Self::Stale { .. } | Self::Disagree { .. } | Self::Unclear(_)
        )
    }
}

impl std::fmt::Display for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFunded => f.write_str("the destination is not funded"),
            Self::NotFinal { reached, needed } => write!(f, "the funding of the destination is {reached}, and must be {needed}"),
            Self::Differs(difference) => {
                let Difference { what, expected, actual } = difference.as_ref();
                write!(f, "the {what} of the destination's HTLC is {actual} on chain, not {expected}")
            }
            Self::NotCovered => f.write_str("the destination's HTLC holds less than its swaps need"),
            Self::NoTime { left, needed, unit } => {
                write!(f, "the solver can take the payment back in {left} {unit}; more than {needed} must be left to redeem")
            }
            Self::Redeemed => f.write_str("the destination is already redeemed"),
            Self::Refunded => f.write_str("the solver has taken the payment back"),
            Self::Stale { seconds } => write!(f, "the newest block that was seen is {seconds} s old"),
            Self::Disagree { agreed, needed } => write!(f, "too few endpoints gave the same answer: {agreed}, and {needed} are needed"),
            Self::Unclear(why) => write!(f, "the destination cannot be judged: {why}"),
        }
    }
}

impl std::error::Error for Hold {}

impl From<Doubt<Self>> for Hold {
    fn from(doubt: Doubt<Self>) -> Self {
        match doubt {
            Doubt::Held(hold) => hold,
            Doubt::Fault(fault) => Self::Unclear(fault.to_string()),
            Doubt::Disagree { agreed, needed, .. } => Self::Disagree { agreed, needed },
        }
    }
}

impl Judgement {
    /// Compares what one endpoint shows of the destination's HTLC with the verified terms. `now` is the caller's clock. A
    /// wrong clock can make a finding too old, but it never adds time to redeem.
    ///
    /// # Errors
    ///
    /// A [`Hold`] with the reason why the secret must not be released. [`Hold::is_transient`] returns whether waiting may help.
    pub fn new(terms: &VerifiedTerms, finding: &Finding, rule: &FinalityRule, now: UnixTime) -> Result<Self, Hold> {
        Self::of_htlc(&terms.order_id, &terms.destination, finding, rule, now)
    }

    /// Compares what one endpoint shows with the terms of one HTLC. These may only be [stated](HtlcTerms::stated).
    ///
    /// # Errors
    ///
    /// Those of [`Judgement::new`].
    pub fn of_htlc(order_id: &str, destination: &HtlcTerms, finding: &Finding, rule: &FinalityRule, now: UnixTime) -> Result<Self, Hold> {
        let Finding { state, seen, .. } = finding;
        let locked = match state {
            HtlcState::Absent => return Err(Hold::NotFunded),
            HtlcState::Redeemed { .. } => return Err(Hold::Redeemed),
            HtlcState::Refunded { .. } => return Err(Hold::Refunded),
            HtlcState::Unclear(why) => return Err(Hold::Unclear(text::escape_untrusted(why))),
            HtlcState::Locked(locked) => locked,
        };
        check_terms(destination, locked)?;
        if !locked.covered {
            return Err(Hold::NotCovered);
        }
        check_finality(destination, seen, rule)?;
        let pace = destination.pace.counted(seen.pace);
        let judgement = Self {
            order_id: order_id.to_owned(),
            left: locked.left(),
            seen: seen.clone(),
            profile: destination.profile(),
            pace,
            margin: rule.margin.units(pace),
        };
        judgement.check_time(now).map(|()| judgement)
    }

    /// Requires that the judgement is still valid at `now`, the caller's clock.
    ///
    /// # Errors
    ///
    /// [`Hold::Stale`] if the chain was read too long ago, and [`Hold::NoTime`] if too little of the timelock is left.
    pub fn check_time(&self, now: UnixTime) -> Result<(), Hold> {
        let seconds = now.saturating_duration_since(self.seen.head_time).as_secs();
        if seconds > self.profile.max_head_age.as_secs() {
            return Err(Hold::Stale { seconds });
        }
        // More than the margin must be left: with exactly the margin, the solver's refund and the redemption would race.
        let left = self.left_at(now);
        if left <= self.margin {
            return Err(Hold::NoTime { left, needed: self.margin, unit: self.profile.family.timelock_unit() });
        }
        Ok(())
    }

    /// Returns the last time at which [`check_time`](Self::check_time) accepts the judgement.
    #[must_use]
    pub fn fresh_until(&self) -> UnixTime {
        let read = self.profile.max_head_age.as_secs();
        // The seconds before so many units have passed that no more than the margin is left.
        let spare = self.left.saturating_sub(self.margin);
        let spare = u128::from(spare).saturating_mul(self.pace.into()).saturating_sub(1).checked_div(1_000).unwrap_or_default();
        let seconds = if self.pace == 0 { read } else { read.min(u64::try_from(spare).unwrap_or(u64::MAX)) };
        UnixTime::from_secs(self.seen.head_time.as_secs().saturating_add(seconds))
    }

    /// Returns the remaining timelock of the destination at `now`, in the chain's unit. Subtracts the blocks, slots or milliseconds that
    /// the chain may have counted since the newest block that was seen, at the pace that [counts](countersign_chains::Pace::counted).
    #[must_use]
    pub fn left_at(&self, now: UnixTime) -> u64 {
        let seconds = now.saturating_duration_since(self.seen.head_time).as_secs();
        let missed = seconds.saturating_mul(1_000).checked_div(self.pace).unwrap_or_default();
        self.left.saturating_sub(missed)
    }

    /// Returns the id of the order that this is for, in lower case.
    #[must_use]
    pub fn order_id(&self) -> &str {
        &self.order_id
    }

    /// Returns what was left of the destination's timelock at the newest block that was seen, with the shortest time in which the chain may
    /// count it.
    #[must_use]
    pub fn left(&self) -> Timelock {
        Timelock::new(self.left, self.profile.family, Span::Units(self.left).millis(self.pace))
    }

    /// Returns where the state was read, and how certain it is.
    #[must_use]
    pub const fn seen(&self) -> &ObservedAt {
        &self.seen
    }
}

/// Requires that the HTLC on chain is the one that was verified.
fn check_terms(terms: &HtlcTerms, locked: &LockedHtlc) -> Result<(), Hold> {
    let differs = |what, expected: TypedValue, actual: TypedValue| Err(Hold::differs(what, expected, actual));
    if locked.initiator != terms.initiator {
        return differs("initiator", (&terms.initiator).into(), (&locked.initiator).into());
    }
    if locked.redeemer != terms.redeemer {
        return differs("redeemer", (&terms.redeemer).into(), (&locked.redeemer).into());
    }
    if locked.amount < terms.amount {
        return differs("amount", terms.amount.into(), locked.amount.into());
    }
    if locked.token != terms.token {
        let name = |token: &Option<String>| token.as_deref().unwrap_or("the chain's own coin").into();
        return differs("token", name(&terms.token), name(&locked.token));
    }
    if locked.timelock != terms.timelock {
        return differs("timelock", terms.timelock.into(), locked.timelock.into());
    }
    match locked.secret_hash {
        Some(hash) if hash != terms.secret_hash => differs("secret hash", terms.secret_hash.into(), hash.into()),
        None if !terms.swap_id_recomputed => Err(Hold::Unclear("the chain does not show which secret hash locks the payment".to_owned())),
        _ => Ok(()),
    }
}

fn check_finality(terms: &HtlcTerms, seen: &ObservedAt, rule: &FinalityRule) -> Result<(), Hold> {
    if seen.is_final(terms, rule) {
        return Ok(());
    }
    let reached = match (seen.depth, seen.is_safe) {
        (0, _) => "in no block".to_owned(),
        (_, true) => format!("safe, {} blocks deep", seen.depth),
        (1, _) => "1 block deep".to_owned(),
        _ => format!("{} blocks deep", seen.depth),
    };
    let needed = match rule.finality {
        Finality::Safe if terms.family == Family::Starknet => {
            format!("safe and {} blocks deep", rule.settle.units(terms.pace.counted(seen.pace)))
        }
        other => other.to_string(),
    };
    Err(Hold::NotFinal { reached, needed })
}
