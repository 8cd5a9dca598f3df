//! The presigned instant refund in an order record.

use bitcoin::consensus::encode;
use bitcoin::{Transaction, Witness};
use countersign_core::chains::digits;
use countersign_core::{Code, Refusal};

use super::instant::{InstantRefund, parse, without_witnesses};
use super::{Funding, RecordedHtlc};
use crate::address::Destination;
use crate::curve;
use crate::htlc::Leaf;
use crate::transaction::sum;

impl InstantRefund {
    /// Verifies the presigned instant refund of a record, and returns it. It must refund to the owner's address exactly the amount that has
    /// been paid according to the record, or the whole amount if the record's filled amount is zero. The initiator's signature must be
    /// valid.
    ///
    /// The redeemer's slot may be empty, contain a copy of the initiator's signature as a placeholder, or contain the redeemer's
    /// valid signature. Anything else is refused.
    ///
    /// # Errors
    ///
    /// [`Code::InstantRefundMismatch`] at `instant_refund_tx` of the leg; [`Code::FundingMismatch`] if its `initiate_tx_hash`
    /// cannot be read, or an output is spent twice; or the errors of [`Destination::script`] and [`Code::ChangeToDeposit`] for the
    /// owner's address.
    pub fn verify_presigned(htlc: &RecordedHtlc, owner: impl Into<Destination>) -> Result<Self, Refusal> {
        let mismatch = |why: &'static str| htlc.refuse(Code::InstantRefundMismatch, "instant_refund_tx").with_reason(why);
        let owner = htlc.destination(&owner.into())?;
        let bytes = htlc.instant_refund_tx.as_deref().and_then(|text| digits::bytes(text).ok()).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| mismatch("the record has no presigned refund in hex"))?;
        let found: Transaction = encode::deserialize(&bytes).map_err(|_| mismatch("the bytes are not a transaction"))?;
        if encode::serialize(&found) != bytes {
            return Err(mismatch("the transaction is not canonical"));
        }
        let spent = found.input.iter().zip(&found.output);
        let fundings: Vec<_> = spent.map(|(input, output)| Funding::new(input.previous_output, output.value)).collect();
        htlc.check_funding_txs()?;
        if htlc.funding.is_empty() {
            return Err(mismatch("the record has no funding transaction"));
        }
        htlc.check_fundings(&fundings)?;
        if let Some(other) = fundings.iter().find(|funding| !htlc.names(funding)) {
            let refusal = mismatch("it spends an output that does not belong to a funding transaction of the record");
            return Err(refusal.with_actual(other.outpoint.to_string()));
        }
        let total = sum(fundings.iter().map(|funding| funding.value));
        let expected = htlc.paid();
        if total != expected {
            return Err(mismatch("the transaction refunds another amount").with_expected(expected.to_sat()).with_actual(total.to_sat()));
        }
        let refund = Self::from_parts(htlc, &fundings, &owner)?;
        if without_witnesses(&found) != refund.transaction {
            return Err(mismatch("the version, locktime, sequences or outputs are not those of the record's refund to the owner"));
        }
        for (input, sighash) in found.input.iter().zip(&refund.sighashes) {
            refund.check_witness(&input.witness, sighash).map_err(mismatch)?;
        }
        Ok(refund)
    }

    fn check_witness(&self, witness: &Witness, sighash: &[u8; 32]) -> Result<(), &'static str> {
        let items: Vec<_> = witness.iter().collect();
        let [redeemer, initiator, script, control] = items.as_slice() else { return Err("the witness does not have four items") };
        let htlc = &self.htlc;
        if *script != htlc.tree.script(Leaf::InstantRefund).as_bytes() {
            return Err("the script is not the instant-refund leaf");
        }
        if **control != htlc.tree.control_block(Leaf::InstantRefund) {
            return Err("the control block is not that of the instant-refund leaf");
        }
        let typed = |bytes: &[u8]| (bytes.len() == 65).then(|| parse(bytes)).flatten();
        let is_valid = |bytes: &[u8], key| typed(bytes).is_some_and(|signature| curve::verify_schnorr(&signature, sighash, key));
        if !is_valid(initiator, &htlc.initiator) {
            return Err("the initiator's signature is not valid");
        }
        if !redeemer.is_empty() && redeemer != initiator && !is_valid(redeemer, &htlc.redeemer) {
            return Err("the redeemer's slot contains neither a placeholder nor a valid signature");
        }
        Ok(())
    }
}
