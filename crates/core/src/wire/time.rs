//! Times, which the service writes in two forms.

use chrono::{DateTime, SecondsFormat};
use countersign_chains::UnixTime;
use serde::Serialize;

use crate::report::text::quoted;

/// The last second of the year 9999.
const LATEST: i64 = 253_402_300_799;

/// A time as an order record states it, in RFC 3339 or Unix seconds (`docs/spec/service.md#times`).
///
/// The text stays as it was written, because it is stored. What is shown is [`RecordTime::shown`]. A malformed time is refused only by
/// a rule that needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RecordTime(pub(super) String);

impl RecordTime {
    /// Returns the time; `None` if the text is malformed, as for [`parse_time`].
    #[must_use]
    pub fn time(&self) -> Option<UnixTime> {
        parse_time(&self.0)
    }

    /// Returns whether the record states nothing here, as the service does for what has not happened yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the time for display, in UTC. A malformed time is free text of the service and is quoted.
    #[must_use]
    pub fn shown(&self) -> String {
        self.time().map_or_else(|| quoted(&self.0), format_time)
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

/// Formats a time for display: RFC 3339 in UTC, or the plain number of seconds if it is beyond the year 9999.
#[must_use]
pub fn format_time(time: UnixTime) -> String {
    let seconds = time.as_secs();
    let time = i64::try_from(seconds).ok().filter(|seconds| *seconds <= LATEST).and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| seconds.to_string(), |time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_a_time_or_quoted() {
        // The seconds by GNU date.
        for (text, shown) in [
            ("1752035898", "2025-07-09T04:38:18Z"),
            ("2025-07-09T06:38:18.632122+02:00", "2025-07-09T04:38:18Z"),
            ("253402300799", "9999-12-31T23:59:59Z"),
            ("2025-07-09T04:38:18Z  get  1 BTC", "\"2025-07-09T04:38:18Z \\u{0020}get \\u{0020}1 BTC\""),
            ("soon", "\"soon\""),
        ] {
            assert_eq!(RecordTime(text.to_owned()).shown(), shown);
        }
        assert_eq!(format_time(UnixTime::MAX), u64::MAX.to_string());
    }

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
