//! The hashes of an instant refund, computed again from the record: what [`crate::Flow::instant_refund`] may sign.

use countersign::bitcoin::recover::{Funding, InstantRefund, Leg, Swap};
use countersign::wire::OrderRecord;
use countersign::{Code, Refusal, Registry};

/// Most outputs of a funding transaction that are searched for the deposit.
const OUTPUTS: u32 = 64;

/// The refund to `owner` whose hashes are exactly those that the service wants signed.
///
/// `fundings` are the outputs that hold the deposit. Where none are given and the record names one funding transaction,
/// its first 64 outputs are tried: the record does not say which it is, and a hash that is found binds the owner's refund
/// of the whole deposit in any case.
///
/// # Errors
///
/// [`Code::SighashMismatch`] if a hash is another, and whatever [`Swap::of`] and [`InstantRefund::new`] refuse.
pub fn instant_refund(
    record: &OrderRecord,
    registry: &Registry,
    fundings: &[Funding],
    owner: &str,
    hashes: &[[u8; 32]],
) -> Result<InstantRefund, Refusal> {
    let swap = Swap::of(record, Leg::Source, registry)?;
    let texts: Vec<_> = hashes.iter().map(hex::encode).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let check = |fundings: &[Funding]| {
        let refund = InstantRefund::new(&swap, fundings, owner)?;
        refund.check_hashes(&texts).map(|()| refund)
    };
    let ([], [only]) = (fundings, swap.funding.as_slice()) else { return check(fundings) };
    let mut first = None;
    for index in 0..OUTPUTS {
        let text = format!("{}:{index}:{}", only.txid, swap.filled);
        let funding = Funding::parse(&text).map_err(|code| Refusal::new(code, "/order/source_swap/initiate_tx_hash"))?;
        match check(&[funding]) {
            Ok(refund) => return Ok(refund),
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    Err(first.unwrap_or_else(|| Refusal::new(Code::SighashMismatch, "/hashes")))
}
