//! The clock of all chains: the machine's, and as far ahead as somebody has turned it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock that tests can turn forward.
#[derive(Debug, Default)]
pub struct Clock {
    ahead: AtomicU64,
}

impl Clock {
    /// Milliseconds since 1970.
    #[must_use]
    pub fn millis(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        u64::try_from(now).unwrap_or(u64::MAX).saturating_add(self.ahead.load(Ordering::Relaxed))
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.millis() / 1_000
    }

    /// Turns the clock forward.
    pub fn advance(&self, millis: u64) {
        self.ahead.fetch_add(millis, Ordering::Relaxed);
    }
}
