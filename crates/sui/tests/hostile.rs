//! Cases with one change that a wallet must refuse, and the code that names the change.

use countersign_core::Code;
use countersign_sui::Sui;
use countersign_testkit::{TestResult, hostile};

/// The published cases, each with the code that it must meet.
const PUBLISHED: [(&str, Code); 10] = [
    ("transfer_gas_coin", Code::UnexpectedCommand),
    ("other_package", Code::UnknownContract),
    ("amount_changed", Code::AmountMismatch),
    ("split_not_amount", Code::AmountMismatch),
    ("initiator_not_owner", Code::InitiatorMismatch),
    ("trailing_bytes", Code::KindMalformed),
    ("non_programmable_kind", Code::KindNotProgrammable),
    ("byte_above_255", Code::NumberTooLarge),
    ("other_function", Code::UnexpectedSelector),
    ("missing_order_id", Code::MissingField),
];

#[test]
fn published_hostile_cases_are_refused() -> TestResult {
    hostile::published_cases_are_refused::<Sui>(&PUBLISHED)
}
