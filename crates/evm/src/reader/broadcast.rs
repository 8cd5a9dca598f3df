//! Sending a signed transaction.

use std::fmt;

use alloy_consensus::{Transaction as _, TxEnvelope};
use alloy_primitives::{B256, hex};
use countersign_core::reader::{Fault, Identity, Known, Machine, Replies, Request, RpcError, Sent, Submission, Turn};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::{chain_id, complete, hash};
use crate::received;

/// Sends a signed transaction to an endpoint, after the endpoint has shown which chain it serves: the transaction may contain the secret.
/// If the endpoint refuses it, asks whether it is known already, because nodes then report that the nonce is too low.
///
/// The reader of a [`Submission`] whose payload is not a transaction of the chain with this id is refused with
/// [`Code::TransactionMismatch`].
pub struct Broadcast {
    chain_id: u64,
    payload: Submission,
    id: B256,
    stage: Stage,
}

/// What the last request asked for.
#[derive(Debug)]
enum Stage {
    /// The chain's identity alone.
    Identity,
    /// To take the transaction.
    Send,
    /// Whether the transaction is known, after this error.
    Find(RpcError),
    Done,
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broadcast({}, {:?})", self.id, self.stage)
    }
}

impl Machine for Broadcast {
    type Subject = Submission;
    type Output = Sent;
    const MAX_ROUNDS: usize = 3;

    fn start(submission: &Submission, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (_, id) = decode(submission)?;
        Ok((Self { chain_id: chain_id(&submission.network)?, payload: submission.clone(), id, stage: Stage::Identity }, Vec::new()))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Sent>, Fault> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Identity => {
                self.stage = Stage::Send;
                let payload = digits(&self.payload);
                Ok(Turn::Ask(vec![Request::json_rpc("eth_sendRawTransaction", json!([format!("0x{payload}")]))]))
            }
            Stage::Send => match replies.get(0)?.json_or_error()? {
                Ok(node) if hash(&node)? == self.id => Ok(Turn::Done(Sent::Accepted)),
                Ok(node) => Err(node.refuse(Code::TransactionMismatch).with_expected(self.id.to_string()).into()),
                Err(error) => {
                    self.stage = Stage::Find(error.clone());
                    Ok(Turn::Ask(vec![Request::json_rpc("eth_getTransactionByHash", json!([self.id]))]))
                }
            },
            Stage::Find(error) => {
                let node = replies.json(0)?;
                if !node.is_null() && hash(&node.object()?.need("hash")?)? == self.id {
                    return Ok(Turn::Done(Sent::Accepted));
                }
                if is_refusal(error.code) { Ok(Turn::Done(Sent::rejected(&error.message))) } else { Err(Fault::Rpc(error)) }
            }
            Stage::Done => Err(complete()),
        }
    }
}

/// Decodes a transaction that is to be sent, and requires that it belongs to the chain and has the stated id. Returns it with its id.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] below `/payload` or at `/id`, and another [`Refusal`] below `/payload` if it cannot be decoded.
pub fn decode(submission: &Submission) -> Result<(TxEnvelope, B256), Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(digits(submission)).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let envelope = received::from_bytes(&bytes).map_err(|refusal| refusal.under("/payload"))?;
    if envelope.chain_id() != Some(chain_id(&submission.network)?) {
        return Err(refuse("/payload", "the transaction belongs to another chain"));
    }
    let id = *envelope.tx_hash();
    if submission.id.parse() != Ok(id) {
        return Err(refuse("/id", "the transaction has another id").with_expected(id.to_string()).with_actual(&submission.id));
    }
    Ok((envelope, id))
}

/// Returns the payload without `0x`.
fn digits(submission: &Submission) -> &str {
    submission.payload.strip_prefix("0x").unwrap_or(&submission.payload)
}

/// Returns whether an error code concerns the transaction itself. Other codes concern the node: its limits and its faults.
const fn is_refusal(code: i64) -> bool {
    // In this order: Geth, EIP-1474, OpenEthereum and its successors, and an execution that reverts.
    matches!(code, -32_000 | -32_003 | -32_010 | 3)
}
