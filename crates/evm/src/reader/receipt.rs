//! The receipt of a transaction.

use alloy_primitives::B256;
use countersign_core::json::Node;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::{OnChain, hash, quantity};

/// The outcome of a mined transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The height of its block.
    pub block: u64,
    /// The hash of its block.
    pub hash: B256,
    /// Whether it succeeded. A transaction that reverted is mined too.
    pub success: bool,
}

/// The receipt of a transaction; `None` while it is not in a block. Endpoints must show the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a receipt or none")]
pub struct Included(pub Option<Receipt>);

impl Agree for Included {
    type Key = Option<Receipt>;

    fn key(&self) -> Self::Key {
        self.0
    }
}

/// Reads the receipt of the transaction with this id.
#[derive(Debug)]
pub struct Inclusion(OnChain<B256>);

impl Machine for Inclusion {
    type Subject = OnChain<B256>;
    type Output = Included;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &Self::Subject, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Ok((Self(*subject), vec![Request::json_rpc("eth_getTransactionReceipt", json!([subject.subject]))]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.0.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Included>, Fault> {
        Ok(Turn::Done(Included(read(&replies.json(0)?, self.0.subject)?)))
    }
}

fn read(node: &Node<'_, '_>, id: B256) -> Result<Option<Receipt>, Refusal> {
    if node.is_null() {
        return Ok(None);
    }
    let members = node.object()?;
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
    let (block, hash) = (quantity(&members.need("blockNumber")?)?, hash(&members.need("blockHash")?)?);
    Ok(Some(Receipt { block, hash, success }))
}
