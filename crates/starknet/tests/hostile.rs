//! Cases with one change that a wallet must refuse, and the code that names the change.

use countersign_core::Code;
use countersign_starknet::Starknet;
use countersign_testkit::{TestResult, hostile};

/// The published cases, each with the code that it must meet.
const PUBLISHED: [(&str, Code); 10] = [
    ("selector_changed", Code::UnexpectedSelector),
    ("calldata_too_long", Code::CalldataLength),
    ("felt_not_below_prime", Code::FeltOutOfRange),
    ("initiate_other_contract", Code::UnknownContract),
    ("approve_spender_not_htlc", Code::UnknownSpender),
    ("amount_words_swapped", Code::AmountMismatch),
    ("typed_data_chain", Code::ChainMismatch),
    ("amount_not_request", Code::AmountMismatch),
    ("secret_hash_word_overflow", Code::NumberTooLarge),
    ("missing_order_id", Code::MissingField),
];

#[test]
fn published_hostile_cases_are_refused() -> TestResult {
    hostile::published_cases_are_refused::<Starknet>(&PUBLISHED)
}
