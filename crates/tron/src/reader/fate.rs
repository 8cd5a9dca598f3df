//! What becomes of a transaction that was sent.

use std::fmt;

use alloy_primitives::B256;
use countersign_core::Refusal;
use countersign_core::reader::{self, Fault, Identity, Known, Replies, Request, Submission, Trace, Tracing};

use super::{Block, View, broadcast, chain_id, receipt};

/// How long after the expiration the newest irreversible block must be, in milliseconds: twenty blocks, by which the nodes behind one
/// address may differ.
const SLACK: u64 = 60_000;

/// Reads what becomes of a transaction.
///
/// It is dead if it has no receipt, although the newest irreversible block is a minute or more after its expiration. It is also dead if it
/// failed in an irreversible block.
pub type FateOf = reader::FateOf<Tracer>;

/// A transaction whose fate is read.
pub struct Tracer {
    chain_id: u64,
    id: B256,
    /// Unix milliseconds.
    expiration: u64,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({})", self.id)
    }
}

impl Tracing for Tracer {
    fn decode(submission: &Submission, _: &Known) -> Result<Self, Refusal> {
        let (chain_id, signed) = (chain_id(&submission.network)?, broadcast::decode(submission)?);
        Ok(Self { chain_id, id: signed.tx_id(), expiration: broadcast::expiration(&signed) })
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn find(&self) -> Vec<Request> {
        receipt::requests(self.id)
    }

    fn read_found(&self, replies: &Replies<'_>) -> Result<Trace, Fault> {
        Ok(match receipt::read(replies, self.id)?.0 {
            None => Trace::Unknown,
            Some(receipt) if receipt.success => Trace::Included,
            Some(receipt) if receipt.is_final => Trace::Failed(format!("it failed in the irreversible block {}", receipt.block)),
            Some(_) => Trace::Waiting,
        })
    }

    fn marks(&self) -> Vec<Request> {
        vec![Block::newest_request(View::Irreversible)]
    }

    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault> {
        let solid = Block::read_newest(&replies.get(0)?)?;
        // The next block is built on a block of that time or a later one, and contains nothing that has expired by then.
        Ok((solid.millis >= self.expiration.saturating_add(SLACK)).then(Vec::new))
    }

    fn read_proof(&mut self, _: &Replies<'_>) -> Result<Option<String>, Fault> {
        Ok(Some("it has expired, and is in no block".to_owned()))
    }
}
