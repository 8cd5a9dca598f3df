//! Sends transactions, and reads their status.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::Network;
use countersign_core::json::Node;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, RpcError, Sent, Submission, Turn};
use countersign_core::{Code, Refusal};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use zeroize::Zeroizing;

use super::{FINALIZED, identity};
use crate::read;

/// Decodes a transaction that is to be sent, and requires that it has the stated id. Returns it with its base64 form.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] at `/payload` or `/id`.
pub fn decode(submission: &Submission) -> Result<(VersionedTransaction, Zeroizing<String>), Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(submission.payload.as_bytes()).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let transaction = read::transaction(&bytes).ok_or_else(|| refuse("/payload", "the bytes are not one transaction"))?;
    let id = transaction.signatures.first().map(ToString::to_string).unwrap_or_default();
    if submission.id != id {
        return Err(refuse("/id", "the transaction has another id").with_expected(id).with_actual(&submission.id));
    }
    Ok((transaction, Zeroizing::new(STANDARD.encode(bytes))))
}

/// Sends a transaction to one endpoint, without a simulation or retries by the node. If the node refuses it, reads whether it is on chain
/// already.
///
/// The first round only asks for the identity, so that no transaction is sent to another chain.
pub struct Broadcast {
    identity: Identity,
    id: String,
    /// The transaction in base64.
    payload: Zeroizing<String>,
    step: Step,
}

impl fmt::Debug for Broadcast {
    /// Leaves out the payload, because that of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broadcast({}, {:?})", self.id, self.step)
    }
}

#[derive(Debug)]
enum Step {
    Identity,
    Send,
    /// The node refused the transaction.
    LookUp(RpcError),
}

impl Machine for Broadcast {
    type Subject = Submission;
    type Output = Sent;
    const MAX_ROUNDS: usize = 3;

    fn start(submission: &Submission, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (identity, (_, payload)) = (identity(&submission.network)?, decode(submission)?);
        Ok((Self { identity, id: submission.id.clone(), payload, step: Step::Identity }, Vec::new()))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Sent>, Fault> {
        let Self { id, payload, .. } = self;
        match &self.step {
            Step::Identity => {
                self.step = Step::Send;
                let options = r#"{"encoding":"base64","skipPreflight":true,"maxRetries":0}"#;
                Ok(Turn::Ask(vec![Request::json_rpc("sendTransaction", format!(r#"["{}",{options}]"#, payload.as_str()))]))
            }
            Step::Send => match replies.get(0)?.json_or_error()? {
                Ok(node) if node.text()? == id => Ok(Turn::Done(Sent::Accepted)),
                Ok(node) => Err(node.refuse(Code::TransactionMismatch).with_expected(id.as_str()).into()),
                Err(error) => {
                    self.step = Step::LookUp(error.clone());
                    Ok(Turn::Ask(vec![statuses(id)]))
                }
            },
            // The transaction may be on chain already.
            Step::LookUp(error) => match read_status(&replies.json(0)?)? {
                Some(_) => Ok(Turn::Done(Sent::Accepted)),
                None if is_refusal(error.code) => Ok(Turn::Done(Sent::Rejected(error.message.clone()))),
                None => Err(Fault::Rpc(error.clone())),
            },
        }
    }
}

/// Returns whether an error code concerns the transaction itself. Other codes concern the node: its limits and its faults.
const fn is_refusal(code: i64) -> bool {
    // In this order: failed simulation, invalid signature, failed precompile, parameters that are not a transaction.
    matches!(code, -32_002 | -32_003 | -32_006 | -32_602)
}

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionStatus {
    /// The transaction is in a block.
    Landed {
        /// The slot of the block.
        slot: u64,
        /// Whether it succeeded. A transaction that failed has paid its fee.
        success: bool,
        /// Whether the block is finalized.
        is_finalized: bool,
    },
    /// The transaction is not in a block, and its blockhash is still valid.
    Pending,
    /// The transaction is not in a block, and its blockhash is no longer valid. It will never be mined.
    Expired,
}

impl TransactionStatus {
    /// Returns whether the transaction is in a finalized block.
    #[must_use]
    pub const fn is_finalized(&self) -> bool {
        matches!(self, Self::Landed { is_finalized: true, .. })
    }
}

impl Agree for TransactionStatus {
    type Key = Self;

    /// Returns the status without what differs between endpoints at different heights: whether the block is finalized.
    fn key(&self) -> Self {
        match *self {
            Self::Landed { slot, success, .. } => Self::Landed { slot, success, is_finalized: false },
            other => other,
        }
    }
}

/// Which transaction is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusQuery {
    network: Network,
    id: Signature,
    last_valid_block_height: u64,
}

impl StatusQuery {
    /// Creates the query for a transaction. `last_valid_block_height` is the block height up to which its blockhash is valid.
    #[must_use]
    pub fn new(network: &Network, id: Signature, last_valid_block_height: u64) -> Self {
        Self { network: network.clone(), id, last_valid_block_height }
    }
}

/// Reads the status of a transaction.
#[derive(Debug)]
pub struct Status {
    identity: Identity,
    last_valid_block_height: u64,
}

impl Machine for Status {
    type Subject = StatusQuery;
    type Output = TransactionStatus;
    const MAX_ROUNDS: usize = 1;

    fn start(query: &StatusQuery, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let height = Request::json_rpc("getBlockHeight", format!(r#"[{{"commitment":"{FINALIZED}"}}]"#));
        let machine = Self { identity: identity(&query.network)?, last_valid_block_height: query.last_valid_block_height };
        Ok((machine, vec![statuses(&query.id.to_string()), height]))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<TransactionStatus>, Fault> {
        let height = replies.json(1)?.integer()?;
        Ok(Turn::Done(match read_status(&replies.json(0)?)? {
            Some(landed) => landed,
            // The height is that of a finalized block, which no block with the transaction can replace.
            None if height > self.last_valid_block_height => TransactionStatus::Expired,
            None => TransactionStatus::Pending,
        }))
    }
}

fn statuses(id: &str) -> Request {
    Request::json_rpc("getSignatureStatuses", format!(r#"[["{id}"],{{"searchTransactionHistory":true}}]"#))
}

/// Reads the status of one transaction; `None` if the endpoint does not know it.
fn read_status(node: &Node<'_, '_>) -> Result<Option<TransactionStatus>, Refusal> {
    let members = node.object()?;
    let value = members.need("value")?;
    let mut all = value.array()?;
    let (Some(status), None) = (all.next(), all.next()) else { return Err(value.at().refuse(Code::WrongType).with_expected("one status")) };
    if status.is_null() {
        return Ok(None);
    }
    let members = status.object()?;
    let is_finalized = match members.get("confirmationStatus") {
        Some(mark) => mark.text()? == FINALIZED,
        None => false,
    };
    let (slot, success) = (members.need("slot")?.integer()?, members.get("err").is_none());
    Ok(Some(TransactionStatus::Landed { slot, success, is_finalized }))
}
