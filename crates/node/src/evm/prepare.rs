//! Prepares orders, redemptions and refunds with the nonce, fees and allowance that the chain reports.

use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_consensus::transaction::SignerRecoverable as _;
use countersign::evm::alloy_primitives::Address;
use countersign::evm::reader;
use countersign::evm::recover::Recovery;
use countersign::evm::{ApprovalPlan, ApprovalStep, Calls, Evm, Fees, FundingPath, address};
use countersign::{Policy, Refusal, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use super::EvmChain;
use crate::error::NodeError;
use crate::nodes::Speed;

impl<T: Transport> EvmChain<'_, T> {
    pub(crate) async fn prepare(&self, order: &VerifiedOrder<Evm>, speed: Speed, policy: &Policy) -> Result<UnsignedOrder<Evm>, NodeError> {
        let deposit = order.deposit();
        let mut calls = self.calls(deposit.sender, speed, policy).await?;
        if let Some(approval) = &deposit.approval {
            let allowance = self.allowance(approval.call.to, deposit.sender, approval.signed.spender).await?;
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
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Evm>, NodeError> {
        let sender = parse(account, "/sender")?;
        // A redemption that waits reveals the secret while the other side can still take the funds back.
        let calls = self.urgent_calls(sender, speed, policy).await?;
        self.checked(recovery, sender, &calls, policy).await
    }

    /// Prepares a replacement, which has the nonce of the transaction that was sent.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Evm>, NodeError> {
        let (sender, (envelope, _)) = (parse(account, "/sender")?, reader::decode(sent)?);
        // A nonce belongs to an account. Another account cannot replace the transaction, but only send a second one.
        if envelope.recover_signer().ok() != Some(sender) {
            return self.prepare_recovery(recovery, account, speed, policy).await;
        }
        let fees = match envelope.max_priority_fee_per_gas() {
            Some(tip) => Fees::Eip1559 { max_fee_per_gas: envelope.max_fee_per_gas(), max_priority_fee_per_gas: tip },
            None => Fees::Legacy { gas_price: envelope.max_fee_per_gas() },
        };
        let before = Calls::new(envelope.nonce(), fees).with_chain_id(self.chain_id);
        let calls = self.replacement(sender, &before, speed, policy).await?;
        self.checked(recovery, sender, &calls, policy).await
    }

    /// Prepares a redemption or a refund, and requires that the sender can pay for it. Also simulates a refund.
    async fn checked(&self, recovery: &Recovery, sender: Address, calls: &Calls, policy: &Policy) -> Result<UnsignedOrder<Evm>, NodeError> {
        let unsigned = recovery.clone().with_policy(policy).prepare(sender, calls)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }
}

/// Parses an address that comes from the caller, not from the service.
pub(super) fn parse(text: &str, at: &'static str) -> Result<Address, Refusal> {
    address::parse(text).map_err(|error| Refusal::new(error, at))
}
