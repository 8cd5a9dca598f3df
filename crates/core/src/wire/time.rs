//! Times, which the service writes in two forms.

use chrono::DateTime;
use countersign_chains::UnixTime;
use serde::Serialize;

/// The last second of the year 9999.
const LATEST: i64 = 253_402_300_799;

/// A time as an order record states it, in RFC 3339 or Unix seconds (`docs/spec/service.md#times`).
///
/// The text stays as it was written, because it is shown and stored. A malformed time is refused only by a rule that needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RecordTime(pub(super) String);

impl RecordTime {
    /// Returns the time; `None` if the text is malformed, as for [`parse_time`].
    #[must_use]
    pub fn time(&self) -> Option<UnixTime> {
        parse_time(&self.0)
    }

    /// Returns the text of the record.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for RecordTime {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Parses a time in RFC 3339, which is a form of ISO 8601, or in Unix seconds (`docs/spec/service.md#times`).
///
/// Returns `None` for anything else, for times before 1970, and for seconds beyond the year 9999, which would be milliseconds or a
/// mistake.
#[must_use]
pub fn parse_time(text: &str) -> Option<UnixTime> {
    let seconds = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok().filter(|seconds| *seconds <= LATEST)?
    } else {
        DateTime::parse_from_rfc3339(text).ok()?.timestamp()
    };
    u64::try_from(seconds).ok().map(UnixTime::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_time_are_read_and_nothing_else() {
        // The same moment by GNU date.
        for text in [
            "1752035898",
            "2025-07-09T04:38:18Z",
            "2025-07-09T04:38:18.632122Z",
            "2025-07-09T04:38:18.753375757Z",
            "2025-07-09T06:38:18+02:00",
        ] {
            assert_eq!(parse_time(text), Some(UnixTime::from_secs(1_752_035_898)), "{text}");
        }
        for text in
            ["", "x", "+1752035898", "-1", "1752035898.5", "1752035898000", "1960-01-01T00:00:00Z", "2025-07-09", "99999999999999999999"]
                .into_iter()
                // ISO 8601 and its extensions have more forms than RFC 3339.
                .chain(["20250709T043818Z", "2025-07-09T04:38Z", "2025-07-09T04:38:18", "2025-07-09T04:38:18Z[UTC]"])
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
