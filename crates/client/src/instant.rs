//! Recomputes the sighashes of an instant refund from the record, for [`crate::Flow::instant_refund`]
//! (`docs/spec/service.md#instant-refund`).

use countersign::bitcoin::bitcoin::OutPoint;
use countersign::bitcoin::recover::{Funding, InstantRefund, RecordedHtlc};
use countersign::{Leg, OrderRecord, Refusal, Registry};

/// The number of outputs of a funding transaction that are searched for the deposit.
/// A standard transaction has 400,000 weight units and an output to such an address 172, so it has no more of them.
const MAX_OUTPUTS: u32 = 400_000 / 172;

/// Returns the refund to the address `owner` whose sighashes equal `hashes`, the ones that the service wants signed.
///
/// `fundings` are outputs of the deposit, such as those that endpoints show; `hashes` may be about fewer of them, in any order. If the
/// record names exactly one funding transaction, each output of it is tried after them, because the record does not contain the output's
/// index. A match is safe whichever output it is: a hash commits to one output alone, and to a refund of all that it holds to the owner.
///
/// # Errors
///
/// The refusals of [`RecordedHtlc::new`] and of [`InstantRefund::of_hashes`].
pub fn instant_refund(
    record: &OrderRecord,
    registry: &Registry,
    fundings: &[Funding],
    owner: &str,
    hashes: &[[u8; 32]],
) -> Result<InstantRefund, Refusal> {
    let htlc = RecordedHtlc::new(record, Leg::Source, registry)?;
    let mut outputs = fundings.to_vec();
    if let [only] = htlc.funding.as_slice() {
        outputs.extend((0..MAX_OUTPUTS).map(|index| Funding::new(OutPoint::new(only.txid, index), htlc.paid())));
    }
    InstantRefund::of_hashes(&htlc, &outputs, owner, hashes)
}
