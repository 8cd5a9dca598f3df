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
/// [`Code::FundingMismatch`](countersign::Code::FundingMismatch) if neither the record nor the caller names an output; [`Code::SighashMismatch`](countersign::Code::SighashMismatch) at `/hashes/<index>` if a hash
/// is of none of them, and the refusals of [`RecordedHtlc::new`] and [`InstantRefund::new`].
pub fn instant_refund(
    record: &OrderRecord,
    registry: &Registry,
    fundings: &[Funding],
    owner: &str,
    hashes: &[[u8; 32]],
) -> Result<InstantRefund, Refusal> {
    let htlc = RecordedHtlc::new(record, Leg::Source, registry)?;
    let named = match htlc.funding.as_slice() {
        [only] => Some(only.txid),
        _ => None,
    };
    let outputs = |txid| (0..MAX_OUTPUTS).map(move |index| Funding::new(OutPoint::new(txid, index), htlc.filled));
    let candidates = fundings.iter().copied().chain(named.into_iter().flat_map(outputs));
    let mut chosen = vec![None; hashes.len()];
    for candidate in candidates {
        if chosen.iter().all(Option::is_some) {
            break;
        }
        let refund = InstantRefund::new(&htlc, &[candidate], owner)?;
        for (chosen, hash) in chosen.iter_mut().zip(hashes) {
            if chosen.is_none() && refund.sighashes.contains(hash) {
                *chosen = Some(candidate);
            }
        }
    }
    let chosen: Option<Vec<_>> = chosen.into_iter().collect();
    // A hash of no known output is compared with what it should be.
    let expected = || if fundings.is_empty() { named.into_iter().flat_map(outputs).take(1).collect() } else { fundings.to_vec() };
    let refund = InstantRefund::new(&htlc, &chosen.filter(|chosen| !chosen.is_empty()).unwrap_or_else(expected), owner)?;
    let texts: Vec<_> = hashes.iter().map(hex::encode).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    refund.check_hashes(&texts).map_err(|refusal| refusal.with_prefix("/hashes"))?;
    Ok(refund)
}
