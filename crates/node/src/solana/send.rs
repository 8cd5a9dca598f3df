//! Broadcasts transactions, and reads their status.

use countersign::solana::reader::{self, StatusQuery};
use countersign::solana::solana_signature::Signature;
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use countersign_core::reader::Submission;

use super::{SolanaChain, TransactionStatus};
use crate::error::NodeError;

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
        let submission = Submission::new(self.connection.network, &transaction.id, &transaction.payload);
        self.connection.send::<reader::Broadcast>(&submission).await
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
