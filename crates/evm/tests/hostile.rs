//! Cases with one change that a wallet must refuse, and the code that names the change.

use countersign_core::Code;
use countersign_evm::Evm;
use countersign_testkit::{TestResult, hostile};

/// The published cases, each with the code that it must meet.
const PUBLISHED: [(&str, Code); 20] = [
    ("initiate_to_not_htlc", Code::UnknownContract),
    ("approve_spender_not_htlc", Code::UnknownSpender),
    ("calldata_amount_not_request", Code::AmountMismatch),
    ("calldata_differs_from_typed_data", Code::PayloadsDisagree),
    ("chain_id_mismatch", Code::ChainMismatch),
    ("permit_primary_type", Code::TypedDataPrimaryType),
    ("trailing_calldata", Code::CalldataLength),
    ("initiate_selector_transfer", Code::UnknownContract),
    ("native_value_not_amount", Code::ValueMismatch),
    ("secret_hash_not_request", Code::SecretHashMismatch),
    ("status_not_ok", Code::ServiceError),
    ("missing_order_id", Code::MissingField),
    ("order_swap_id_wrong", Code::RecordSwapId),
    ("order_secret_revealed", Code::RecordSecretKnown),
    ("order_already_initiated", Code::RecordFunded),
    ("order_already_redeemed", Code::RecordRedeemed),
    ("order_destination_amount_less", Code::RecordPaysLess),
    ("order_destination_secret_hash", Code::RecordMismatch),
    ("order_destination_asset", Code::RecordMismatch),
    ("order_destination_outlasts_source", Code::RecordOutlastsSource),
];

#[test]
fn published_hostile_cases_are_refused() -> TestResult {
    hostile::published_cases_are_refused::<Evm>(&PUBLISHED)
}
