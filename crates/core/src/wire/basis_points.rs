//! Shares of an amount.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::report::{Code, Refusal, TypedValue};

/// What is expected of a share, in words.
pub(super) const AT_MOST_ALL: &str = "at most 10000 basis points";

/// A share of an amount in basis points, which are hundredths of a percent: slippages and fees. Its text and JSON form is that number.
///
/// A plain number does not say whether 50 are half a percent or half of everything.
///
/// ```
/// use countersign::wire::BasisPoints;
///
/// assert_eq!(BasisPoints::from_percent(1), BasisPoints::new(100));
/// assert_eq!(BasisPoints::WHOLE.get(), 10_000);
/// ```
///
/// ```compile_fail,E0308
/// # use countersign::wire::BasisPoints;
/// let slippage: Option<BasisPoints> = Some(1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BasisPoints(u64);

impl BasisPoints {
    /// The whole amount.
    pub const WHOLE: Self = Self(10_000);

    /// Creates a share from basis points.
    #[must_use]
    pub const fn new(points: u64) -> Self {
        Self(points)
    }

    /// Creates a share from whole percents.
    #[must_use]
    pub const fn from_percent(percent: u64) -> Self {
        Self(percent.saturating_mul(100))
    }

    /// Returns the number of basis points.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the sum of two shares.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the share if it is at most the whole amount.
    ///
    /// # Errors
    ///
    /// [`Code::NumberTooLarge`] at `at` above 10000 basis points.
    pub fn check(self, at: &str) -> Result<Self, Refusal> {
        if self > Self::WHOLE {
            return Err(Refusal::new(Code::NumberTooLarge, at).with_expected(AT_MOST_ALL).with_actual(self));
        }
        Ok(self)
    }
}

impl From<BasisPoints> for TypedValue {
    fn from(points: BasisPoints) -> Self {
        points.0.into()
    }
}

impl fmt::Display for BasisPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
