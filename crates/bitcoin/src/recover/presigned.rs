//! The instant refund that a record holds, presigned by the service.

use bitcoin::consensus::encode;
use bitcoin::{Transaction, Witness};
use countersign_core::chains::digits;
use countersign_core::{Code, Refusal};

use super::instant::{InstantRefund, parse, verify, without_witnesses};
use super::{Funding, RecordedHtlc};
use crate::address::Destination;
use crate::htlc::Leaf;

impl InstantRefund {
    /// Verifies the presigned instant refund of a record: it refunds all of the record's amount to the owner's address, and
    /// the initiator's signature in it is valid. Returns what it refunds.
    ///
    /// The slot of the redeemer may be empty, or hold a copy of the initiator's signature as a placeholder, or the redeemer's
    /// own valid signature. Anything else is refused.
    ///
    /// # Errors
    ///
    /// [`Code::InstantRefundMismatch`] at `/order/source_swap/instant_refund_tx`.
    pub fn verify_presigned(htlc: &RecordedHtlc, owner: impl Into<Destination>) -> Result<Self, Refusal> {
        let mismatch = |why: &'static str| htlc.refuse(Code::InstantRefundMismatch, "instant_refund_tx").with_reason(why);
        let owner = htlc.destination(&owner.into())?;
        let bytes = digits::bytes(&htlc.instant_refund_tx).ok().filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| mismatch("the record has no presigned refund in hex"))?;
        let found: Transaction = encode::deserialize(&bytes).map_err(|_| mismatch("these bytes are not a transaction"))?;
        if encode::serialize(&found) != bytes {
            return Err(mismatch("the transaction is not in its canonical form"));
        }
        let spent = found.input.iter().zip(&found.output);
        let fundings: Vec<_> = spent.map(|(input, output)| Funding::new(input.previous_output, output.value.to_sat())).collect();
        if htlc.funding.is_empty() {
            return Err(mismatch("the record names no funding transaction"));
        }
        let total = htlc.check_fundings(&fundings)?;
        let expected = if htlc.filled == 0 { htlc.amount } else { htlc.filled };
        if total != expected {
            return Err(mismatch("it refunds another amount").with_expected(expected).with_actual(total));
        }
        let refund = Self::from_parts(htlc, &fundings, &owner)?;
        if without_witnesses(&found) != refund.transaction {
            return Err(mismatch(
                "it is not the transaction that the record's terms give: version, locktime, sequences, outputs to the owner",
            ));
        }
        for (input, sighash) in found.input.iter().zip(&refund.sighashes) {
            refund.check_witness(&input.witness, sighash).map_err(mismatch)?;
        }
        Ok(refund)
    }

    fn check_witness(&self, witness: &Witness, sighash: &[u8; 32]) -> Result<(), &'static str> {
        let items: Vec<_> = witness.iter().collect();
        let [redeemer, initiator, script, control] = items.as_slice() else { return Err("the witness has another number of items") };
        let htlc = &self.htlc;
        if *script != htlc.tree.script(Leaf::InstantRefund).as_bytes() {
            return Err("the script is not the instant-refund leaf");
        }
        if **control != htlc.tree.control_block(Leaf::InstantRefund) {
            return Err("the control block is not the instant-refund leaf's");
        }
        let typed = |bytes: &[u8]| (bytes.len() == 65).then(|| parse(bytes)).flatten();
        let is_valid = |bytes: &[u8], key| typed(bytes).is_some_and(|signature| verify(&signature, sighash, key));
        if !is_valid(initiator, &htlc.initiator) {
            return Err("the initiator's signature is not valid");
        }
        if !redeemer.is_empty() && redeemer != initiator && !is_valid(redeemer, &htlc.redeemer) {
            return Err("the redeemer's slot holds neither a placeholder nor a valid signature");
        }
        Ok(())
    }
}
