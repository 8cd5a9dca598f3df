//! Whether the newest block of a chain can be relied on.

use std::fmt;

use countersign_chains::{Family, UnixTime};

use super::judge::{max_head_age, max_head_ahead};

/// Why the newest block of a chain cannot be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadDoubt {
    /// It is older than a chain of the family leaves its newest block.
    Old {
        /// Its age in seconds.
        seconds: u64,
        /// The maximum age in seconds: see [`max_head_age`].
        limit: u64,
    },
    /// It is further ahead of the caller's clock than [`max_head_ahead`].
    Ahead {
        /// The seconds by which it is ahead.
        seconds: u64,
    },
}

impl fmt::Display for HeadDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Old { seconds, limit } => write!(
                f,
                "the newest block is {seconds} s old, and at most {limit} s are normal: the chain has stopped, the endpoints do not follow \
                 it, or the clock of this machine is ahead"
            ),
            Self::Ahead { seconds } => {
                write!(f, "the newest block is {seconds} s ahead of the clock of this machine: correct the clock, or use other endpoints")
            }
        }
    }
}

impl std::error::Error for HeadDoubt {}

/// Requires that the newest block of a chain is neither too old nor in the future. `time` is that of the block and `now` the caller's
/// clock.
///
/// # Errors
///
/// [`HeadDoubt`].
pub const fn check_head_time(family: Family, time: UnixTime, now: UnixTime) -> Result<(), HeadDoubt> {
    let (age, ahead) = (now.saturating_duration_since(time).as_secs(), time.saturating_duration_since(now).as_secs());
    let limit = max_head_age(family);
    if ahead > max_head_ahead(family) {
        return Err(HeadDoubt::Ahead { seconds: ahead });
    }
    if age > limit { Err(HeadDoubt::Old { seconds: age, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_block_is_neither_old_nor_in_the_future() {
        const NOW: u64 = 1_800_000_000;
        let check_head_time = |family, time, now| check_head_time(family, UnixTime::from_secs(time), UnixTime::from_secs(now));
        for (family, limit, most) in [(Family::Evm, 120, 60), (Family::Solana, 120, 60), (Family::Bitcoin, 10_800, 7_200)] {
            assert_eq!(check_head_time(family, NOW - limit, NOW), Ok(()));
            assert_eq!(check_head_time(family, NOW - limit - 1, NOW), Err(HeadDoubt::Old { seconds: limit + 1, limit }));
            assert_eq!(check_head_time(family, NOW + most, NOW), Ok(()));
            assert_eq!(check_head_time(family, NOW + most + 1, NOW), Err(HeadDoubt::Ahead { seconds: most + 1 }));
            assert!(check_head_time(family, u64::MAX, 0).is_err() && check_head_time(family, 0, u64::MAX).is_err());
        }
    }
}
