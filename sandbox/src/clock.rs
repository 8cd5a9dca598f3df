//! The clock of all chains: the machine's, and as far ahead as somebody has turned it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock that tests can turn forward.
#[derive(Debug, Default)]
pub struct Clock {
    ahead: AtomicU64,
    fixed: Option<u64>,
}

impl Clock {
    /// Returns a clock that begins at a time, in milliseconds since 1970, and goes only when somebody turns it.
    #[must_use]
    pub const fn fixed(millis: u64) -> Self {
        Self { ahead: AtomicU64::new(0), fixed: Some(millis) }
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn millis(&self) -> u64 {
        let ahead = self.ahead.load(Ordering::Relaxed);
        if let Some(fixed) = self.fixed {
            return fixed.saturating_add(ahead);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        u64::try_from(now).unwrap_or(u64::MAX).saturating_add(ahead)
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
