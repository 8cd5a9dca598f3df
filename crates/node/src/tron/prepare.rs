//! Prepares orders, redemptions and refunds with the reference block and the allowance that the chain reports.

use countersign::tron::recover::Recovery;
use countersign::tron::{Address, ApprovalPlan, FundingPath, Tron};
use countersign::{Code, Policy, U256, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use super::{TronChain, parse};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Bid;

impl<T: Transport> TronChain<'_, T> {
    pub(crate) async fn prepare(
        &self,
        order: &VerifiedOrder<Tron>,
        _owner: &str,
        _speed: Speed,
        _policy: &Policy,
        own: bool,
    ) -> Result<UnsignedOrder<Tron>, NodeError> {
        let deposit = order.deposit();
        let mut calls = self.calls().await?;
        if let Some(approval) = &deposit.approval {
            let allowance = self.allowance(approval.call.to, deposit.sender, Address::from(approval.signed.spender)).await?;
            calls.approvals = ApprovalPlan::for_allowance(allowance, deposit.terms.amount);
        }
        let unsigned = order.prepare(if own { FundingPath::SelfFunded(calls) } else { deposit.cheapest_path(calls) })?;
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
        // There is nothing to pay for speed.
        let (_, policy) = (bid.speed, bid.policy);
        let mut calls = self.calls().await?;
        let (asked, limit) = (recovery.call().fee_limit.unsigned_abs(), policy.tron.fee_limit);
        // The preflight checks whether the limit is enough for the energy of the call.
        let is_lowered = bid.urgency.offer(asked.into(), 0, limit.into()) < asked.into();
        if is_lowered {
            calls = calls.with_fee_limit(limit);
        }
        // The preflight judges the limit by the chain's own price of energy, and not by the price that is assumed without one.
        let unsigned = recovery.clone().with_policy(policy).prepare(calls.sent_by(sender).with_low_fee(true))?;
        bid.urgency.unless_unknown(self.preflight(&unsigned).await, NodeError::is_refused)?;
        if is_lowered {
            return Ok(unsigned.with_warning(Code::GasLimitTooHigh, recovery.expense(U256::from(limit)).at_limit("tron_fee_limit")));
        }
        Ok(unsigned)
    }

    /// Prepares a replacement. Every preparation has a new reference block, so the transaction that was sent is not needed.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        _sent: &Submission,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Tron>, NodeError> {
        self.prepare_recovery(recovery, account, bid).await
    }
}
