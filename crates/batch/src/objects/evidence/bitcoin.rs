//! Bitcoin and Litecoin: the payment to the HTLC's address, and the transaction that spends it.

use countersign::bitcoin::Chain;
use countersign::bitcoin::bitcoin::OutPoint;
use countersign::bitcoin::chain::{self, HtlcSpend};
use countersign::chains::Network;
use countersign::{Code, HtlcState, HtlcTerms, LockedHtlc, Refusal, U256};
use countersign_core::json::Members;

use super::MAX_ANSWER;

pub(super) fn state(terms: &HtlcTerms, network: &Network, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    members.only(&["txid", "output", "transaction", "depth", "spend"])?;
    let (Some(txid), Some(index), Some(raw)) = (members.get("txid"), members.get("output"), members.get("transaction")) else {
        return Ok(HtlcState::Absent);
    };
    let chain = Chain::from_network(network).ok_or_else(|| Refusal::new(Code::UnsupportedFamily, "/transaction"))?;
    let tree = chain::tree(terms, chain)?;
    let outpoint = OutPoint {
        txid: crate::bitcoin::read_txid(&txid)?,
        vout: u32::try_from(index.integer()?).map_err(|_| index.refuse(Code::NumberTooLarge))?,
    };
    let transaction = chain::parse_transaction(&crate::bitcoin::read_bytes(&raw, MAX_ANSWER)?, outpoint.txid)?;
    let output = usize::try_from(outpoint.vout).ok().and_then(|index| transaction.output.get(index));
    let Some(output) = output.filter(|output| output.script_pubkey == tree.script_pubkey()) else {
        return Err(index.refuse(Code::FundingMismatch).with_reason("this output does not pay the HTLC"));
    };
    if let Some(spend) = members.get("spend") {
        let spend = crate::bitcoin::read_transaction(&spend)?;
        let transaction = Some(spend.compute_txid().to_string());
        return Ok(match chain::read_spend(&tree, outpoint, &spend)? {
            HtlcSpend::Redeem(secret) => HtlcState::Redeemed { secret, transaction },
            HtlcSpend::Refund | HtlcSpend::InstantRefund => HtlcState::Refunded { transaction },
        });
    }
    let (initiator, redeemer) = (terms.initiator.clone(), terms.redeemer.clone());
    // What has passed of the timelock is the depth of the output (BIP-68).
    let elapsed = members.need("depth")?.integer()?;
    let locked = LockedHtlc::new(initiator, redeemer, U256::from(output.value.to_sat()), terms.timelock, elapsed);
    Ok(HtlcState::Locked(locked.with_secret_hash(terms.secret_hash)))
}
