//! Whether the newest block of a chain can be relied on.

use std::fmt;

use countersign_chains::{ChainProfile, UnixTime};

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
/// clock.
///
/// # Errors
///
/// [`HeadDoubt`].
pub fn check_head_time(chain: &ChainProfile, time: UnixTime, now: UnixTime) -> Result<(), HeadDoubt> {
    let (age, ahead, limit) = (now.saturating_duration_since(time), time.saturating_duration_since(now), chain.max_head_age);
    if ahead > chain.max_head_ahead() {
        return Err(HeadDoubt::Ahead { seconds: ahead.as_secs() });
    }
    if age > limit { Err(HeadDoubt::Old { seconds: age.as_secs(), limit: limit.as_secs() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use countersign_chains::profile::known_chain;

    use super::*;

    #[test]
    fn the_newest_block_is_neither_old_nor_in_the_future() {
        const NOW: u64 = 1_800_000_000;
        let at = UnixTime::from_secs;
        for (name, limit, most) in [("base", 120, 60), ("solana", 120, 60), ("litecoin", 10_800, 7_200)] {
            let chain = &known_chain(name).unwrap().profile;
            assert_eq!(check_head_time(chain, at(NOW - limit), at(NOW)), Ok(()));
            assert_eq!(check_head_time(chain, at(NOW - limit - 1), at(NOW)), Err(HeadDoubt::Old { seconds: limit + 1, limit }));
            assert_eq!(check_head_time(chain, at(NOW + most), at(NOW)), Ok(()));
            assert_eq!(check_head_time(chain, at(NOW + most + 1), at(NOW)), Err(HeadDoubt::Ahead { seconds: most + 1 }));
            assert!(check_head_time(chain, UnixTime::MAX, at(0)).is_err() && check_head_time(chain, at(0), UnixTime::MAX).is_err());
        }
    }
}
