//! Checks affiliate fees before they are sent (`docs/spec/service.md#affiliates`).

use countersign::wire::AffiliateFee;
use countersign::{Code, Refusal};

use crate::error::Error;

/// 100 %, in basis points.
const WHOLE: u64 = 10_000;

/// Returns the fee if it is at most 10000 basis points.
pub(crate) fn basis_points(fee: u64, at: &str) -> Result<u64, Error> {
    if fee <= WHOLE {
        return Ok(fee);
    }
    Err(Error::Input(Refusal::new(Code::NumberTooLarge, at).with_expected("at most 10000 basis points").with_actual(fee)))
}

/// Checks that each fee and their sum are at most 10000 basis points, because all are taken from one amount.
pub(crate) fn check(fees: &[AffiliateFee]) -> Result<(), Error> {
    let mut all = 0_u64;
    for (index, fee) in fees.iter().enumerate() {
        all = all.saturating_add(basis_points(fee.fee, &format!("/affiliate_fees/{index}/fee"))?);
    }
    basis_points(all, "/affiliate_fees").map(drop)
}
