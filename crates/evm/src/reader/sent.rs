//! A transaction that was sent, with its signature.

use alloy_consensus::TxEnvelope;
use alloy_primitives::B256;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Judged, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::OnChain;
use crate::received;

/// The transaction with this id. Its content follows from the id, so an endpoint can withhold it, but not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct SentTransaction(pub B256);

/// Reads the transaction with an id; `None` if the endpoint does not know it.
pub type Sent = Ask<OnChain<SentTransaction>>;

impl Question for OnChain<SentTransaction> {
    type Output = Judged<Equal<Option<TxEnvelope>>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![Request::json_rpc("eth_getTransactionByHash", json!([self.subject.0]))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let cursor = replies.json(0)?;
        if cursor.is_null() {
            return Ok(Judged::unknown());
        }
        let read = received::read(&cursor);
        if let Ok(envelope) = &read
            && *envelope.tx_hash() != self.subject.0
        {
            return Err(cursor.at().refuse(Code::TransactionMismatch).with_expected(self.subject.0.to_string()).into());
        }
        Judged::found(read)
    }
}
