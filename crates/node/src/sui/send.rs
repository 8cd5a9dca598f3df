//! Broadcasts transactions, and reads their receipts.

use countersign::sui::reader::{Receipt, TransactionReceipt};
use countersign::sui::sui_sdk_types::Digest;
use countersign_core::reader::Ask;
use countersign_transport::Transport;

use super::SuiChain;
use crate::error::NodeError;

impl<T: Transport> SuiChain<'_, T> {
    /// Reads the receipt of a transaction; `None` while it is not in a checkpoint. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn receipt(&self, id: Digest) -> Result<Option<Receipt>, NodeError> {
        Ok(self.connection.agreed::<Ask<_>>(&self.on(TransactionReceipt(id))).await?.0)
    }
}
