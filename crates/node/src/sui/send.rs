//! Broadcasts transactions, and reads their receipts.

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

/// The fields that are read of a transaction that was sent.
const EXECUTED: [&str; 3] = ["digest", "effects", "checkpoint"];
/// The maximum number of signatures of a transaction: the sender's and the sponsor's.
const MAX_SIGNATURES: usize = 2;

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
