//! Points in time: in seconds, as blocks and orders have them, and in milliseconds, as clocks and Tron have them.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A point in time, in whole seconds since 1970-01-01 00:00 UTC. Its text and JSON form is that number.
///
/// Blocks, orders and the caller's clock all use it, so that milliseconds, heights or durations cannot take its place. Nothing here reads
/// a clock.
///
/// ```
/// use countersign::chains::UnixTime;
/// use std::time::Duration;
///
/// let (block, now) =
///     (UnixTime::from_millis(1_752_035_898_632), UnixTime::from_secs(1_752_035_910));
/// assert_eq!(now.saturating_duration_since(block), Duration::from_secs(12));
/// assert_eq!(block.saturating_duration_since(now), Duration::ZERO);
/// assert_eq!(block.saturating_add(Duration::from_secs(12)), now);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixTime(u64);

impl UnixTime {
    /// The earliest time: 1970-01-01 00:00 UTC.
    pub const EPOCH: Self = Self(0);
    /// The latest time, for an end that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a time from Unix seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Creates a time from Unix milliseconds. Drops the fraction of the second.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis / 1_000)
    }

    /// Returns the Unix seconds.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`, or zero if that is later.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time `duration` earlier, in whole seconds, but not before [`EPOCH`](Self::EPOCH).
    #[must_use]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration.as_secs()))
    }

    /// Returns the time `duration` later, in whole seconds. The latest representable time if there is none so late.
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_secs()))
    }
}

/// A time before 1970 becomes [`UnixTime::EPOCH`].
impl From<SystemTime> for UnixTime {
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point in time, in whole milliseconds since 1970-01-01 00:00 UTC. Its text and JSON form is that number.
///
/// Hosts of the swap machine and Tron's transactions count in milliseconds, and everything else here in [seconds](UnixTime). Seconds in the
/// place of milliseconds would be a day in January 1970.
///
/// ```
/// use countersign::chains::{UnixMillis, UnixTime};
/// use std::time::Duration;
///
/// let now = UnixMillis::from_millis(1_752_035_898_632);
/// assert_eq!(UnixTime::from(now), UnixTime::from_secs(1_752_035_898));
/// assert_eq!(now.saturating_add(Duration::from_secs(1)).as_millis(), 1_752_035_899_632);
/// ```
///
/// The two do not mix:
///
/// ```compile_fail,E0308
/// # use countersign::chains::{UnixMillis, UnixTime};
/// let now: UnixMillis = UnixTime::from_secs(1_752_035_898);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// Creates a time from Unix milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the Unix milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`, or zero if that is later.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time `duration` later, in whole milliseconds. The latest representable time if there is none so late.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Drops the fraction of the second.
impl From<UnixMillis> for UnixTime {
    fn from(time: UnixMillis) -> Self {
        Self::from_millis(time.0)
    }
}

/// A time before 1970 becomes 1970.
impl From<SystemTime> for UnixMillis {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::default().saturating_add(since)
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
