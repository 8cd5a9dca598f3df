//! What becomes of a transaction that was sent.

use std::fmt;

use countersign_core::Refusal;
use countersign_core::reader::{self, Fault, Identity, Known, Replies, Request, Submission, Trace, Tracing};

use super::broadcast::{TransactionStatus, decode, read_status, statuses};
use super::context::{read_is_valid, request_is_valid};
use super::{FINALIZED, identity};
use crate::nonce::UsedNonce;
use crate::transaction::LIFE;

/// The number of finalized blocks after the first reading, after which a blockhash that is not valid has expired.
///
/// An endpoint also calls a blockhash invalid that is too new for it: its finalized block is older than the one that the blockhash comes
/// from, even more so if it falls behind. The first reading came after that block. The blockhash is valid for 150 blocks, so an endpoint
/// may be 450 blocks behind. One that is further behind has a head that is too old to be used.
const WAIT: u64 = 4 * LIFE;

/// Reads what becomes of a transaction.
///
/// It is dead if it is not in the history, and its blockhash is not valid at the newest finalized block, 600 blocks or more after the first
/// reading from this endpoint. It is also dead if it failed in a finalized block.
pub type FateOf = reader::FateOf<Tracer>;

/// A transaction whose fate is read.
pub struct Tracer {
    identity: Identity,
    id: String,
    blockhash: String,
    /// Whether it uses a nonce account in place of a blockhash, and therefore never expires.
    is_durable: bool,
    /// The height of the finalized block at the first reading from this endpoint.
    started: Option<u64>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({})", self.id)
    }
}

impl Tracing for Tracer {
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal> {
        let (identity, (transaction, _)) = (identity(&submission.network)?, decode(submission)?);
        let started = known.progress(&name(&submission.id)).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let blockhash = transaction.message.recent_blockhash().to_string();
        let is_durable = UsedNonce::of(&transaction.message).is_some();
        Ok(Self { identity, id: submission.id.clone(), blockhash, is_durable, started })
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn find(&self) -> Vec<Request> {
        vec![statuses(&self.id)]
    }

    fn read_found(&self, replies: &Replies<'_>) -> Result<Trace, Fault> {
        Ok(match read_status(&replies.json(0)?)? {
            Some(TransactionStatus::Landed { success: true, .. }) => Trace::Included,
            Some(TransactionStatus::Landed { is_finalized: true, slot, .. }) => {
                Trace::Failed(format!("it failed in the finalized slot {slot}"))
            }
            Some(_) => Trace::Waiting,
            None => Trace::Unknown,
        })
    }

    fn marks(&self) -> Vec<Request> {
        vec![Request::json_rpc("getBlockHeight", format!(r#"[{{"commitment":"{FINALIZED}"}}]"#))]
    }

    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault> {
        let height = replies.json(0)?.integer()?;
        let started = *self.started.get_or_insert(height);
        let has_waited = height >= started.saturating_add(WAIT);
        Ok((has_waited && !self.is_durable).then(|| vec![request_is_valid(&self.blockhash, FINALIZED)]))
    }

    fn read_proof(&mut self, replies: &Replies<'_>) -> Result<Option<String>, Fault> {
        let is_valid = read_is_valid(&replies.get(0)?)?;
        Ok((!is_valid).then(|| format!("its blockhash {} has expired, and it is in no block", self.blockhash)))
    }

    fn learned(&self) -> Known {
        self.started.map_or_else(Known::default, |started| Known::default().with_progress(name(&self.id), started.to_be_bytes()))
    }
}

/// Returns the name of what is remembered of a transaction.
fn name(id: &str) -> String {
    format!("fate {id}")
}
