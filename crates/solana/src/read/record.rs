//! Transactions in the JSON form of `getTransaction`.

use countersign_core::json::Cursor;
use countersign_core::{Code, Refusal};

use super::effect::TransactionEffect;
use super::transaction::TransactionRecord;

/// A transaction that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainTransaction {
    /// Its id: the first signature, in base58.
    pub signature: String,
    /// The slot of its block.
    pub slot: u64,
    /// What it did.
    pub record: TransactionRecord,
}

impl ChainTransaction {
    /// Decodes the answer to `getTransaction`.
    ///
    /// # Errors
    ///
    /// [`Refusal`] at the member that is missing or malformed, or that says that the transaction failed.
    pub fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let slot = cursor.object()?.need("slot")?.integer()?;
        let effect = TransactionEffect::read(cursor)?;
        if !effect.is_success {
            let refusal = cursor.at().key("meta").key("err").refuse(Code::TransactionMismatch);
            return Err(refusal.with_reason("the transaction failed"));
        }
        let instructions = effect.instructions.into_iter().map(|executed| executed.instruction).collect();
        Ok(Self { signature: effect.signature.to_string(), slot, record: TransactionRecord::new(instructions) })
    }
}
