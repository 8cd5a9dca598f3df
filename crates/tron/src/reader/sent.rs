//! A transaction that was sent, with its signature.

use alloy_primitives::{B256, hex};
use countersign_core::Refusal;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Judged, Known, Question, Replies, Request};
use serde_json::json;

use super::{OnChain, View, post, value};
use crate::SignedTronTransaction;

/// The transaction with this id, which is the hash of what is signed. An endpoint can withhold the transaction, but not change what is
/// signed. The id does not cover the signatures: that endpoints must agree protects them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct SentTransaction(pub B256);

/// Reads the transaction with an id; `None` if the endpoint does not know it.
pub type Sent = Ask<OnChain<SentTransaction>>;

impl Question for OnChain<SentTransaction> {
    type Output = Judged<Equal<Option<SignedTronTransaction>>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![post(View::Newest, "gettransactionbyid", &json!({"value": hex::encode(self.subject.0)}))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let cursor = value(&replies.get(0)?)?;
        // Nodes answer with an empty object if they do not know the transaction.
        if cursor.object()?.keys().next().is_none() {
            return Ok(Judged::unknown());
        }
        let (id, read) = SignedTronTransaction::read_sent(&cursor)?;
        Judged::found(read, hex::encode(self.subject.0), |_| Some(hex::encode(id)))
    }
}
