//! Cases with one change that a wallet must refuse, and the code that names the change.

use countersign_core::Code;
use countersign_solana::Solana;
use countersign_testkit::{TestResult, hostile};

/// The published cases, each with the code that it must meet.
const PUBLISHED: [(&str, Code); 11] = [
    ("extra_system_transfer", Code::UnexpectedInstruction),
    ("other_program", Code::UnknownContract),
    ("fee_payer_not_owner", Code::UnexpectedSigner),
    ("amount_changed", Code::AmountMismatch),
    ("durable_nonce", Code::UnexpectedInstruction),
    ("lookup_table", Code::LookupTable),
    ("trailing_bytes", Code::TransactionTrailing),
    ("signature_count_mismatch", Code::SignatureSlots),
    ("spl_approve_appended", Code::UnexpectedInstruction),
    ("gasless_amount_changed", Code::AmountMismatch),
    ("missing_order_id", Code::MissingField),
];

#[test]
fn published_hostile_cases_are_refused() -> TestResult {
    hostile::published_cases_are_refused::<Solana>(&PUBLISHED)
}
