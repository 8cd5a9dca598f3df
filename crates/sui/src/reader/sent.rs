//! A transaction that was sent, with its signatures.

use countersign_core::reader::{Equal, Fault, Identity, Judged, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use sui_sdk_types::{Digest, SignedTransaction};

use super::fields::{bcs, encoded, transaction};
use super::proto::Message;
use super::transactions::failure;
use super::{On, identity, objects};
use crate::received::{self, MAX_SIGNATURES};
use crate::transaction::digest_of;

/// Asks for the transaction with this digest, which is the hash of what is signed; `None` if the endpoint does not know it. An endpoint can
/// withhold the transaction, but not change what is signed. The digest does not cover the signatures, and not how the transaction ended: that
/// endpoints must agree protects these.
///
/// A transaction that failed has paid for its gas and nothing else. It is refused with [`Code::TransactionMismatch`] at `/effects/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct SentTransaction(pub Digest);

impl Question for On<SentTransaction> {
    type Output = Judged<Equal<Option<SignedTransaction>>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![objects::request_transaction(self.subject.0, &["digest", "transaction.bcs", "signatures.bcs", "effects.status"])]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let Some(executed) = objects::read_transaction(&replies.get(0)?, self.subject.0)? else { return Ok(Judged::unknown()) };
        let bytes = encoding(executed.need(transaction::TRANSACTION)?)?;
        let signatures = executed.all(transaction::SIGNATURES, MAX_SIGNATURES)?;
        let signatures = signatures.into_iter().map(encoding).collect::<Result<Vec<_>, _>>()?;
        let read = received::from_parts(bytes, &signatures)?;
        let found = Judged::found(read, self.subject.0, |_| Some(digest_of(bytes)))?;
        Ok(match failure(executed)? {
            Some(why) if found.0.is_ok() => {
                let refusal = Refusal::new(Code::TransactionMismatch, "/effects/status");
                Judged(Err(refusal.with_reason(format!("the transaction failed: {why}"))))
            }
            _ => found,
        })
    }
}

/// Returns the BCS bytes of a transaction or a signature.
fn encoding<'a>(message: Message<'a>) -> Result<&'a [u8], Fault> {
    let found: Message<'a> = message.need(encoded::BCS)?;
    found.need(bcs::VALUE)
}
