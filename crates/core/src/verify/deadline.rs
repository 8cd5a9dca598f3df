//! Checks that there is still time to pay: compares the record's deadline with a time that the caller gives.

use std::time::Duration;

use countersign_chains::UnixTime;

use crate::json::At;
use crate::report::{Code, Refusal};
use crate::trust::Chain;
use crate::wire::{OrderRecord, RecordTime, format_time};

/// By how much two clocks may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(600);

/// Requires that a payment made at `now` can be confirmed before the order's deadline. That is the record's
/// own deadline, else six hours after creation for a Bitcoin source and one hour for any other. `at` is the location of the record.
///
/// # Errors
///
/// [`Code::OrderExpired`], [`Code::DeadlineTooClose`], [`Code::CreatedInFuture`], [`Code::TimeMalformed`], or
/// [`Code::MissingField`] if the record has neither a deadline nor a time of creation.
pub(crate) fn check(record: &OrderRecord, at: &At<'_>, source: &Chain, now: UnixTime) -> Result<(), Refusal> {
    let refuse = |code, member: &str| at.refuse_below(code, &format!("/{member}"));
    let parse = |member, time: &RecordTime| time.time().ok_or_else(|| refuse(Code::TimeMalformed, member).with_actual(time.as_str()));
    let created = record.created_at.as_ref().map(|time| parse("created_at", time)).transpose()?;
    if let Some(created) = created.filter(|created| *created > now.saturating_add(CLOCK_SKEW)) {
        return Err(refuse(Code::CreatedInFuture, "created_at")
            .with_expected(format!("not after {}", format_time(now)))
            .with_actual(format_time(created)));
    }
    let (deadline, member) = match (&record.deadline, created) {
        (Some(time), _) => (parse("deadline", time)?, "deadline"),
        (None, Some(created)) => (created.saturating_add(source.profile.payment_window), "created_at"),
        (None, None) => return Err(refuse(Code::MissingField, "created_at")),
    };
    let left = deadline.saturating_duration_since(now).as_secs();
    if left == 0 {
        return Err(refuse(Code::OrderExpired, member)
            .with_expected(format!("before {}", format_time(deadline)))
            .with_actual(format_time(now)));
    }
    let needed = source.confirmation_time(record.source_swap.required_confirmations).as_secs();
    if left < needed {
        return Err(refuse(Code::DeadlineTooClose, member)
            .with_expected(format!("at least {needed} s before {}", format_time(deadline)))
            .with_actual(format!("{left} s")));
    }
    Ok(())
}
