//! Broadcasts transactions, and reads their status.

use countersign::solana::read;
use countersign::solana::reader::{self, SignedTransaction, StatusQuery};
use countersign::solana::solana_signature::Signature;
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use countersign_core::reader::{Observation, Sent};

use super::{SolanaChain, TransactionStatus};
use crate::error::NodeError;
use crate::quorum::any_accepts;

impl<T: Transport> SolanaChain<'_, T> {
    /// Broadcasts a signed transaction through every endpoint, without a simulation or retries by the nodes. Succeeds if one of them
    /// accepts it or already knows it, and returns as soon as enough of them do.
    ///
    /// Call it repeatedly until the transaction has landed or its blockhash has expired. Sending it again is harmless: it has the same
    /// signature, so it is mined at most once.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionMismatch`] if the payload is not a transaction with the stored id. Returns
    /// [`NodeError::Rejected`] if every endpoint rejects the transaction and none knows it. After any other [`NodeError`] it is unknown
    /// whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let (decoded, _) = decode(transaction)?;
        let transaction = SignedTransaction::new(self.connection.network, &decoded);
        let quorum = self
            .connection
            .gather::<reader::Broadcast, _, _>(&transaction, |one| if *one.output() == Sent::Accepted { Ok(()) } else { Err(()) })
            .await?;
        let outcomes = quorum.heard().map(|(endpoint, word)| match word.map(Observation::output) {
            Ok(Sent::Accepted) => Ok(()),
            Ok(Sent::Rejected(message)) => Err(NodeError::Rejected { endpoint: endpoint.to_owned(), message: message.clone() }),
            Err(fault) => Err(NodeError::from_fault(endpoint, fault.clone())),
        });
        any_accepts(outcomes.collect()).unwrap_or_else(|| Err(NodeError::NotConnected(self.connection.name.to_owned())))
    }

    /// Reads the status of a transaction. `last_valid_block_height` is the block height up to which its blockhash is valid. The endpoints
    /// must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn status(&self, id: Signature, last_valid_block_height: u64) -> Result<TransactionStatus, NodeError> {
        let query = StatusQuery::new(self.connection.network, id, last_valid_block_height);
        let quorum = self.connection.gather::<reader::Status, _, _>(&query, |_| Ok::<_, NodeError>(())).await?;
        let group = quorum.agreed().map_err(|doubt| self.connection.doubt::<NodeError>(doubt))?;
        // A block is final if all those that agree say so.
        let worst = group.iter().map(|one| *one.output()).min_by_key(TransactionStatus::is_finalized);
        worst.ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }
}

/// Decodes a stored transaction, and requires that it has the stored id. Returns it with its id.
pub(super) fn decode(transaction: &KeptTransaction) -> Result<(VersionedTransaction, String), Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(&transaction.payload).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let decoded = read::transaction(&bytes).ok_or_else(|| refuse("/payload", "the bytes are not one transaction"))?;
    let id = decoded.signatures.first().map(ToString::to_string).unwrap_or_default();
    if transaction.id != id {
        return Err(refuse("/id", "the transaction has another id").with_expected(id).with_actual(&transaction.id));
    }
    Ok((decoded, id))
}
