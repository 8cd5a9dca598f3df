//! Prepares orders, redemptions and refunds with the nonce, resource bounds and allowance that the chain reports.

use countersign::starknet::reader;
use countersign::starknet::recover::Recovery;
use countersign::starknet::{ApprovalStep, Execution, Felt, FundingPath, Gasless, Starknet};
use countersign::{Policy, Role, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use super::{StarknetChain, parse};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::explain_fee;

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
        let execution = self.recovery_context(recovery, sender, speed, policy).await?;
        self.checked(recovery, sender, &execution).await
    }

    /// Prepares a redemption or a refund that replaces one: with the same nonce and higher bounds, or with the current nonce if that has
    /// been taken since, or if the sender is another account.
    ///
    /// An HTLC ends once, so two redemptions of it do each other no harm, whatever their nonces: the later one reverts, and costs its
    /// sender a fee.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let (sender, sent) = (parse(account, "/sender")?, reader::decode(sent)?);
        let mut execution = self.recovery_context(recovery, sender, speed, policy).await?;
        if (sent.sender_address, sent.nonce) == (sender, execution.nonce) {
            execution = reader::raised(&sent, execution);
            reader::check_fee(&execution, policy).map_err(|refusal| explained(recovery, refusal.into()))?;
        }
        self.checked(recovery, sender, &execution).await
    }

    /// Reads the context of a redemption or a refund. No node may see the call of a redemption.
    async fn recovery_context(&self, recovery: &Recovery, sender: Felt, speed: Speed, policy: &Policy) -> Result<Execution, NodeError> {
        let calls = [recovery.call().clone()];
        let shown = (recovery.role() != Role::Redeem).then_some(&calls[..]);
        self.context(sender, shown, speed, policy).await.map_err(|error| explained(recovery, error))
    }

    async fn checked(&self, recovery: &Recovery, sender: Felt, execution: &Execution) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let unsigned = recovery.prepare(sender, execution)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }
}

/// Adds what a redemption or a refund costs and pays to the refusal of its fee.
fn explained(recovery: &Recovery, error: NodeError) -> NodeError {
    explain_fee(error, "starknet_fee", |cost| recovery.expense(cost))
}
