//! The clock of all chains. It shows the machine's time, or a fixed time, plus what it has been advanced by.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock that tests can turn forward.
#[derive(Debug, Default)]
pub struct Clock {
    ahead: AtomicU64,
    fixed: Option<u64>,
}

impl Clock {
    /// Returns a clock that starts at a time, in milliseconds since 1970, and moves only when it is advanced.
    #[must_use]
    pub const fn fixed(millis: u64) -> Self {
        Self { ahead: AtomicU64::new(0), fixed: Some(millis) }
    }

    /// Returns the time in milliseconds since 1970.
    #[must_use]
    pub fn millis(&self) -> u64 {
        let ahead = self.ahead.load(Ordering::Relaxed);
        if let Some(fixed) = self.fixed {
            return fixed.saturating_add(ahead);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        u64::try_from(now).unwrap_or(u64::MAX).saturating_add(ahead)
    }

    /// Returns the time in seconds since 1970.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.millis() / 1_000
    }

    /// Moves the clock forward.
    pub fn advance(&self, millis: u64) {
        self.ahead.fetch_add(millis, Ordering::Relaxed);
    }
}
