//! Checks affiliate fees before they are sent (`docs/spec/service.md#affiliates`).

use countersign::wire::AffiliateFee;

use crate::error::Error;

/// Returns basis points that are at most the whole amount.
pub(crate) fn basis_points(points: u64, at: &str) -> Result<u64, Error> {
    countersign::wire::basis_points(points, at).map_err(Error::Input)
}

/// Checks that each fee and their sum are at most 10000 basis points, because all are taken from one amount.
pub(crate) fn check(fees: &[AffiliateFee]) -> Result<(), Error> {
    let mut all = 0_u64;
    for (index, fee) in fees.iter().enumerate() {
        all = all.saturating_add(basis_points(fee.fee, &format!("/affiliate_fees/{index}/fee"))?);
    }
    basis_points(all, "/affiliate_fees").map(drop)
}
