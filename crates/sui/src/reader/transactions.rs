//! Sends transactions, and reads how they ended.

use std::fmt;

use countersign_core::reader::{Fault, Identity, Known, Machine, Replies, Request, RpcError, Sent, Submission, Turn};
use countersign_core::{Code, Refusal, text};
use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::{Digest, UserSignature};
use zeroize::Zeroizing;

use super::ask::{Equal, Question};
use super::fields::{effects, execution, execution_error, method, transaction};
use super::proto::{Message, Writer};
use super::{grpc, identity, objects};
use crate::sign::Execution;

/// The fields that are read of a transaction that was sent.
const EXECUTED: [&str; 3] = ["digest", "effects", "checkpoint"];

/// The outcome of a transaction in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The sequence number of its checkpoint.
    pub checkpoint: u64,
    /// Whether it succeeded. A transaction that failed has paid for its gas, and can never be executed again.
    pub success: bool,
}

/// Asks for the receipt of a transaction; `None` while it is not in a checkpoint.
#[derive(Debug, Clone, Copy)]
pub enum TransactionReceipt {}

impl Question for TransactionReceipt {
    type Subject = Digest;
    type Output = Equal<Option<Receipt>>;

    fn requests(id: &Digest) -> Vec<Request> {
        vec![objects::request_transaction(*id, &EXECUTED)]
    }

    fn read(id: &Digest, replies: &Replies<'_>, _: &Known) -> Result<Equal<Option<Receipt>>, Fault> {
        let Some(executed) = objects::read_transaction(&replies.get(0)?, *id)? else { return Ok(Equal(None)) };
        let success = failure(executed)?.is_none();
        Ok(Equal(executed.get(transaction::CHECKPOINT)?.map(|checkpoint| Receipt { checkpoint, success })))
    }
}

/// Returns the node's reason why a transaction failed; `None` if it succeeded.
pub(super) fn failure(executed: Message<'_>) -> Result<Option<String>, Fault> {
    let effects: Message<'_> = executed.need(transaction::EFFECTS)?;
    let status: Message<'_> = effects.need(effects::STATUS)?;
    if status.need(execution::SUCCESS)? {
        return Ok(None);
    }
    let error: Option<Message<'_>> = status.get(execution::ERROR)?;
    let words = error.map(|error| error.get(execution_error::DESCRIPTION)).transpose()?.flatten();
    Ok(Some(text::escape_untrusted(words.unwrap_or("no reason given"))))
}

/// A signed transaction, in the form in which nodes take it.
struct Outgoing {
    id: Digest,
    bytes: Zeroizing<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
}

impl fmt::Debug for Outgoing {
    /// Leaves out the bytes, because those of a redemption contain the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({})", self.id)
    }
}

impl Outgoing {
    /// Decodes the JSON form of an [`Execution`], and requires that it has the stored id.
    fn read(submission: &Submission) -> Result<Self, Refusal> {
        let signed = Execution::from_json(submission.payload.as_bytes()).map_err(|refusal| refusal.under("/payload"))?;
        let id = signed.transaction.digest();
        if submission.id != id.to_base58() {
            let refusal = Refusal::new(Code::TransactionMismatch, "/id").with_reason("the transaction has another id");
            return Err(refusal.with_expected(id.to_base58()).with_actual(&submission.id));
        }
        let bytes = signed.transaction.to_bcs().map_err(|_| Refusal::new(Code::Internal, "/payload/tx_bytes"))?;
        let signatures = signed.signatures.iter().map(UserSignature::to_bytes).collect();
        Ok(Self { id, bytes: Zeroizing::new(bytes), signatures })
    }

    fn request(&self) -> Request {
        let message = Writer::default().bytes(1, bcs(&self.bytes));
        let message = self.signatures.iter().fold(message, |message, signature| message.bytes(2, bcs(signature)));
        grpc::request(method::EXECUTE_TRANSACTION, &message.mask(3, &EXECUTED))
    }
}

/// Writes a transaction or a signature as its BCS bytes.
pub(super) fn bcs(bytes: &[u8]) -> Writer {
    Writer::default().bytes(1, Writer::default().bytes(2, bytes))
}

/// Sends a signed transaction to one endpoint. The payload is the JSON form of an [`Execution`].
///
/// The first round asks for the identity alone, so that no secret is sent to another chain. The second one sends. If the node does not
/// confirm that it has executed the transaction, a third one looks it up, because nodes report first that the coins are gone that the
/// transaction itself has spent. A transaction that was executed and failed is rejected.
#[derive(Debug)]
pub struct Broadcast {
    outgoing: Outgoing,
    identity: Identity,
    state: State,
}

#[derive(Debug)]
enum State {
    Identity,
    Sending,
    /// Why the node did not confirm the transaction.
    LookingUp(Fault),
}

impl Machine for Broadcast {
    type Subject = Submission;
    type Output = Sent;
    const MAX_ROUNDS: usize = 3;

    fn start(submission: &Submission, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (outgoing, identity) = (Outgoing::read(submission)?, identity(&submission.network)?);
        Ok((Self { outgoing, identity, state: State::Identity }, Vec::new()))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Sent>, Fault> {
        let id = self.outgoing.id;
        match &self.state {
            State::Identity => {
                self.state = State::Sending;
                Ok(Turn::Ask(vec![self.outgoing.request()]))
            }
            State::Sending => {
                let sent = grpc::read(&replies.get(0)?).and_then(|message| objects::requested(message, id)).and_then(outcome);
                match sent {
                    Ok(sent) => Ok(Turn::Done(sent)),
                    Err(fault) => {
                        self.state = State::LookingUp(fault);
                        Ok(Turn::Ask(vec![objects::request_transaction(id, &EXECUTED)]))
                    }
                }
            }
            State::LookingUp(fault) => match (objects::read_transaction(&replies.get(0)?, id)?, fault) {
                (Some(executed), _) => outcome(executed).map(Turn::Done),
                // Other errors concern the node: its limits and its faults.
                (None, Fault::Rpc(RpcError { code: grpc::INVALID_ARGUMENT | grpc::FAILED_PRECONDITION, message, .. })) => {
                    Ok(Turn::Done(Sent::Rejected(message.clone())))
                }
                (None, fault) => Err(fault.clone()),
            },
        }
    }
}

/// Returns what an executed transaction says about itself.
fn outcome(executed: Message<'_>) -> Result<Sent, Fault> {
    Ok(match failure(executed)? {
        None => Sent::Accepted,
        Some(why) => Sent::Rejected(format!("it was executed and failed: {why}")),
    })
}
