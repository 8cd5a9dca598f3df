//! Places of blocks on a chain.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The height of a block: the slot on Solana, the sequence number of the checkpoint on Sui. Its text and JSON form is that number.
///
/// To compare the heights of two chains has no meaning. A number of blocks, such as a depth, is a plain `u64`, so that it cannot take the
/// place of a height.
///
/// ```
/// use countersign::chains::BlockHeight;
///
/// let (funded, newest) = (BlockHeight::from(840_000), BlockHeight::from(840_005));
/// assert_eq!(newest.blocks_since(funded), Some(5));
/// assert_eq!(funded.blocks_since(newest), None);
/// assert_eq!(funded.saturating_add(5), newest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockHeight(u64);

impl BlockHeight {
    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of blocks from `earlier` to this one, without `earlier`; `None` if `earlier` is above this one.
    #[must_use]
    pub const fn blocks_since(self, earlier: Self) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// Returns the height `blocks` lower, but not below the first block.
    #[must_use]
    pub const fn saturating_sub(self, blocks: u64) -> Self {
        Self(self.0.saturating_sub(blocks))
    }

    /// Returns the height `blocks` higher, or the greatest representable height if there is none so high.
    #[must_use]
    pub const fn saturating_add(self, blocks: u64) -> Self {
        Self(self.0.saturating_add(blocks))
    }
}

impl From<u64> for BlockHeight {
    fn from(height: u64) -> Self {
        Self(height)
    }
}

impl fmt::Display for BlockHeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
