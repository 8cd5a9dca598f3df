//! Prepares orders, redemptions and refunds with the coins and the fee rate that the chain reports.

use countersign::bitcoin::bitcoin::Amount;
use countersign::bitcoin::reader::fees::{higher, per_thousand};
use countersign::bitcoin::reader::{Plan, Preflight, decode};
use countersign::bitcoin::recover::{Fee, FundingSource, Payout, Recovery};
use countersign::bitcoin::transaction::replacement;
use countersign::bitcoin::{Bitcoin, FeeRate};
use countersign::{Code, Policy, Refusal, Role, UnsignedOrder, VerifiedOrder, trust::Asset};
use countersign_core::reader::{Submission, overdue_limit};
use countersign_transport::Transport;

use super::BitcoinChain;
use super::payment::Spendable;
use crate::contracts::Description;
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Bid;

impl<T: Transport> BitcoinChain<'_, T> {
    /// Prepares an order. Nothing is simulated, because the coins have just been read together with the transactions that created them.
    pub(crate) async fn prepare(
        &self,
        order: &VerifiedOrder<Bitcoin>,
        owner: &str,
        speed: Speed,
        policy: &Policy,
        _own: bool,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        Ok(order.prepare(self.wallet(owner, speed, policy).await?)?)
    }

    /// Prepares a payment that replaces one that was sent and is not in a block, for a higher fee: see [`replacement`].
    pub(crate) async fn prepare_raised(
        &self,
        order: &VerifiedOrder<Bitcoin>,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let (transaction, id) = decode(sent)?;
        // An endpoint that cannot show the transaction at all does not matter: the inputs of a mined one are spent.
        if let Ok(Some(status)) = self.status(&id.to_string()).await
            && status.confirmations > 0
        {
            let message = "the payment is in a block already, so nothing can replace it".to_owned();
            return Err(NodeError::Rejected { endpoint: self.connection.name.to_owned(), message });
        }
        let Preflight { prevouts, .. } = self.check(Plan::new(&transaction, None)).await?;
        let rate = self.fee_rate(speed, policy).await?.rate;
        let raised = replacement(order, &transaction, &prevouts, rate)?;
        // One that pays more than that does not wait because of its fee.
        let max = overdue_limit(per_thousand(rate).to_sat().into());
        match &raised.payloads().payment {
            Some(payment) if u128::from(payment.fee.to_sat()).saturating_mul(1_000) > max.saturating_mul(payment.vsize.into()) => {
                let refusal = Refusal::new(Code::FeeRateTooHigh, "/fee_rate").with_actual(payment.fee.to_sat());
                Err(refusal.with_reason("the payment that was sent offers about four times what is paid now").into())
            }
            _ => Ok(raised),
        }
    }

    /// Prepares a redemption or a refund of exactly the output that the evidence is about: see [`BitcoinChain::spendable`].
    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let (rate, is_lowered) = self.rate_of(recovery, bid).await?;
        let spendable = self.spendable(recovery, rate).await?;
        // Nothing is overdue: what only some endpoints show does not raise the rate.
        Ok(warned(self.build(recovery, account, &spendable, rate, per_thousand(rate), bid.policy)?, is_lowered))
    }

    /// Returns the middle of the fee rates, and whether the limit of the policy is paid instead. A rate above the policy is refused when the
    /// transaction is built, which shows what it costs. A redemption pays at least what every node relays, because all of them see its secret.
    async fn rate_of(&self, recovery: &Recovery, bid: Bid<'_>) -> Result<(FeeRate, bool), NodeError> {
        let (role, limit) = (recovery.role(), FeeRate::from_whole(bid.policy.bitcoin.fee_rate));
        let shown = self.shown_fee_rate(bid.speed, bid.stakes(role)).await?.rate;
        let asked = if role == Role::Redeem { higher(shown, self.chain.min_fee_rate()) } else { shown };
        let offered = bid.urgency.offer(per_thousand(asked).to_sat().into(), 0, per_thousand(limit).to_sat().into());
        let is_lowered = offered < per_thousand(asked).to_sat().into();
        Ok((if is_lowered { limit } else { asked }, is_lowered))
    }

    /// Builds the transaction at a fee rate, or at the higher one with which nodes let it replace another transaction. `max` is the highest
    /// one, as the fee of 1,000 vB, for what the own transaction or a single endpoint requires.
    fn build(
        &self,
        recovery: &Recovery,
        account: &str,
        spendable: &Spendable,
        rate: FeeRate,
        max: Amount,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let payout = |rate| {
            let payout = Payout::new(spendable.fundings.clone(), account, Fee::Deducted(rate)).with_source(FundingSource::Chain);
            payout.with_exceptions(spendable.exceptions)
        };
        let rate = match spendable.replaces {
            Some(replaced) => replaced.min_rate(recovery.vsize(&payout(rate))?, max, policy)?.map_or(rate, |min| higher(rate, min)),
            None => rate,
        };
        Ok(recovery.clone().with_policy(policy).prepare(payout(rate))?)
    }

    #[allow(clippy::unused_async, reason = "every family has the same methods")]
    pub(crate) async fn describe(&self, _: &Asset) -> Result<Description, NodeError> {
        Ok(Description::default())
    }

    /// Prepares a replacement of a recovery that was sent.
    ///
    /// It spends the payment of the HTLC, as a first recovery does, and pays more than what spends it in the mempool. A transaction that
    /// has left the mempool, or whose other inputs were spent, does not have to be replaced: then it is prepared afresh. The fee rate stays
    /// within the policy, because after a redemption was sent a slow one is better than none. To replace the own transaction, it is at most
    /// four times the median of this moment: one that pays more does not wait because of its fee.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let (rate, is_lowered) = self.rate_of(recovery, bid).await?;
        let spendable = self.spendable_again(recovery, sent, rate).await?;
        let max = overdue_limit(per_thousand(rate).to_sat().into()).min(u128::from(bid.policy.bitcoin.fee_rate).saturating_mul(1_000));
        let max = Amount::from_sat(u64::try_from(max).unwrap_or(u64::MAX));
        Ok(warned(self.build(recovery, account, &spendable, rate, max, bid.policy)?, is_lowered))
    }
}

/// Says in words that a fee is lower than the chain asks for.
fn warned(order: UnsignedOrder<Bitcoin>, is_lowered: bool) -> UnsignedOrder<Bitcoin> {
    if !is_lowered {
        return order;
    }
    let said = "the chain asks for more than the policy's bitcoin_fee_rate, so it pays that limit and may wait";
    order.with_warning(Code::FeeRateTooHigh, said)
}
