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

/// The transaction with this id. The id is a signature of it, which is proven, so an endpoint can withhold it, but not change it.
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
        let read = received::from_bytes(&bytes);
        if let Ok(transaction) = &read
            && transaction.signatures.first() != Some(&self.id)
        {
            return Err(payload.at().refuse(Code::TransactionMismatch).with_expected(self.id.to_string()).into());
        }
        Judged::found(read)
    }
}
