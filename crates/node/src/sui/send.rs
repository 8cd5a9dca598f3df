//! Sending transactions, and finding out what became of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::json::{self, Node};
use countersign::sui::sui_sdk_types::bcs::{FromBcs as _, ToBcs as _};
use countersign::sui::sui_sdk_types::{self, Digest};
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;

use super::SuiChain;
use super::grpc::{FAILED_PRECONDITION, INVALID_ARGUMENT};
use super::htlc::{check_digest, transaction};
use super::messages::{Bcs, ExecuteTransactionRequest, ExecutedTransaction, FieldMask, Transaction, UserSignature};
use super::missing;
use super::preflight::failure;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::quorum::{agree, any_accepts};

/// What is read of a transaction that was sent.
const EXECUTED: [&str; 3] = ["digest", "effects", "checkpoint"];
/// Most signatures of a transaction: the sender's and the sponsor's.
const MAX_SIGNATURES: usize = 2;

/// What became of a transaction that is in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Height of its checkpoint.
    pub checkpoint: u64,
    /// Whether it did what it says. One that failed has paid for its gas, and can never be executed again.
    pub success: bool,
}

/// A kept transaction, as nodes take it.
struct Kept {
    id: Digest,
    bytes: Vec<u8>,
    signatures: Vec<Vec<u8>>,
}

impl Kept {
    /// Reads a kept transaction, and requires that it is the one with the id that was kept.
    fn read(transaction: &KeptTransaction) -> Result<Self, Refusal> {
        let value = json::parse(transaction.payload.as_bytes()).map_err(|refusal| refusal.under("/payload"))?;
        let members = Node::root(&value, "/payload");
        let members = members.object()?;
        let base64 = |node: &Node<'_, '_>| {
            STANDARD.decode(node.text()?).map_err(|_| node.refuse(Code::TransactionEncoding).with_expected("canonical base64"))
        };
        let bytes = base64(&members.need("tx_bytes")?)?;
        let signatures = members.need("signatures")?;
        let signatures = signatures.array()?.take(MAX_SIGNATURES).map(|node| base64(&node)).collect::<Result<_, _>>()?;
        let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
        let decoded = sui_sdk_types::Transaction::from_bcs(&bytes).ok();
        let decoded = decoded.filter(|decoded| decoded.to_bcs().is_ok_and(|again| again == bytes));
        let id = decoded.ok_or_else(|| refuse("/payload/tx_bytes", "the bytes are not one transaction"))?.digest();
        if transaction.id != id.to_base58() {
            return Err(refuse("/id", "the transaction has another id").with_expected(id.to_base58()).with_actual(&transaction.id));
        }
        Ok(Self { id, bytes, signatures })
    }
}

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint. One that the chain has executed already counts as accepted.
    ///
    /// # Errors
    ///
    /// [`NodeError::Rejected`] if every endpoint refuses it and none knows it, or if it was executed and failed: either way it
    /// will never do what it says. [`NodeError::Refused`] if it is not a transaction with the id that was kept. Any other
    /// [`NodeError`] does not tell whether it arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let kept = Kept::read(transaction)?;
        let outcomes = self.connection.each(|caller| self.send(caller, &kept)).await;
        any_accepts(outcomes).unwrap_or_else(|| Err(NodeError::NotConnected(self.connection.name.to_owned())))
    }

    async fn send(&self, caller: Caller<'n, T>, kept: &Kept) -> Result<(), NodeError> {
        self.identify(caller).await?;
        let bcs = |bytes: &Vec<u8>| Bcs::new(bytes.clone());
        let request = ExecuteTransactionRequest {
            transaction: Some(Transaction { bcs: bcs(&kept.bytes) }),
            signatures: kept.signatures.iter().map(|signature| UserSignature { bcs: bcs(signature) }).collect(),
            read_mask: FieldMask::new(&EXECUTED),
        };
        let error = match caller.grpc(&request).await {
            Ok(answer) => {
                let executed = answer.transaction.ok_or_else(|| missing(caller, "/transaction"))?;
                check_digest(caller, &executed, kept.id)?;
                return accepted(caller, &executed);
            }
            Err(error) => error,
        };
        // It may be executed already. The coins that it spends are gone then, which nodes complain about first.
        match transaction(caller, kept.id, &EXECUTED).await? {
            Some(executed) => accepted(caller, &executed),
            None => Err(if is_refusal(&error) { error.rejected() } else { error }),
        }
    }

    /// Returns what became of a transaction; `None` while it is in no checkpoint. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
    pub async fn receipt(&self, id: Digest) -> Result<Option<Receipt>, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let Some(executed) = transaction(caller, id, &EXECUTED).await? else { return Ok(None) };
            let success = failure(caller, &executed)?.is_none();
            Ok(executed.checkpoint.map(|checkpoint| Receipt { checkpoint, success }))
        };
        let mut receipts = agree(self.connection.each(ask).await, self.connection.needed(), |receipt| *receipt)?;
        Ok(receipts.pop().flatten())
    }
}

/// Requires that an executed transaction succeeded.
fn accepted<T: Transport>(caller: Caller<'_, T>, executed: &ExecutedTransaction) -> Result<(), NodeError> {
    match failure(caller, executed)? {
        None => Ok(()),
        Some(why) => {
            Err(NodeError::Rejected { endpoint: caller.endpoint.host().to_owned(), message: format!("it was executed and failed: {why}") })
        }
    }
}

/// Returns whether an error is about the transaction itself. Other codes are about the node: its limits, its faults.
const fn is_refusal(error: &NodeError) -> bool {
    matches!(error, NodeError::Rpc { code: INVALID_ARGUMENT | FAILED_PRECONDITION, .. })
}
