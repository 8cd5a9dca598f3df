//! What a transaction did, also that of another account.

use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::broadcast::UNKNOWN;
use super::{check_version, hex, spec_version};
use crate::received::TransactionReceipt;

/// The transaction whose effect is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct EffectQuery {
    /// The chain id.
    pub chain_id: Felt,
    /// The transaction's hash.
    pub id: Felt,
}

/// Reads what the transaction with a hash did, which may be that of a paymaster; `None` if the endpoint does not know it, or not in a block.
/// What it means for an order, [`Deposit::find_payment`](crate::Deposit::find_payment) says.
pub type Effect = Ask<EffectQuery>;

impl Question for EffectQuery {
    type Output = Equal<Option<TransactionReceipt>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![spec_version(), Request::json_rpc("starknet_getTransactionReceipt", json!({"transaction_hash": hex(self.id)}))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        check_version(&replies.get(0)?)?;
        let cursor = match replies.get(1)?.json_or_error()? {
            Ok(cursor) => cursor,
            Err(error) if error.code == UNKNOWN => return Ok(Equal(None)),
            Err(error) => return Err(Fault::Rpc(error.clone())),
        };
        let receipt = TransactionReceipt::read(&cursor)?;
        if receipt.transaction_hash != self.id {
            let refusal = cursor.at().key("transaction_hash").refuse(Code::TransactionMismatch).with_expected(hex(self.id));
            return Err(refusal.with_actual(hex(receipt.transaction_hash)).into());
        }
        Ok(Equal(Some(receipt).filter(|receipt| receipt.is_in_block)))
    }
}
