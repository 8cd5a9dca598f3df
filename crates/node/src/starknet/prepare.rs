//! Prepares orders, redemptions and refunds with the nonce, resource bounds and allowance that the chain reports.

use countersign::starknet::reader;
use countersign::starknet::recover::Recovery;
use countersign::starknet::{ApprovalStep, Felt, Gasless, KeyedPath, Starknet, TxContext, felt};
use countersign::{Code, Leg, Policy, Role, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::{Expense, Submission};
use countersign_transport::Transport;

use super::{StarknetChain, parse};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Bid;

impl<T: Transport> StarknetChain<'_, T> {
    /// Prepares an order. If nothing has to be approved, it uses the gasless path. Otherwise it uses one transaction of the sender, which
    /// approves and locks the funds.
    pub(crate) async fn prepare(
        &self,
        order: &VerifiedOrder<Starknet>,
        _owner: &str,
        speed: Speed,
        policy: &Policy,
        own: bool,
    ) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let deposit = order.deposit();
        // What the HTLC could not pay back is not paid.
        let refunded = felt::to_hex(&deposit.terms.initiator.unwrap_or(deposit.sender));
        self.connection.nodes.check_receiver(order.asset(Leg::Source), &refunded).await?;
        let mut step = ApprovalStep::AsVerified;
        if let Some(approval) = &deposit.approval {
            let allowance = self.allowance(approval.call.to, deposit.sender, approval.signed.spender).await?;
            if allowance >= deposit.terms.amount {
                step = ApprovalStep::AlreadyApproved;
            }
        }
        let is_approved = deposit.approval.is_none() || step == ApprovalStep::AlreadyApproved;
        let path = if deposit.typed_data.is_some() && is_approved && !own {
            KeyedPath::from(Gasless)
        } else {
            // The estimate of an order that cannot be paid fails as well, but does not say what is missing.
            self.check_token(order, step).await?;
            let calls: Vec<_> = deposit.calls(step).into_iter().map(|(_, call)| call).collect();
            let execution = self.execution(deposit.sender, &calls, speed, policy).await?;
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
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let sender = parse(account, "/sender")?;
        let (execution, is_lowered) = self.recovery_context(recovery, sender, bid).await?;
        self.checked(recovery, sender, &execution, (is_lowered, bid)).await
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
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let (sender, sent) = (parse(account, "/sender")?, reader::decode(sent)?);
        let (current, is_lowered) = self.recovery_context(recovery, sender, bid).await?;
        // What nodes require at least. The price of each resource has a minimum of its own.
        let mut least = current.clone();
        (least.resource_bounds, least.tip) = (sent.resource_bounds, sent.tip);
        let offers = [
            (reader::raised(&sent, current.clone()), is_lowered),
            (reader::least_raised(&sent, current.clone()), is_lowered),
            (reader::least_raised(&sent, least), true),
        ];
        let is_replacing = (sent.sender_address, sent.nonce) == (sender, current.nonce);
        // The first one that the policy allows and the sender can pay.
        for (offered, is_lowered) in offers.iter().filter(|(offered, _)| is_replacing && reader::check_fee(offered, bid.policy).is_ok()) {
            match self.checked(recovery, sender, offered, (*is_lowered, bid)).await {
                Err(NodeError::Refused(refusal)) if refusal.code() == Code::InsufficientFunds => {}
                outcome => return outcome,
            }
        }
        // A transaction that offers more than is allowed now cannot be replaced. Nodes that do not have it take the current offer.
        self.checked(recovery, sender, &current, (is_lowered, bid)).await
    }

    /// Reads the context of a redemption or a refund, and whether it offers less than the chain asks for. No node may see the call of a
    /// redemption.
    async fn recovery_context(&self, recovery: &Recovery, sender: Felt, bid: Bid<'_>) -> Result<(TxContext, bool), NodeError> {
        let calls = [recovery.call().clone()];
        let shown = (recovery.terms().role != Role::Redeem).then_some(&calls[..]);
        self.context(sender, shown, bid).await.map_err(|error| explained(recovery, error))
    }

    async fn checked(
        &self,
        recovery: &Recovery,
        sender: Felt,
        execution: &TxContext,
        (is_lowered, bid): (bool, Bid<'_>),
    ) -> Result<UnsignedOrder<Starknet>, NodeError> {
        let unsigned = recovery.prepare(execution.clone().sent_by(sender))?;
        bid.urgency.unless_unknown(self.preflight(&unsigned).await, NodeError::is_refused)?;
        if is_lowered {
            let expense = recovery.expense(execution.resource_bounds.max_fee(execution.tip));
            return Ok(unsigned.with_warning(Code::GasLimitTooHigh, expense.at_limit("starknet_fee")));
        }
        Ok(unsigned)
    }
}

/// Adds what a redemption or a refund costs and pays to the refusal of its fee.
fn explained(recovery: &Recovery, error: NodeError) -> NodeError {
    match error {
        NodeError::Refused(refusal) => Expense::explain_cost(refusal, "starknet_fee", |cost| recovery.expense(cost)).into(),
        other => other,
    }
}
