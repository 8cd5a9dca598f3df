//! Sends transactions, and reads their status.

use std::fmt;

use countersign_core::json::Node;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Reply, Request, Sent, Submission, Turn};
use countersign_core::{Code, Refusal};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::{chain_id, check_version, hex, spec_version};
use crate::{InvokeTransaction, felt};

/// Sends a transaction to an endpoint, after the endpoint has shown which chain it serves. If the endpoint refuses it, the machine asks
/// whether the transaction is known already, or in a block: nodes then report that the nonce is too low.
///
/// The payload of the submission is the transaction as JSON. Its hash on the chain must be the id.
pub struct Broadcast {
    chain_id: Felt,
    id: Felt,
    transaction: InvokeTransaction,
    state: State,
}

impl fmt::Debug for Broadcast {
    /// Leaves out the transaction, because the calldata of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broadcast({}, {:?})", hex(self.id), self.state)
    }
}

#[derive(Debug)]
enum State {
    Identity,
    Sent,
    /// The fault of the refusal, which stands if the endpoint does not know the transaction.
    Status(Fault, Option<Sent>),
    Finished,
}

impl Machine for Broadcast {
    type Subject = Submission;
    type Output = Sent;
    const MAX_ROUNDS: usize = 3;

    fn start(submission: &Submission, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let chain_id = chain_id(&submission.network).ok_or_else(|| Refusal::new(Code::UnsupportedFamily, "/network"))?;
        let transaction = InvokeTransaction::from_json(submission.payload.as_bytes()).map_err(|refusal| refusal.under("/payload"))?;
        let id = transaction.hashes(chain_id).tx_hash;
        if felt::parse(&submission.id) != Ok(id) {
            let refusal = Refusal::new(Code::TransactionMismatch, "/id").with_reason("the transaction has another id on this chain");
            return Err(refusal.with_expected(hex(id)).with_actual(&submission.id));
        }
        Ok((Self { chain_id, id, transaction, state: State::Identity }, vec![spec_version()]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Sent>, Fault> {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Identity => {
                check_version(&replies.get(0)?)?;
                self.state = State::Sent;
                let params = json!({"invoke_transaction": self.transaction});
                Ok(Turn::Ask(vec![Request::json_rpc("starknet_addInvokeTransaction", params)]))
            }
            State::Sent => match replies.get(0)?.json_or_error()? {
                Ok(node) => {
                    let members = node.object()?;
                    let hash = members.need("transaction_hash")?;
                    if felt::read(hash)? != self.id {
                        return Err(hash.refuse(Code::TransactionMismatch).with_expected(hex(self.id)).into());
                    }
                    Ok(Turn::Done(Sent::Accepted))
                }
                Err(error) => {
                    let rejected = is_refusal(error.code).then(|| Sent::rejected(&error.message));
                    self.state = State::Status(Fault::Rpc(error.clone()), rejected);
                    Ok(Turn::Ask(vec![status_of(self.id)]))
                }
            },
            State::Status(fault, rejected) => match (TransactionStatus::read(&replies.get(0)?)?, rejected) {
                (Some(_), _) => Ok(Turn::Done(Sent::Accepted)),
                (None, Some(rejected)) => Ok(Turn::Done(rejected)),
                (None, None) => Err(fault),
            },
            State::Finished => Err(super::finished()),
        }
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
/// a block, and succeeded. Whether L1 has accepted the block is asked of each alone.
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
#[derive(Debug)]
pub struct Status(Felt);

impl Machine for Status {
    type Subject = TransactionQuery;
    type Output = StatusShown;
    const MAX_ROUNDS: usize = 1;

    fn start(query: &TransactionQuery, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Ok((Self(query.chain_id), vec![spec_version(), status_of(query.id)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.0)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<StatusShown>, Fault> {
        check_version(&replies.get(0)?)?;
        Ok(Turn::Done(StatusShown(TransactionStatus::read(&replies.get(1)?)?)))
    }
}

fn status_of(id: Felt) -> Request {
    Request::json_rpc("starknet_getTransactionStatus", json!({"transaction_hash": hex(id)}))
}

impl TransactionStatus {
    /// Reads a status; `None` if the endpoint does not know the transaction.
    fn read(reply: &Reply<'_>) -> Result<Option<Self>, Fault> {
        match reply.json_or_error()? {
            Ok(node) => Ok(Self::read_node(&node)?),
            // TXN_HASH_NOT_FOUND.
            Err(error) if error.code == 29 => Ok(None),
            Err(error) => Err(Fault::Rpc(error.clone())),
        }
    }

    fn read_node(node: &Node<'_, '_>) -> Result<Option<Self>, Refusal> {
        let members = node.object()?;
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
