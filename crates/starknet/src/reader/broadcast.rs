//! Sends transactions, and reads their status.

use std::fmt;

use countersign_core::json::Cursor;
use countersign_core::reader::{
    Agree, Ask, Fault, Identity, Known, NotTaken, Question, Replies, Reply, Request, Sending, Sent, Submission,
};
use countersign_core::{Code, Refusal};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::{chain_id, check_version, hex, spec_version};
use crate::{InvokeTransaction, felt};

/// The code of an unknown transaction: TXN_HASH_NOT_FOUND.
pub(super) const UNKNOWN: i64 = 29;

/// Sends a transaction to an endpoint: see [`Broadcast`](countersign_core::reader::Broadcast). Nodes refuse a transaction that is already
/// in a block, because its nonce is then too low.
///
/// The payload of the submission is the transaction as JSON. Its hash on the chain must be the id.
pub type Broadcast = countersign_core::reader::Broadcast<SignedInvoke>;

/// A signed transaction, and the chain that it is sent to.
pub struct SignedInvoke {
    pub(super) chain_id: Felt,
    pub(super) id: Felt,
    pub(super) transaction: InvokeTransaction,
}

impl fmt::Debug for SignedInvoke {
    /// Leaves out the transaction, because the calldata of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedInvoke({})", hex(self.id))
    }
}

/// Decodes a transaction that is to be sent, and requires that it has the stated id on the chain.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] at `/id`, and another [`Refusal`] below `/payload` if it cannot be decoded.
pub fn decode(submission: &Submission) -> Result<InvokeTransaction, Refusal> {
    SignedInvoke::new(submission).map(|signed| signed.transaction)
}

impl SignedInvoke {
    pub(super) fn new(submission: &Submission) -> Result<Self, Refusal> {
        let chain_id = chain_id(&submission.network).ok_or_else(|| Refusal::new(Code::UnsupportedFamily, "/network"))?;
        let transaction = InvokeTransaction::from_json(submission.payload.as_bytes()).map_err(|refusal| refusal.with_prefix("/payload"))?;
        let id = transaction.hashes(chain_id).tx_hash;
        if felt::parse(&submission.id) != Ok(id) {
            let refusal = Refusal::new(Code::TransactionMismatch, "/id").with_reason("the transaction has another id on this chain");
            return Err(refusal.with_expected(hex(id)).with_actual(&submission.id));
        }
        Ok(Self { chain_id, id, transaction })
    }
}

impl Sending for SignedInvoke {
    fn decode(submission: &Submission, _: &Known) -> Result<Self, Refusal> {
        Self::new(submission)
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn before(&self) -> Option<Request> {
        Some(spec_version())
    }

    fn check(&self, reply: &Reply<'_>) -> Result<Option<NotTaken>, Fault> {
        check_version(reply).map(|()| None)
    }

    fn send(&self) -> Request {
        Request::json_rpc("starknet_addInvokeTransaction", json!({"invoke_transaction": self.transaction}))
    }

    fn read_sent(&self, reply: &Reply<'_>) -> Result<Result<Sent, NotTaken>, Fault> {
        let cursor = match reply.json_or_error()? {
            Ok(cursor) => cursor,
            Err(error) if is_refusal(error.code) => return Ok(Err(NotTaken::Invalid(error.message.clone()))),
            Err(error) => return Ok(Err(NotTaken::Failed(Fault::Rpc(error.clone())))),
        };
        let members = cursor.object()?;
        let hash = members.need("transaction_hash")?;
        if felt::read(hash)? != self.id {
            return Err(hash.refuse(Code::TransactionMismatch).with_expected(hex(self.id)).into());
        }
        Ok(Ok(Sent::Accepted))
    }

    fn find(&self) -> Request {
        status_of(self.id)
    }

    fn read_found(&self, reply: &Reply<'_>) -> Result<Option<Sent>, Fault> {
        Ok(TransactionStatus::read(reply)?.map(|_| Sent::Accepted))
    }
}

/// Returns whether an error code concerns the transaction itself. Other codes concern the node: its limits and its faults.
const fn is_refusal(code: i64) -> bool {
    // In this order: nonce, resources, balance, validation, no account, version, replacement underpriced, fee below the minimum.
    matches!(code, 52..=55 | 58 | 61 | 64 | 65)
}

/// How far a transaction has been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionStatus {
    /// The transaction is known, but not in a block that L2 has accepted.
    Pending,
    /// The transaction is in a block that L2 has accepted, which can still be replaced.
    AcceptedOnL2 {
        /// Whether it succeeded. A transaction that reverted is in a block too.
        success: bool,
    },
    /// The transaction is in a block that L1 has accepted, which is never replaced.
    AcceptedOnL1 {
        /// Whether it succeeded.
        success: bool,
    },
}

