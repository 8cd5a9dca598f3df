//! Checks transactions before they are sent, broadcasts them, and reads their confirmations.

use countersign::bitcoin::FeeRate;
use countersign::bitcoin::bitcoin::{Amount, Transaction, Txid};
use countersign::bitcoin::reader::{Plan, Preflight, PreflightCheck, Status};
use countersign::{Code, Policy, Refusal};
use countersign_core::reader::{Doubt, Observation, Verdict};
use countersign_transport::Transport;

use super::{BitcoinChain, TransactionStatus};
use crate::error::NodeError;

impl<T: Transport> BitcoinChain<'_, T> {
    /// Checks that the inputs of a transaction exist and are unspent, and that its fee is within the policy. A node's own RPC also tests
    /// whether it would accept the transaction. Returns the fee.
    ///
    /// The endpoints must agree: one that invents a reason cannot stop a transaction that the others would accept.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Rejected`] if the transaction cannot be mined, [`NodeError::Refused`] with [`Code::FeeRateTooHigh`] if it pays
    /// too high a fee, and another [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn preflight(&self, transaction: &Transaction, policy: &Policy) -> Result<Amount, NodeError> {
        Ok(self.check(Plan::new(transaction, Some(FeeRate::from_whole(policy.bitcoin.fee_rate)))).await?.fee)
    }

    pub(super) async fn check(&self, plan: Plan) -> Result<Preflight, NodeError> {
        let passes = |one: &Observation<PreflightCheck>| match &one.output().0 {
            Ok(_) => Ok(()),
            Err(refusal) => Err(rejection(refusal).unwrap_or_else(|| refusal.to_string())),
        };
        let quorum = self.connection.gather::<PreflightCheck, _, _>(&self.on_chain(plan), passes).await?;
        match quorum.agreed::<String>() {
            Ok(group) => {
                let first = group.into_iter().next().map(|one| one.output().0.clone());
                let judged = first.ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))?;
                judged.map_err(|refusal| match rejection(&refusal) {
                    Some(message) => NodeError::Rejected { endpoint: self.connection.name.to_owned(), message },
                    None => NodeError::Refused(refusal),
                })
            }
            Err(mut doubt) => {
                if let Doubt::Disagree { detail, .. } = &mut doubt {
                    let rejections = quorum.heard().filter_map(|(name, word)| Some((name, passes(word.ok()?).err()?)));
                    detail.extend(rejections.map(|(name, why)| format!("; {name} rejects the transaction: {why}")));
                }
                Err(self.connection.doubt(doubt))
            }
        }
    }

    /// Reads how far a transaction is confirmed; `None` if the endpoints agree that they do not know it. A node's own RPC finds mined
    /// transactions only if it has a transaction index (`-txindex=1`). Without one, it counts as an endpoint that cannot be used.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionIdMalformed`] if `txid` is not a transaction id, and another [`NodeError`]
    /// if no endpoint answers or too few of them agree.
    pub async fn status(&self, txid: &str) -> Result<Option<TransactionStatus>, NodeError> {
        let txid: Txid = txid.parse().map_err(|_| Refusal::new(Code::TransactionIdMalformed, "/txid").with_actual(txid))?;
        // Enough endpoints must show at least as many confirmations as are returned.
        let confirmations =
            |one: &Observation<Status>| Ok::<_, NodeError>(one.output().0.as_ref().map_or(0, |status| status.confirmations));
        let quorum = self.connection.gather::<Status, _, _>(&self.on_chain(txid), confirmations).await?;
        match quorum.ask(confirmations) {
            Verdict::Stands(_, one) => Ok(one.output().0.clone()),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(self.connection.doubt(doubt)),
        }
    }
}

/// Returns why a transaction cannot be mined; `None` if it is refused for another reason.
fn rejection(refusal: &Refusal) -> Option<String> {
    refusal.actual().filter(|_| refusal.code() == Code::SimulationReverted).map(ToString::to_string)
}
