//! Cases with one change that a wallet must refuse, and the code that names the change.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use countersign_core::Code;
use support::{Beside, TestResult, outcome};

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
    let cases = match support::beside("vectors/hostile-public.jsonl")? {
        Beside::Cases(cases) => cases,
        Beside::Absent(reason) => return support::skipped(&reason),
    };
    let mut left: Vec<_> = PUBLISHED.to_vec();
    for case in cases.iter().filter(|case| case.id.starts_with("bitcoin-")) {
        let mutation = case.line.split("\"mutation\":\"").nth(1).and_then(|rest| rest.split('"').next()).ok_or("no mutation")?;
        let refusal = outcome(case).expect_err(mutation);
        let index = left.iter().position(|(known, _)| *known == mutation).ok_or_else(|| format!("{mutation}: not in the list"))?;
        assert_eq!(refusal.code(), left.swap_remove(index).1, "{mutation}: {refusal}");
    }
    assert_eq!(left, [], "not among the published cases");
    Ok(())
}
