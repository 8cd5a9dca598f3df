//! When a payment on a chain is final, and how much of its timelock must be left to redeem it (`docs/spec/batch.md#finality`).

use std::fmt;
use std::time::Duration;

use serde::ser::{Serialize, Serializer};

use crate::Span;

/// What makes a block final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finality {
    /// At least this many blocks, the payment's own block included.
    Depth(u64),
    /// The chain's own mark `safe`: on EVM chains the tag, on others the weaker of the chain's marks.
    Safe,
    /// The chain's own mark for blocks that are never replaced: `finalized`, solidified, accepted on L1, in a checkpoint.
    Finalized,
}

/// When the solver's payment counts as made, and how much of its timelock must be left when the owner's secret is released.
///
/// `settle` and `margin` are durations in the rows of the [chains](crate::ChainProfile), because blocks become faster. They are turned
/// into units at the pace that [counts](crate::Pace::counted). Counts of units, which a policy may have, stay what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct FinalityRule {
    /// What makes the block of the payment final.
    pub finality: Finality,
    /// How much of the timelock usually passes until the payment is final. With [`Finality::Safe`] on Starknet, this much must also have
    /// passed since the payment.
    pub settle: Span,
    /// How much of the timelock the redemption needs to be mined. More than this must be left.
    pub margin: Span,
}

impl FinalityRule {
    /// Creates a rule with counts of units: blocks, slots, or milliseconds on Sui.
    #[must_use]
    pub const fn new(finality: Finality, settle: u64, margin: u64) -> Self {
        Self { finality, settle: Span::Units(settle), margin: Span::Units(margin) }
    }

    /// Creates a rule with durations.
    #[must_use]
    pub const fn lasting(finality: Finality, settle: Duration, margin: Duration) -> Self {
        Self { finality, settle: Span::Time(settle), margin: Span::Time(margin) }
    }

    /// Returns the shortest timelock that leaves time to redeem once the payment is final, in units at a pace in milliseconds.
    #[must_use]
    pub fn min_timelock(&self, pace: u64) -> u64 {
        self.settle.units(pace).saturating_add(self.margin.units(pace))
    }
}

impl fmt::Display for Finality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth(1) => f.write_str("1 block deep"),
            Self::Depth(blocks) => write!(f, "{blocks} blocks deep"),
            Self::Safe => f.write_str("safe"),
            Self::Finalized => f.write_str("finalized"),
        }
    }
}

impl Serialize for Finality {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Depth(blocks) => serializer.serialize_u64(*blocks),
            Self::Safe => serializer.serialize_str("safe"),
            Self::Finalized => serializer.serialize_str("finalized"),
        }
    }
}
