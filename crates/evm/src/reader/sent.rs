//! A transaction that was sent, with its signature.

use alloy_consensus::TxEnvelope;
use alloy_primitives::B256;
use countersign_core::Refusal;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Judged, Known, Question, Replies, Request};
use serde_json::json;

use super::OnChain;
use crate::received;

/// The transaction with this id, which is the hash of its content and signature. An endpoint can withhold it, or claim that it has a type
/// that is not read; it cannot change it.
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
        Judged::found(received::read(&cursor.object()?), self.subject.0, |read| Some(*read?.tx_hash()))
    }
}
