//! Checks affiliate fees before they are sent (`docs/spec/service.md#affiliates`).

use countersign::wire::{AffiliateFee, BasisPoints};

use crate::error::Error;

/// Checks that each fee and their sum are at most the whole amount, because all are taken from one amount.
pub(crate) fn check(fees: &[AffiliateFee]) -> Result<(), Error> {
    let mut all = BasisPoints::default();
    for (index, fee) in fees.iter().enumerate() {
        all = all.saturating_add(fee.fee.check(&format!("/affiliate_fees/{index}/fee")).map_err(Error::Input)?);
    }
    all.check("/affiliate_fees").map(drop).map_err(Error::Input)
}
