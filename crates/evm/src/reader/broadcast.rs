//! Sending a signed transaction.

use alloy_consensus::{Transaction as _, TxEnvelope};
use alloy_primitives::{B256, hex};
use countersign_core::reader::{self, Fault, Identity, Known, NotTaken, Reply, Request, Sending, Sent, Submission};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::{chain_id, hash};
use crate::received;

/// Sends a signed transaction to an endpoint.
///
/// The reader of a [`Submission`] whose payload is not a transaction of the chain with this id is refused with
/// [`Code::TransactionMismatch`].
pub type Broadcast = reader::Broadcast<Sender>;

/// A signed transaction that is to be sent.
#[derive(Debug)]
pub struct Sender {
    chain_id: u64,
    submission: Submission,
    id: B256,
}

impl Sending for Sender {
    fn decode(submission: &Submission, _: &Known) -> Result<Self, Refusal> {
        let (_, id) = decode(submission)?;
        Ok(Self { chain_id: chain_id(&submission.network)?, submission: submission.clone(), id })
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn send(&self) -> Request {
        let payload = self.submission.payload.as_str();
        Request::json_rpc("eth_sendRawTransaction", json!([format!("0x{}", payload.strip_prefix("0x").unwrap_or(payload))]))
    }

    fn read_sent(&self, reply: &Reply<'_>) -> Result<Result<Sent, NotTaken>, Fault> {
        match reply.json_or_error()? {
            Ok(cursor) if hash(&cursor)? == self.id => Ok(Ok(Sent::Accepted)),
            Ok(cursor) => Err(cursor.refuse(Code::TransactionMismatch).with_expected(self.id.to_string()).into()),
            // The codes that concern the transaction itself, in this order: Geth, EIP-1474, OpenEthereum and its successors, and an
            // execution that reverts. Others concern the node: its limits and its faults.
            Err(error) if matches!(error.code, -32_000 | -32_003 | -32_010 | 3) => Ok(Err(NotTaken::Invalid(error.message.clone()))),
            Err(error) => Ok(Err(NotTaken::Failed(Fault::Rpc(error.clone())))),
        }
    }

    fn find(&self) -> Request {
        Request::json_rpc("eth_getTransactionByHash", json!([self.id]))
    }

    fn read_found(&self, reply: &Reply<'_>) -> Result<Option<Sent>, Fault> {
        let cursor = reply.json()?;
        let is_known = !cursor.is_null() && hash(&cursor.object()?.need("hash")?)? == self.id;
        Ok(is_known.then_some(Sent::Accepted))
    }
}

/// Decodes a transaction that is to be sent, and requires that it belongs to the chain and has the stated id. Returns it with its id.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] below `/payload` or at `/id`, and another [`Refusal`] below `/payload` if it cannot be decoded.
pub fn decode(submission: &Submission) -> Result<(TxEnvelope, B256), Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(submission.payload.as_str()).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let envelope = received::from_bytes(&bytes).map_err(|refusal| refusal.with_prefix("/payload"))?;
    if envelope.chain_id() != Some(chain_id(&submission.network)?) {
        return Err(refuse("/payload", "the transaction belongs to another chain"));
    }
    let id = *envelope.tx_hash();
    if submission.id.parse() != Ok(id) {
        return Err(refuse("/id", "the transaction has another id").with_expected(id.to_string()).with_actual(&submission.id));
    }
    Ok((envelope, id))
}
