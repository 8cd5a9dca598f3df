//! Broadcasts transactions, and reads their receipts.

use countersign::sui::Execution;
use countersign::sui::sui_sdk_types::bcs::ToBcs as _;
use countersign::sui::sui_sdk_types::{Digest, UserSignature};
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;

use super::SuiChain;
use super::grpc::{FAILED_PRECONDITION, INVALID_ARGUMENT};
use super::htlc::{check_digest, transaction};
use super::messages::{Bcs, ExecuteTransactionRequest, ExecutedTransaction, FieldMask, Transaction, UserSignature as SentSignature};
use super::missing;
use super::preflight::failure;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::quorum::{agree, any_accepts};

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

/// A stored transaction, decoded for broadcasting.
struct Kept {
    id: Digest,
    bytes: Vec<u8>,
    signatures: Vec<Vec<u8>>,
}

impl Kept {
    /// Decodes a stored transaction, and requires that it has the stored id.
    fn read(transaction: &KeptTransaction) -> Result<Self, Refusal> {
        let signed = Execution::from_json(transaction.payload.as_bytes()).map_err(|refusal| refusal.under("/payload"))?;
        let id = signed.transaction.digest();
        if transaction.id != id.to_base58() {
            let refusal = Refusal::new(Code::TransactionMismatch, "/id").with_reason("the transaction has another id");
            return Err(refusal.with_expected(id.to_base58()).with_actual(&transaction.id));
        }
        let bytes = signed.transaction.to_bcs().map_err(|_| Refusal::new(Code::Internal, "/payload/tx_bytes"))?;
        Ok(Self { id, bytes, signatures: signed.signatures.iter().map(UserSignature::to_bytes).collect() })
    }
}

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint. Succeeds if one of them executes it, or reports that it was executed
    /// already, and it did not fail.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the payload is not a transaction with the stored id. Returns [`NodeError::Rejected`] if every
    /// endpoint rejects the transaction, or reports that it was executed and failed. Either way it will never take effect. After any other
    /// [`NodeError`] it is unknown whether the transaction arrived.
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
            signatures: kept.signatures.iter().map(|signature| SentSignature { bcs: bcs(signature) }).collect(),
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
        // The transaction may have been executed already. Nodes then report first that the coins that it spends are gone.
        match transaction(caller, kept.id, &EXECUTED).await? {
            Some(executed) => accepted(caller, &executed),
            None => Err(if is_refusal(&error) { error.rejected() } else { error }),
        }
    }

    /// Reads the receipt of a transaction; `None` while it is not in a checkpoint. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
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

/// Returns whether an error concerns the transaction itself. Other errors concern the node: its limits and its faults.
const fn is_refusal(error: &NodeError) -> bool {
    matches!(error, NodeError::Rpc { code: INVALID_ARGUMENT | FAILED_PRECONDITION, .. })
}
