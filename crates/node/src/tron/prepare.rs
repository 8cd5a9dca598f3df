//! Preparing an order, a redemption or a refund with what the chain says.

use countersign::tron::recover::Recovery;
use countersign::tron::{Address, ApprovalPlan, ApprovalStep, FundingPath, Tron};
use countersign::{Policy, UnsignedOrder, VerifiedOrder};
use countersign_client::Transport;

use super::{TronChain, parse};
use crate::error::NodeError;

impl<T: Transport> TronChain<'_, T> {
    pub(crate) async fn prepare(&self, order: &VerifiedOrder<Tron>) -> Result<UnsignedOrder<Tron>, NodeError> {
        let deposit = order.deposit();
        let mut calls = self.calls().await?;
        if let Some(approval) = &deposit.approval {
            let allowance = self.allowance(approval.call.to, deposit.sender, Address::from(approval.signed.spender)).await?;
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
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }

    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Tron>, NodeError> {
        let sender = parse(account, "/sender")?;
        let calls = self.calls().await?;
        Ok(recovery.clone().with_policy(policy).prepare(sender, &calls)?)
    }
}
