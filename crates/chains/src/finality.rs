//! When a payment on a chain is final, and how much of its timelock must be left to redeem it (`docs/spec/batch.md#finality`).

use std::fmt;

use serde::ser::{Serialize, Serializer};

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
/// `settle` and `margin` are in the unit of the chain's timelocks: blocks, slots, or milliseconds on Sui. Block times are not
/// used, because they change. What the chain itself has counted decides.
///
/// The rule of each chain is in its [`ChainProfile`](crate::ChainProfile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct FinalityRule {
    /// What makes the block of the payment final.
    pub finality: Finality,
    /// How much of the timelock usually passes until the payment is final. With [`Finality::Safe`] on Starknet, this many blocks
    /// must also have passed since the payment.
    pub settle: u64,
    /// How much of the timelock the redemption needs to be mined. More than this must be left.
    pub margin: u64,
}

impl FinalityRule {
    /// Creates a rule.
    #[must_use]
    pub const fn new(finality: Finality, settle: u64, margin: u64) -> Self {
        Self { finality, settle, margin }
    }

    /// Returns the shortest timelock that leaves time to redeem once the payment is final.
    #[must_use]
    pub const fn min_timelock(&self) -> u64 {
        self.settle.saturating_add(self.margin)
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
