//! Reads the state of one HTLC from every endpoint.

use countersign::sui::reader;
use countersign::sui::sui_sdk_types::Digest;
use countersign::{Code, HtlcState, HtlcTerms, Refusal, SeenAt};
use countersign_client::Transport;

use super::grpc::NOT_FOUND;
use super::messages::{ExecutedTransaction, FieldMask, GetTransactionRequest};
use super::{SuiChain, digest, missing};
use crate::endpoint::Caller;
use crate::error::NodeError;

impl<T: Transport> SuiChain<'_, T> {
    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest checkpoint. The endpoints must agree.
    ///
    /// The state comes from the order that the pinned registry stores. The order must have the type that the pinned package defines, and
    /// the expected coin. How an order ended comes from the event of the transaction that last changed it. Without the event, the state is
    /// [`HtlcState::Unclear`]. A transaction in a checkpoint is final.
    ///
    /// The order is read under the id in the record. If the registry has an order under another id that follows from the terms, the state
    /// is unclear, because a call with the record's id would fail.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms contain an invalid address or swap id. Returns another [`NodeError`] if no endpoint
    /// answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        self.connection.read_htlc::<reader::Htlc>(terms).await
    }
}

/// Reads a transaction; `None` if the node does not know it.
pub(super) async fn transaction<T: Transport>(
    caller: Caller<'_, T>,
    id: Digest,
    members: &[&str],
) -> Result<Option<ExecutedTransaction>, NodeError> {
    let request = GetTransactionRequest { digest: Some(id.to_base58()), read_mask: FieldMask::new(members) };
    let transaction = match caller.grpc(&request).await {
        Ok(answer) => answer.transaction.ok_or_else(|| missing(caller, "/transaction"))?,
        Err(NodeError::Rpc { code: NOT_FOUND, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    check_digest(caller, &transaction, id)?;
    Ok(Some(transaction))
}

/// Requires that a transaction is the requested one.
pub(super) fn check_digest<T: Transport>(caller: Caller<'_, T>, transaction: &ExecutedTransaction, id: Digest) -> Result<(), NodeError> {
    let actual = digest(caller, transaction.digest.clone(), "/transaction/digest")?;
    if actual == id {
        return Ok(());
    }
    let refusal = Refusal::new(Code::TransactionMismatch, "/transaction/digest");
    Err(caller.malformed(refusal.with_expected(id.to_base58()).with_actual(actual.to_base58())))
}
