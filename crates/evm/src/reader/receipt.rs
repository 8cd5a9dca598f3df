//! The receipt of a transaction.

use alloy_primitives::B256;
use countersign_core::json::Cursor;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Code, Refusal};
use serde_json::json;

use super::{OnChain, hash, quantity};
use crate::received::{self, CallsStatus};

/// The outcome of a mined transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The height of its block.
    pub block: BlockHeight,
    /// The hash of its block.
    pub hash: B256,
    /// Whether it succeeded. A transaction that reverted is mined too.
    pub success: bool,
}

/// Reads the receipt of the transaction with this id; `None` while it is not in a block.
pub type Status = Ask<OnChain<B256>>;

impl Question for OnChain<B256> {
    type Output = Equal<Option<Receipt>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![request(self.subject)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        Ok(Equal(read(&replies.json(0)?, self.subject)?))
    }
}

/// The transaction whose effect is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct EffectOf(pub B256);

/// Reads what the transaction with an id did, which may be that of a bundler or a relay; `None` if the endpoint has no receipt of it. What it
/// means for an order, [`Deposit::find_payment`](crate::Deposit::find_payment) says.
pub type Effect = Ask<OnChain<EffectOf>>;

impl Question for OnChain<EffectOf> {
    type Output = Equal<Option<CallsStatus>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![request(self.subject.0)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let cursor = replies.json(0)?;
        // It has the id of the transaction, and a block.
        let Some(_) = read(&cursor, self.subject.0)? else { return Ok(Equal(None)) };
        Ok(Equal(Some(received::of_receipt(&cursor)?)))
    }
}

/// Creates the request for the receipt of a transaction.
pub(super) fn request(id: B256) -> Request {
    Request::json_rpc("eth_getTransactionReceipt", json!([id]))
}

/// Reads the receipt of a transaction; `None` if it is not in a block.
pub(super) fn read(cursor: &Cursor<'_, '_>, id: B256) -> Result<Option<Receipt>, Refusal> {
    if cursor.is_null() {
        return Ok(None);
    }
    let members = cursor.object()?;
    let of = members.need("transactionHash")?;
    if hash(&of)? != id {
        return Err(of.refuse(Code::TransactionMismatch).with_expected(id.to_string()));
    }
    let status = members.need("status")?;
    let success = match quantity(&status)? {
        0 => false,
        1 => true,
        _ => return Err(status.refuse(Code::NumberTooLarge).with_expected("0 or 1")),
    };
    let (block, hash) = (quantity(&members.need("blockNumber")?)?.into(), hash(&members.need("blockHash")?)?);
    Ok(Some(Receipt { block, hash, success }))
}
