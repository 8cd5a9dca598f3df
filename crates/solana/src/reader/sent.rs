//! A transaction that was sent, with its signatures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::Network;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Judged, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use super::{identity, transactions};
use crate::received;
use crate::sign::is_signed_by;

/// The transaction with this id. The id is a signature of the content, which is proven, so an endpoint can withhold the transaction, but not
/// change what is signed. The id does not cover further signatures: that endpoints must agree protects them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct SentQuery {
    /// The cluster.
    pub network: Network,
    /// The first signature.
    pub id: Signature,
}

/// Reads the transaction with an id; `None` while the endpoint does not know it as finalized.
pub type Sent = Ask<SentQuery>;

impl Question for SentQuery {
    type Output = Judged<Equal<Option<VersionedTransaction>>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![transactions::by_id(&self.id.to_string())]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let cursor = replies.json(0)?;
        if cursor.is_null() {
            return Ok(Judged::unknown());
        }
        let payload = cursor.object()?.need("transaction")?;
        let part = payload.array()?.next().ok_or_else(|| payload.refuse(Code::MissingField))?;
        let bytes = STANDARD.decode(part.text()?).map_err(|_| part.at().refuse(Code::TransactionEncoding))?;
        // Every transaction of the chain can be decoded, so other bytes are the fault of the endpoint.
        let transaction = received::from_bytes(&bytes)?;
        let payer = transaction.message.static_account_keys().first();
        if !payer.is_some_and(|payer| is_signed_by(&self.id, payer, &transaction.message.serialize())) {
            let refusal = payload.at().refuse(Code::TransactionMismatch).with_expected(self.id.to_string());
            return Err(refusal.with_reason("the id is not the signature of this transaction's fee payer").into());
        }
        Judged::found(Ok(transaction), self.id, |read| read?.signatures.first().copied())
    }
}
