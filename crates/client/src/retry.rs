//! Decides whether a call may be repeated, and how long to wait before.

use std::time::Duration;

use crate::error::Error;
use countersign_transport::Method;

/// How often a call is attempted, and how long the client waits in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a set of options")]
pub struct Retry {
    /// The maximum number of attempts, including the first. 0 means the same as 1.
    pub attempts: u32,
    /// The longest wait before the second attempt. It doubles with each further attempt.
    pub first: Duration,
    /// The longest wait of all. If `retry-after` is longer, the call fails and the caller decides.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 4, first: Duration::from_millis(500), longest: Duration::from_secs(20) }
    }
}

impl Retry {
    /// Returns how long to wait before attempt `next` (2, 3, ..) after `error`; `None` if there must be no further attempt.
    ///
    /// A GET is repeated after a transient error. A POST or PATCH is repeated only if no connection was established, because the service
    /// may have acted on it otherwise.
    pub(crate) fn wait(&self, method: Method, error: &Error, next: u32, jitter: u64) -> Option<Duration> {
        let again = match method {
            Method::Get => error.is_transient(),
            Method::Post | Method::Patch => error.is_transient() && !error.may_have_acted(),
        };
        if !again || next > self.attempts {
            return None;
        }
        if let Some(asked) = error.retry_after() {
            return (asked <= self.longest).then_some(asked);
        }
        let doublings = next.saturating_sub(2).min(16);
        Some(jittered(self.first.saturating_mul(1 << doublings).min(self.longest), jitter))
    }
}

/// Returns a duration between half of `most` and `most`, so that clients that failed at the same time do not retry at the same time.
pub(crate) fn jittered(most: Duration, random: u64) -> Duration {
    let half = most.checked_div(2).unwrap_or_default();
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
    half.saturating_add(Duration::from_nanos(random.checked_rem(nanos.saturating_add(1)).unwrap_or_default()))
}

/// Returns a random number for jitter. It need not be secret, so it is 0 if the operating system returns no random numbers.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// Parses a `retry-after` header in seconds. The other form, a date, is ignored, because clocks differ.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let digits = text.trim();
    let plain = (1..=9).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_transport::{TransportError, TransportErrorKind};

    fn broken(kind: TransportErrorKind) -> Error {
        Error::Transport(TransportError::new(kind, ""))
    }

    fn busy(status: u16, retry_after: Option<u64>) -> Error {
        Error::Status { status, body: String::new(), retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn a_post_or_patch_is_repeated_only_if_nothing_was_sent() {
        use TransportErrorKind::{Connect, Encoded, Interrupted, Timeout, TooLarge};
        let retry = Retry::default();
        for (error, get, post) in [
            (broken(Connect), true, true),
            (broken(Timeout), true, false),
            (broken(Interrupted), true, false),
            (broken(TooLarge), false, false),
            (broken(Encoded), false, false),
            (busy(429, None), true, false),
            (busy(503, None), true, false),
            (busy(500, None), true, false),
            (busy(502, None), true, false),
            (busy(504, None), true, false),
            (busy(408, None), true, false),
            (busy(404, None), false, false),
        ] {
            assert_eq!(retry.wait(Method::Get, &error, 2, 0).is_some(), get, "{error}");
            assert_eq!(retry.wait(Method::Post, &error, 2, 0).is_some(), post, "{error}");
            assert_eq!(retry.wait(Method::Patch, &error, 2, 0).is_some(), post, "{error}");
        }
    }

    #[test]
    fn waits_grow_and_are_bounded() {
        let retry = Retry { attempts: 40, ..Retry::default() };
        let waits: Vec<_> = (2..40).map(|next| retry.wait(Method::Get, &busy(503, None), next, u64::MAX).unwrap()).collect();
        assert!(waits.iter().all(|wait| *wait <= retry.longest && *wait >= Duration::from_millis(250)), "{waits:?}");
        assert!(waits[5] > waits[0]);
        assert_eq!(retry.wait(Method::Get, &busy(503, None), 41, 0), None);
    }

    #[test]
    fn retry_after_is_honoured_up_to_the_longest_wait() {
        let retry = Retry::default();
        assert_eq!(retry.wait(Method::Get, &busy(429, Some(7)), 2, 5), Some(Duration::from_secs(7)));
        assert_eq!(retry.wait(Method::Get, &busy(429, Some(21)), 2, 5), None);
        for (text, wait) in [("0", Some(0)), (" 12 ", Some(12)), ("-1", None), ("1e3", None), ("9999999999", None), ("", None)] {
            assert_eq!(seconds(text), wait.map(Duration::from_secs), "{text}");
        }
        assert_eq!(seconds("Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }
}
