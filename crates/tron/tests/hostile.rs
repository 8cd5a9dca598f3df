//! Cases with one change that a wallet must refuse, and the code that names the change.

use countersign_core::Code;
use countersign_testkit::{TestResult, hostile};
use countersign_tron::Tron;

/// The published cases, each with the code that it must meet.
const PUBLISHED: [(&str, Code); 10] = [
    ("initiate_to_not_htlc", Code::UnknownContract),
    ("to_bad_checksum", Code::AddressChecksum),
    ("to_other_network_prefix", Code::AddressNetwork),
    ("destination_data_mismatch", Code::PayloadsDisagree),
    ("approve_spender_not_htlc", Code::UnknownSpender),
    ("calldata_amount_not_request", Code::AmountMismatch),
    ("chain_id_mismatch", Code::ChainMismatch),
    ("native_value_not_amount", Code::ValueMismatch),
    ("fee_limit_exponent", Code::DecimalExponent),
    ("bytes_offset_changed", Code::CalldataOffset),
];

#[test]
fn published_hostile_cases_are_refused() -> TestResult {
    hostile::published_cases_are_refused::<Tron>(&PUBLISHED)
}
