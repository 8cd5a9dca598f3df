//! Reads the receipts of transactions.

use alloy_primitives::{B256, hex};
use countersign_core::json::Members;
use countersign_core::reader::{Agree, Ask, Fault, Identity, Known, Question, Replies, Reply, Request};
use countersign_core::{BlockHeight, Code, Refusal};
use serde_json::json;

use super::{OnChain, View, contradiction, count, hash, post, value};

/// The outcome of a transaction in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The height of its block.
    pub block: BlockHeight,
    /// Whether it succeeded. A transaction that reverted or ran out of energy is in a block too.
    pub success: bool,
    /// Whether the block is irreversible (solidified).
    pub is_final: bool,
}

/// The receipt of a transaction; `None` while it is not in a block. Endpoints must agree on block and success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a receipt or none")]
pub struct Included(pub Option<Receipt>);

impl Agree for Included {
    type Key = Option<(BlockHeight, bool)>;

    fn key(&self) -> Self::Key {
        self.0.map(|receipt| (receipt.block, receipt.success))
    }
}

/// Reads the receipt of the transaction with this id.
pub type Status = Ask<OnChain<B256>>;

impl Question for OnChain<B256> {
    type Output = Included;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        requests(self.subject)
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Included, Fault> {
        read(replies, self.subject)
    }
}

/// Creates the requests for the receipt of a transaction in both views.
pub(super) fn requests(id: B256) -> Vec<Request> {
    let ask = |view| post(view, "gettransactioninfobyid", &json!({"value": hex::encode(id)}));
    vec![ask(View::Irreversible), ask(View::Newest)]
}

/// Reads the receipt of a transaction from both views, which must not contradict each other.
pub(super) fn read(replies: &Replies<'_>, id: B256) -> Result<Included, Fault> {
    let read = |index, is_final| Ok::<_, Fault>(Included(read_receipt(&replies.get(index)?, id, is_final)?));
    let (solid, newest) = (read(0, true)?, read(1, false)?);
    if solid.0.is_some() && newest.0.is_some() && solid.key() != newest.key() {
        return Err(contradiction("/blockNumber", "the receipts of the transaction contradict each other").into());
    }
    Ok(if solid.0.is_some() { solid } else { newest })
}

/// Reads the receipt in one view; `None` if the node does not have it.
fn read_receipt(reply: &Reply<'_>, id: B256, is_final: bool) -> Result<Option<Receipt>, Fault> {
    let cursor = value(reply)?;
    let members = cursor.object()?;
    let Some(named) = members.get("id") else { return Ok(None) };
    if hash(&named)? != id.0 {
        return Err(named.refuse(Code::TransactionMismatch).with_expected(hex::encode(id)).into());
    }
    let block = count(members.get("blockNumber"))?;
    if block == 0 {
        return Err(contradiction("/blockNumber", "the receipt does not name a block").into());
    }
    Ok(Some(Receipt { block: block.into(), success: has_succeeded(&members)?, is_final }))
}

/// Returns whether a transaction succeeded. A failure is marked in one of two places. The result of a contract call is always present.
pub(super) fn has_succeeded(members: &Members<'_, '_>) -> Result<bool, Refusal> {
    let receipt = members.need("receipt")?;
    let result = receipt.object()?.get("result").map(|result| result.text()).transpose()?;
    let failed = members.get("result").map(|result| result.text()).transpose()? == Some("FAILED");
    Ok(!failed && result == Some("SUCCESS"))
}
