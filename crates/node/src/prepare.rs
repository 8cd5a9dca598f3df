//! Preparing what was verified with what its chain says that a wallet must know: nonce, fees, allowance, coins.

use countersign::recover::Recovery;
use countersign::{Policy, Unsigned, Verified};
use countersign_client::Transport;

use crate::error::NodeError;
use crate::nodes::{Nodes, Speed};

impl<T: Transport> Nodes<T> {
    /// Prepares an order to be paid by its owner: `owner` is the address whose coins pay on a Bitcoin-like chain. On EVM chains an
    /// order that offers a gasless path is prepared for it, with the approval that it still needs; else for the owner's own
    /// transactions.
    ///
    /// # Errors
    ///
    /// [`NodeError::Refused`] where a fee is beyond the policy or the owner has too little; any other [`NodeError`] if the chain
    /// does not answer.
    #[cfg_attr(not(feature = "bitcoin"), allow(unused_variables, reason = "coins have an owner"))]
    pub async fn prepare(&self, order: &Verified, chain: &str, owner: &str, speed: Speed, policy: &Policy) -> Result<Unsigned, NodeError> {
        match order {
            #[cfg(feature = "evm")]
            Verified::Evm(order) => {
                use countersign::evm::{ApprovalPlan, ApprovalStep, FundingPath};

                let (chain, deposit) = (self.evm(chain)?, order.deposit());
                let mut calls = chain.calls(deposit.sender, speed, policy).await?;
                if let Some(approval) = &deposit.approval {
                    let allowance = chain.allowance(approval.call.to, deposit.sender, approval.signed.spender).await?;
                    calls.approvals = if allowance >= deposit.terms.amount {
                        ApprovalStep::AlreadyApproved.into()
                    } else if allowance.is_zero() {
                        ApprovalStep::AsVerified.into()
                    } else {
                        // Some tokens take a new allowance only where the old one is zero.
                        ApprovalPlan::new(ApprovalStep::AsVerified).with_reset()
                    };
                }
                let is_approved = deposit.approval.is_none() || calls.approvals.step == ApprovalStep::AlreadyApproved;
                let path = match &deposit.typed_data {
                    Some(_) if is_approved => FundingPath::Gasless,
                    Some(_) => FundingPath::Both(calls),
                    None => FundingPath::SelfFunded(calls),
                };
                let unsigned = order.prepare(path)?;
                chain.preflight(&unsigned).await?;
                Ok(unsigned.into())
            }
            #[cfg(feature = "bitcoin")]
            Verified::Bitcoin(order) => {
                let chain = self.bitcoin(chain)?;
                // The coins were just read, each with the transaction that made it: there is nothing to simulate.
                Ok(order.prepare(chain.wallet(owner, speed, policy).await?)?.into())
            }
            _ => Err(NodeError::NotConnected(chain.to_owned())),
        }
    }

    /// Prepares a redemption or a refund. `account` is who sends it and pays the fee; on a Bitcoin-like chain it is the address that
    /// the coins go to, less the fee.
    ///
    /// # Errors
    ///
    /// As [`Nodes::prepare`].
    pub async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        chain: &str,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        match recovery {
            #[cfg(feature = "evm")]
            Recovery::Evm(recovery) => {
                let sender = countersign::evm::address::parse(account).map_err(|error| countersign::Refusal::new(error, "/sender"))?;
                let calls = self.evm(chain)?.calls(sender, speed, policy).await?;
                Ok(recovery.clone().with_policy(policy).prepare(sender, &calls)?.into())
            }
            #[cfg(feature = "bitcoin")]
            Recovery::Bitcoin(recovery) => {
                use countersign::bitcoin::recover::{Fee, Payout};

                let chain = self.bitcoin(chain)?;
                let (fundings, rate) = (chain.fundings(&recovery.htlc.tree).await?, chain.fee_rate(speed, policy).await?);
                Ok(recovery.clone().with_policy(policy).prepare(&Payout::new(fundings, account, Fee::Deducted(rate.rate)))?.into())
            }
            _ => Err(NodeError::NotConnected(chain.to_owned())),
        }
    }
}
