//! Prepares orders, redemptions and refunds with the reference block and the allowance that the chain reports.

use countersign::tron::recover::Recovery;
use countersign::tron::{Address, ApprovalPlan, ApprovalStep, FundingPath, Tron};
use countersign::{Code, U256, UnsignedOrder, VerifiedOrder};
use countersign_transport::Transport;

use super::{TronChain, parse};
use crate::error::NodeError;
use crate::prepare::Bid;

impl<T: Transport> TronChain<'_, T> {
    pub(crate) async fn prepare(&self, order: &VerifiedOrder<Tron>) -> Result<UnsignedOrder<Tron>, NodeError> {
        let deposit = order.deposit();
        let mut calls = self.calls().await?;
        if let Some(approval) = &deposit.approval {
            let allowance = self.allowance(approval.call.to, deposit.sender, Address::from(approval.signed.spender)).await?;
            calls.approvals = ApprovalPlan::for_allowance(allowance, deposit.terms.amount);
        }
        let is_approved = deposit.approval.is_none() || calls.approvals.step == ApprovalStep::AlreadyApproved;
        let path = FundingPath::cheapest(deposit.typed_data.is_some(), is_approved, calls);
        let unsigned = order.prepare(path)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }

    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Tron>, NodeError> {
        let sender = parse(account, "/sender")?;
        let mut calls = self.calls().await?;
        let (asked, limit) = (recovery.call().fee_limit.unsigned_abs(), bid.policy.tron.fee_limit);
        // The preflight checks whether the limit is enough for the energy of the call.
        let is_lowered = bid.offer(asked.into(), 0, limit.into()) < asked.into();
        if is_lowered {
            calls = calls.with_fee_limit(limit);
        }
        let unsigned = recovery.clone().with_policy(bid.policy).prepare(sender, &calls)?;
        self.preflight(&unsigned).await?;
        if is_lowered {
            return Ok(unsigned.with_warning(Code::GasLimitTooHigh, recovery.expense(U256::from(limit)).at_limit("tron_fee_limit")));
        }
        Ok(unsigned)
    }
}
