//! Broadcasts transactions, and reads their status.

use countersign::starknet::Felt;
use countersign::starknet::reader::{Status, StatusShown, TransactionQuery, TransactionStatus};
use countersign_core::reader::Verdict;
use countersign_transport::Transport;

use super::StarknetChain;
use crate::error::NodeError;

impl<T: Transport> StarknetChain<'_, T> {
    /// Reads the status of a transaction; `None` if the chain does not know it. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn status(&self, id: Felt) -> Result<Option<TransactionStatus>, NodeError> {
        let query = TransactionQuery { chain_id: self.chain_id, id };
        let is_on_l1 = |shown: &StatusShown| Ok::<_, NodeError>(shown.is_on_l1());
        let quorum = self.connection.gather::<Status, _, _>(&query, |one| is_on_l1(one.output())).await?;
        match quorum.ask(|one| is_on_l1(one.output())) {
            Verdict::Stands(_, shown) => Ok(shown.output().0),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(self.connection.doubt(doubt)),
        }
    }
}
