//! Prepares orders, redemptions and refunds with the coins and the fee rate that the chain reports.

use countersign::bitcoin::reader::{Plan, Preflight, decode};
use countersign::bitcoin::recover::{Fee, FundingSource, Payout, Recovery};
use countersign::bitcoin::transaction::replacement;
use countersign::bitcoin::{Bitcoin, FeeRate};
use countersign::{Asset, Code, Policy, Role, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::Submission;
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
        Ok(replacement(order, &transaction, &prevouts, rate)?)
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
        Ok(warned(self.build(recovery, account, &spendable, rate, bid.policy)?, is_lowered))
    }

    /// Returns the fee rate of a recovery, and whether it is lower than the chain asks for. A rate above the policy is refused when the
    /// transaction is built, which shows what it costs.
    async fn rate_of(&self, recovery: &Recovery, bid: Bid<'_>) -> Result<(FeeRate, bool), NodeError> {
        let estimate = match recovery.role() {
            Role::Redeem => self.urgent_fee_rate(bid.speed, bid.policy).await?,
            _ => self.median_fee_rate(bid.speed).await?,
        };
        let (asked, limit) = (estimate.rate, FeeRate::from_whole(bid.policy.bitcoin.fee_rate));
        let offered = bid.offer(per_thousand(asked).into(), 0, per_thousand(limit).into());
        let is_lowered = offered < per_thousand(asked).into();
        Ok((if is_lowered { limit } else { asked }, is_lowered))
    }

    /// Builds the transaction at a fee rate, or at the higher one with which nodes let it replace another transaction.
    fn build(
        &self,
        recovery: &Recovery,
        account: &str,
        spendable: &Spendable,
        rate: FeeRate,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let payout = |rate| {
            let payout = Payout::new(spendable.fundings.clone(), account, Fee::Deducted(rate)).with_source(FundingSource::Chain);
            payout.with_exceptions(spendable.exceptions)
        };
        let rate = match spendable.replaces {
            Some(replaced) => replaced.min_rate(recovery.vsize(&payout(rate))?, policy)?.map_or(rate, |min| higher(rate, min)),
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
    /// within the policy, because after a redemption was sent a slow one is better than none.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let (rate, is_lowered) = self.rate_of(recovery, bid).await?;
        let spendable = self.spendable_again(recovery, sent, rate).await?;
        Ok(warned(self.build(recovery, account, &spendable, rate, bid.policy)?, is_lowered))
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

/// Returns the fee of 1,000 vB, by which rates are compared.
fn per_thousand(rate: FeeRate) -> u64 {
    rate.fee(1_000).map_or(u64::MAX, |fee| fee.to_sat())
}

pub(super) fn higher(one: FeeRate, other: FeeRate) -> FeeRate {
    if per_thousand(one) > per_thousand(other) { one } else { other }
}
