//! Broadcasts transactions, and reads their receipts.

use countersign::sui::reader::{Ask, Broadcast, Receipt, TransactionReceipt};
use countersign::sui::sui_sdk_types::Digest;
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use countersign_core::reader::{Sent, Submission};

use super::SuiChain;
use crate::error::NodeError;

impl<T: Transport> SuiChain<'_, T> {
    /// Broadcasts a signed transaction through the endpoints. Succeeds if as many of them as the quorum requires execute it, or report
    /// that it was executed already, and it did not fail. A single endpoint could keep the transaction, and the secret in it, to itself.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the payload is not a transaction with the stored id. Returns [`NodeError::Rejected`] if enough
    /// endpoints reject the transaction, or report that it was executed and failed. Either way it will never take effect. After any other
    /// [`NodeError`] it is unknown whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let submission = Submission::new(self.connection.network, &transaction.id, &transaction.payload);
        match self.connection.agreed::<Broadcast>(&submission).await? {
            Sent::Accepted => Ok(()),
            Sent::Rejected(message) => Err(NodeError::Rejected { endpoint: self.connection.name.to_owned(), message }),
        }
    }

    /// Reads the receipt of a transaction; `None` while it is not in a checkpoint. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn receipt(&self, id: Digest) -> Result<Option<Receipt>, NodeError> {
        Ok(self.connection.agreed::<Ask<TransactionReceipt>>(&self.on(id)).await?.0)
    }
}