/// A transaction on a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct TransactionQuery {
    /// The chain id.
    pub chain_id: Felt,
    /// The transaction's hash.
    pub id: Felt,
}

/// What an endpoint shows of a transaction; `None` if it does not know the transaction. Endpoints must agree on whether it is known, in
/// a block, and succeeded. They may differ in whether L1 has accepted the block, because one may see that later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is a status or none")]
pub struct StatusShown(pub Option<TransactionStatus>);

impl StatusShown {
    /// Returns whether L1 has accepted the block of the transaction.
    #[must_use]
    pub const fn is_on_l1(&self) -> bool {
        matches!(self.0, Some(TransactionStatus::AcceptedOnL1 { .. }))
    }
}

impl Agree for StatusShown {
    type Key = Option<TransactionStatus>;

    fn key(&self) -> Self::Key {
        match self.0 {
            Some(TransactionStatus::AcceptedOnL1 { success }) => Some(TransactionStatus::AcceptedOnL2 { success }),
            other => other,
        }
    }
}

/// Reads the status of a transaction.
pub type Status = Ask<TransactionQuery>;

impl Question for TransactionQuery {
    type Output = StatusShown;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![spec_version(), status_of(self.id)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<StatusShown, Fault> {
        check_version(&replies.get(0)?)?;
        Ok(StatusShown(TransactionStatus::read(&replies.get(1)?)?))
    }
}

pub(super) fn status_of(id: Felt) -> Request {
    Request::json_rpc("starknet_getTransactionStatus", json!({"transaction_hash": hex(id)}))
}

impl TransactionStatus {
    /// Reads a status; `None` if the endpoint does not know the transaction.
    pub(super) fn read(reply: &Reply<'_>) -> Result<Option<Self>, Fault> {
        match reply.json_or_error()? {
            Ok(cursor) => Ok(Self::read_node(&cursor)?),
            Err(error) if error.code == UNKNOWN => Ok(None),
            Err(error) => Err(Fault::Rpc(error.clone())),
        }
    }

    fn read_node(cursor: &Cursor<'_, '_>) -> Result<Option<Self>, Refusal> {
        let members = cursor.object()?;
        let finality = members.need("finality_status")?;
        let success = || {
            let execution = members.need("execution_status")?;
            match execution.text()? {
                "SUCCEEDED" => Ok(true),
                "REVERTED" => Ok(false),
                _ => Err(execution.refuse(Code::WrongType).with_expected("SUCCEEDED or REVERTED")),
            }
        };
        Ok(match finality.text()? {
            "RECEIVED" | "CANDIDATE" | "PRE_CONFIRMED" => Some(Self::Pending),
            "ACCEPTED_ON_L2" => Some(Self::AcceptedOnL2 { success: success()? }),
            "ACCEPTED_ON_L1" => Some(Self::AcceptedOnL1 { success: success()? }),
            // A rejected transaction is not in a block and never will be.
            "REJECTED" => None,
            _ => return Err(finality.refuse(Code::WrongType).with_expected("a finality status")),
        })
    }
}
