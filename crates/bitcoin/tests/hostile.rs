//! Cases with one change that a wallet must refuse, and the code that names the change.

use countersign_bitcoin::Bitcoin;
use countersign_core::Code;
use countersign_testkit::{TestResult, hostile};

/// The published cases, each with the code that it must meet.
const PUBLISHED: [(&str, Code); 10] = [
    ("address_other_network", Code::AddressNetwork),
    ("bad_checksum", Code::AddressChecksum),
    ("amount_not_request", Code::AmountMismatch),
    ("not_taproot", Code::NotTaproot),
    ("address_not_derived", Code::AddressNotDerived),
    ("order_timelock_changed", Code::AddressNotDerived),
    ("order_secret_hash_not_request", Code::SecretHashMismatch),
    ("amount_exponent", Code::DecimalExponent),
    ("insufficient_funds", Code::InsufficientFunds),
    ("missing_order_id", Code::MissingField),
];

#[test]
fn published_hostile_cases_are_refused() -> TestResult {
    hostile::published_cases_are_refused::<Bitcoin>(&PUBLISHED)
}
