//! Broadcasts transactions, and reads their status.

use countersign::solana::reader::{self, StatusQuery};
use countersign::solana::solana_signature::Signature;
use countersign_transport::Transport;

use super::{SolanaChain, TransactionStatus};
use crate::error::NodeError;

impl<T: Transport> SolanaChain<'_, T> {
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
