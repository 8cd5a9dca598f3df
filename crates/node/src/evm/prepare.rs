//! Prepares orders, redemptions and refunds with the nonce, fees and allowance that the chain reports.

use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_consensus::transaction::SignerRecoverable as _;
use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::reader::{self, fees};
use countersign::evm::recover::Recovery;
use countersign::evm::{ApprovalPlan, Evm, Fees, FundingPath, OwnerPath, TxContext, address};
use countersign::{Code, Policy, Refusal, Role, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use super::EvmChain;
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Bid;

impl<T: Transport> EvmChain<'_, T> {
    pub(crate) async fn prepare(
        &self,
        order: &VerifiedOrder<Evm>,
        _owner: &str,
        speed: Speed,
        policy: &Policy,
        own: bool,
    ) -> Result<UnsignedOrder<Evm>, NodeError> {
        let deposit = order.deposit();
        let mut calls = self.calls(deposit.sender, speed, policy).await?;
        if let Some(approval) = &deposit.approval {
            let allowance = self.allowance(approval.call.to, deposit.sender, approval.signed.spender).await?;
            calls.approvals = ApprovalPlan::for_allowance(allowance, deposit.terms.amount);
        }
        let path = if own { FundingPath::SelfFunded(calls) } else { deposit.cheapest_path(calls) };
        // Only the wrapper of a signature depends on it, and stays where too few endpoints agree.
        let has_code = match (&deposit.typed_data, &path) {
            (None, _) | (_, FundingPath::SelfFunded(_)) => None,
            _ => self.has_code(deposit.sender).await.ok(),
        };
        let unsigned = order.prepare(OwnerPath::from(path).with_code(has_code))?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }

    /// Prepares a redemption or a refund.
    ///
    /// A redemption that waits reveals the secret while the other side can still take the funds back, so it does not queue behind a stuck
    /// transaction. A refund does: it is not worth replacing another transaction of the sender.
    pub(crate) async fn prepare_recovery(&self, recovery: &Recovery, account: &str, bid: Bid<'_>) -> Result<UnsignedOrder<Evm>, NodeError> {
        let sender = self.parse(account, "/sender")?;
        if recovery.terms().role == Role::Redeem {
            return self.redeem(recovery, sender, bid, false).await;
        }
        let calls = self.next_calls(sender, bid.speed).await?;
        self.affordable(recovery, sender, &[calls], bid).await
    }

    async fn redeem(&self, recovery: &Recovery, sender: Address, bid: Bid<'_>, is_overdue: bool) -> Result<UnsignedOrder<Evm>, NodeError> {
        let offers = self.redemption_calls(sender, bid, is_overdue).await?;
        self.affordable(recovery, sender, &offers, bid).await
    }

    /// Prepares a transaction with the first gas limit and the first fees that its sender can pay.
    ///
    /// What is not used of a gas limit is not paid. So instead of a limit below the first one, the highest is taken that the sender's coins
    /// pay for.
    async fn affordable(
        &self,
        recovery: &Recovery,
        sender: Address,
        offers: &[TxContext],
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Evm>, NodeError> {
        let limits = self.recovery_gas(recovery, bid).await?;
        let first = limits.first().copied().unwrap_or_default();
        let mut outcome = Err(self.not_connected());
        for least in limits {
            // The cheapest fees, which come last, leave the most gas.
            let (coins, offers) = match least < first {
                true => (self.balance(sender, None).await.unwrap_or_default(), offers.split_at(offers.len().saturating_sub(1)).1),
                false => (U256::ZERO, offers),
            };
            for calls in offers {
                let price = fees::cap(calls.fees).min(self.limit(bid.policy));
                let paid = coins.checked_div(U256::from(price)).unwrap_or_default().saturating_to();
                let gas = first.min(paid).max(least);
                outcome = self.checked(recovery, sender, calls.clone().with_gas_limit(gas), bid).await;
                match &outcome {
                    Err(NodeError::Refused(refusal)) if refusal.code() == Code::InsufficientFunds => {}
                    _ => return outcome,
                }
            }
        }
        outcome
    }

    /// Prepares a replacement, which has the nonce of the transaction that was sent, or a lower one.
    ///
    /// An HTLC ends once, so two redemptions of it do each other no harm, whatever their nonces: the later one reverts, and costs its
    /// sender a fee.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Evm>, NodeError> {
        let (sender, (envelope, _)) = (self.parse(account, "/sender")?, reader::decode(sent)?);
        // A nonce belongs to an account. Another account cannot replace the transaction, but only send a second one.
        if envelope.recover_signer().ok() != Some(sender) {
            return self.prepare_recovery(recovery, account, bid).await;
        }
        let mined = self.mined_nonce(sender).await?;
        if mined > envelope.nonce() {
            // Another transaction has taken the nonce.
            return self.prepare_recovery(recovery, account, bid).await;
        }
        if mined < envelope.nonce() && recovery.terms().role == Role::Redeem {
            // It waits for another transaction of the sender.
            return self.redeem(recovery, sender, bid, true).await;
        }
        let fees = match envelope.max_priority_fee_per_gas() {
            Some(tip) => Fees::Eip1559 { max_fee_per_gas: envelope.max_fee_per_gas(), max_priority_fee_per_gas: tip },
            None => Fees::Legacy { gas_price: envelope.max_fee_per_gas() },
        };
        let now = self.current_fees(sender, bid.speed, bid.stakes(recovery.terms().role)).await?;
        let at = |fees| TxContext::new(envelope.nonce(), fees).with_chain_id(self.chain_id);
        let calls = at(fees::overdue(fees, now, self.limit(bid.policy)));
        self.affordable(recovery, sender, &[calls, at(now)], bid).await
    }

    /// Prepares a redemption or a refund, and requires that its fee is within the limit and the sender can pay it. Also simulates a refund.
    async fn checked(
        &self,
        recovery: &Recovery,
        sender: Address,
        mut calls: TxContext,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Evm>, NodeError> {
        let (asked, limit) = (calls.fees, self.limit(bid.policy));
        calls.fees = fees::at_most(asked, bid.urgency.offer(fees::cap(asked), 0, limit));
        if let Err(refusal) = fees::check(calls.fees, limit) {
            return Err(recovery.expense(&calls).explain(refusal, "evm_gas_price").into());
        }
        let unsigned = recovery.clone().with_policy(bid.policy).prepare(calls.clone().sent_by(sender))?;
        bid.urgency.unless_unknown(self.preflight(&unsigned).await, NodeError::is_refused)?;
        if calls.fees != asked {
            return Ok(unsigned.with_warning(Code::GasPriceTooHigh, recovery.expense(&calls).at_limit("evm_gas_price")));
        }
        Ok(unsigned)
    }
}

impl<T> EvmChain<'_, T> {
    /// Parses an address that comes from the caller, not from the service.
    pub(super) fn parse(&self, text: &str, at: &'static str) -> Result<Address, Refusal> {
        address::parse(self.chain_id, text).map_err(|error| Refusal::new(error, at))
    }
}
