//! Broadcasts transactions, and reads their status.

use countersign::starknet::Felt;
use countersign::starknet::reader::{Broadcast, Status, StatusShown, TransactionQuery, TransactionStatus};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use countersign_core::reader::{Observation, Sent, Submission, Verdict};

use super::StarknetChain;
use crate::error::NodeError;

impl<T: Transport> StarknetChain<'_, T> {
    /// Broadcasts a signed transaction through every endpoint. Succeeds if as many of them as must agree accept it or already know it.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the payload is not a transaction that has the stored id on this chain. Returns
    /// [`NodeError::Rejected`] if every endpoint that was asked rejects the transaction and none knows it. After any other [`NodeError`]
    /// it is unknown whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let submission = Submission::new(self.connection.network, &transaction.id, &transaction.payload);
        let accepts = |sent: &Sent| match sent {
            Sent::Accepted => Ok(()),
            Sent::Rejected(why) => Err(why.clone()),
        };
        let quorum = self.connection.gather::<Broadcast, _, _>(&submission, |one| accepts(one.output())).await?;
        let doubt = match quorum.ask(|one| accepts(one.output())) {
            Verdict::Stands(..) => return Ok(()),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => doubt,
        };
        // An endpoint that failed may still have relayed the transaction, so a failure outranks a rejection.
        let (mut rejected, mut is_rejection) = (None, true);
        for (name, word) in quorum.heard() {
            match word.map(Observation::output) {
                Ok(Sent::Accepted) => is_rejection = false,
                Ok(Sent::Rejected(message)) => {
                    rejected = rejected.or_else(|| Some(NodeError::Rejected { endpoint: name.to_owned(), message: message.clone() }));
                }
                Err(fault) => return Err(NodeError::from_fault(name, fault.clone())),
            }
        }
        Err(rejected.filter(|_| is_rejection).unwrap_or_else(|| self.connection.doubt(doubt)))
    }

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
