//! Recomputes the sighashes of an instant refund from the record, for [`crate::Flow::instant_refund`]
//! (`docs/spec/service.md#instant-refund`).

use countersign::bitcoin::bitcoin::OutPoint;
use countersign::bitcoin::recover::{Funding, InstantRefund, RecordedHtlc};
use countersign::json::At;
use countersign::{Code, Leg, OrderRecord, Refusal, Registry, report::Origin};

/// The number of outputs of a funding transaction that are searched for the deposit.
/// A standard transaction has 400,000 weight units and an output to such an address 172, so it has no more of them.
const MAX_OUTPUTS: u32 = 400_000 / 172;

/// Returns the refund to the address `owner` whose sighashes equal `hashes`, the ones that the service wants signed.
///
/// `fundings` are the outputs that hold the deposit. If none are given and the record names exactly one funding transaction, each of its
/// outputs is tried, because the record does not contain the output's index. A match is safe whichever output it is: the hash commits to a
/// refund of the whole deposit to the owner. A deposit in several outputs needs `fundings`: without them its hashes are refused, although
/// the service may be honest.
///
/// # Errors
///
/// [`Code::SighashMismatch`] at `/hashes/<index>` if a hash is not the recomputed one, and the refusals of [`RecordedHtlc::new`] and
/// [`InstantRefund::new`].
pub fn instant_refund(
    record: &OrderRecord,
    registry: &Registry,
    fundings: &[Funding],
    owner: &str,
    hashes: &[[u8; 32]],
) -> Result<InstantRefund, Refusal> {
    let htlc = RecordedHtlc::new(record, Leg::Source, registry)?;
    let texts: Vec<_> = hashes.iter().map(hex::encode).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let check = |fundings: &[Funding]| {
        let refund = InstantRefund::new(&htlc, fundings, owner)?;
        refund.check_hashes(&texts).map_err(|refusal| refusal.with_prefix("/hashes"))?;
        Ok(refund)
    };
    let ([], [only]) = (fundings, htlc.funding.as_slice()) else { return check(fundings) };
    let mut first = None;
    for index in 0..MAX_OUTPUTS {
        match check(&[Funding::new(OutPoint::new(only.txid, index), htlc.filled)]) {
            Ok(refund) => return Ok(refund),
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    Err(first.unwrap_or_else(|| At::of("/hashes", Origin::Service).refuse(Code::SighashMismatch)))
}
