//! Whether the newest block of a chain can be relied on.

use std::fmt;

use countersign_chains::ChainProfile;

/// Why the newest block of a chain cannot be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadDoubt {
    /// It is older than the chain leaves its newest block.
    Old {
        /// Its age in seconds.
        seconds: u64,
        /// The maximum age in seconds: see [`ChainProfile::max_head_age`].
        limit: u64,
    },
    /// It is further ahead of the caller's clock than [`ChainProfile::max_head_ahead`].
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
/// clock, both in Unix seconds.
///
/// # Errors
///
/// [`HeadDoubt`].
pub fn check_head_time(chain: &ChainProfile, time: u64, now: u64) -> Result<(), HeadDoubt> {
    let (age, ahead, limit) = (now.saturating_sub(time), time.saturating_sub(now), chain.max_head_age.as_secs());
    if ahead > chain.max_head_ahead().as_secs() {
        return Err(HeadDoubt::Ahead { seconds: ahead });
    }
    if age > limit { Err(HeadDoubt::Old { seconds: age, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use countersign_chains::profile::known_chain;

    use super::*;

    #[test]
    fn the_newest_block_is_neither_old_nor_in_the_future() {
        const NOW: u64 = 1_800_000_000;
        for (name, limit, most) in [("base", 120, 60), ("solana", 120, 60), ("litecoin", 10_800, 7_200)] {
            let chain = &known_chain(name).unwrap().profile;
            assert_eq!(check_head_time(chain, NOW - limit, NOW), Ok(()));
            assert_eq!(check_head_time(chain, NOW - limit - 1, NOW), Err(HeadDoubt::Old { seconds: limit + 1, limit }));
            assert_eq!(check_head_time(chain, NOW + most, NOW), Ok(()));
            assert_eq!(check_head_time(chain, NOW + most + 1, NOW), Err(HeadDoubt::Ahead { seconds: most + 1 }));
            assert!(check_head_time(chain, u64::MAX, 0).is_err() && check_head_time(chain, 0, u64::MAX).is_err());
        }
    }
}
