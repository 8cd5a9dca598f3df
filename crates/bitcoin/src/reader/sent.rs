//! A transaction that was sent.

use bitcoin::{Transaction, Txid};
use countersign_core::Refusal;
use countersign_core::reader::{Equal, Fault, Identity, Judged, Known, Machine, Replies, Reply, Request, Turn};

use super::{OnChain, esplora, rpc};
use crate::received;

/// The transaction with this id, which is the hash of everything but the witnesses: that endpoints must agree protects these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct SentTransaction(pub Txid);

/// Reads the transaction with an id; `None` if the endpoint does not know it. A node's own RPC finds mined transactions only if it has a
/// transaction index (`-txindex=1`).
#[derive(Debug)]
pub struct Sent {
    subject: OnChain<SentTransaction>,
    known: Known,
}

impl Machine for Sent {
    type Subject = OnChain<SentTransaction>;
    type Output = Judged<Equal<Option<Transaction>>>;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &OnChain<SentTransaction>, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let txid = subject.subject.0;
        let request = if known.is_rpc() { rpc::transaction(txid, None) } else { esplora::raw(txid) };
        Ok((Self { subject: subject.clone(), known: known.clone() }, vec![request]))
    }

    fn identity(&self) -> Identity {
        self.subject.chain.identity(self.known.is_rpc())
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Self::Output>, Fault> {
        let (reply, txid) = (replies.get(0)?, self.subject.subject.0);
        let bytes = match &reply {
            Reply::Status { status: 404, .. } => None,
            _ if self.known.is_rpc() => rpc::read_raw(&reply)?,
            _ => Some(reply.bytes()?.to_vec()),
        };
        let Some(bytes) = bytes else { return Ok(Turn::Done(Judged::unknown())) };
        // Every transaction of the chain can be decoded, so other bytes are the fault of the endpoint.
        let transaction = received::from_bytes(&bytes)?;
        Ok(Turn::Done(Judged::found(Ok(transaction), txid, |read| Some(read?.compute_txid()))?))
    }
}
