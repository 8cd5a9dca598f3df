//! Prepares orders, redemptions and refunds with the nonce, resource bounds and allowance that the chain reports.

use countersign::starknet::recover::Recovery;
use countersign::starknet::{ApprovalStep, FundingPath, Gasless, Starknet};
use countersign::{Policy, Role, UnsignedOrder, VerifiedOrder};
use countersign_transport::Transport;

use super::{StarknetChain, parse};
use crate::error::NodeError;
use crate::nodes::Speed;

impl<T: Transport> StarknetChain<'_, T> {
    /// Prepares an order. If nothing has to be approved, it uses the gasless path. Otherwise it uses one transaction of the sender, which
    /// approves and locks the funds.
    pub(crate) async fn prepare(
        &self,
        order: &VerifiedOrder<Starknet>,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let deposit = order.deposit();
        let mut step = ApprovalStep::AsVerified;
        if let Some(approval) = &deposit.approval {
            let allowance = self.allowance(approval.call.to, deposit.sender, approval.signed.spender).await?;
            if allowance >= deposit.terms.amount {
                step = ApprovalStep::AlreadyApproved;
            }
        }
        let is_approved = deposit.approval.is_none() || step == ApprovalStep::AlreadyApproved;
        let path: FundingPath = if deposit.typed_data.is_some() && is_approved {
            Gasless.into()
        } else {
            // The estimate of an order that cannot be paid fails as well, but does not say what is missing.
            self.check_token(order, !is_approved).await?;
            let execution = self.execution(deposit.sender, &deposit.calls(step), speed, policy).await?;
            execution.with_approval(step).into()
        };
        let unsigned = order.prepare(path)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }

    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let sender = parse(account, "/sender")?;
        let calls = [recovery.call.clone()];
        let shown = (recovery.role != Role::Redeem).then_some(&calls[..]);
        let execution = self.context(sender, shown, speed, policy).await?;
        let unsigned = recovery.prepare(sender, &execution)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }
}
