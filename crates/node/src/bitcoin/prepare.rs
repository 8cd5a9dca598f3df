//! Prepares orders, redemptions and refunds with the coins and the fee rate that the chain reports.

use countersign::bitcoin::recover::{Fee, FundingSource, Payout, Recovery};
use countersign::bitcoin::{Bitcoin, FeeRate};
use countersign::{Asset, Policy, Role, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use super::BitcoinChain;
use super::payment::Spendable;
use crate::contracts::Description;
use crate::error::NodeError;
use crate::nodes::Speed;

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

    /// Prepares a redemption or a refund of exactly the output that the evidence is about: see [`BitcoinChain::spendable`].
    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let rate = self.rate_of(recovery, speed, policy).await?;
        let spendable = self.spendable(recovery, rate).await?;
        self.build(recovery, account, &spendable, rate, policy)
    }

    /// Returns the fee rate of a recovery. A rate above the policy is refused when the transaction is built, which shows what it costs.
    async fn rate_of(&self, recovery: &Recovery, speed: Speed, policy: &Policy) -> Result<FeeRate, NodeError> {
        let estimate = match recovery.role() {
            Role::Redeem => self.urgent_fee_rate(speed, policy).await?,
            _ => self.median_fee_rate(speed).await?,
        };
        Ok(estimate.rate)
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
        let payout = |rate| Payout::new(spendable.fundings.clone(), account, Fee::Deducted(rate)).with_source(FundingSource::Chain);
        let rate = match spendable.replaces {
            Some(replaced) => replaced.min_rate(recovery.vsize(&payout(rate))?, policy)?.map_or(rate, |min| higher(rate, min)),
            None => rate,
        };
        Ok(recovery.clone().with_policy(policy).prepare(&payout(rate))?)
    }

    #[allow(clippy::unused_async, reason = "every family has the same methods")]
    pub(crate) async fn describe(&self, _: &Asset) -> Result<Description, NodeError> {
        Ok(Description::default())
    }

    /// Prepares a replacement of a recovery that was sent.
    ///
    /// It spends the payment of the HTLC, as a first recovery does, and pays more than what spends it in the mempool. A transaction that has
    /// left the mempool, or whose other inputs were spent, does not have to be replaced: then it is prepared afresh. The fee rate stays
    /// within the policy, because after a redemption was sent a slow one is better than none.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let limit = FeeRate::from_whole(policy.bitcoin_fee_rate);
        let rate = lower(self.rate_of(recovery, speed, policy).await?, limit);
        let spendable = self.spendable_again(recovery, sent, rate).await?;
        self.build(recovery, account, &spendable, rate, policy)
    }
}

/// Returns the fee of 1,000 vB, by which rates are compared.
fn per_thousand(rate: FeeRate) -> u64 {
    rate.fee(1_000).unwrap_or(u64::MAX)
}

pub(super) fn higher(one: FeeRate, other: FeeRate) -> FeeRate {
    if per_thousand(one) > per_thousand(other) { one } else { other }
}

fn lower(one: FeeRate, other: FeeRate) -> FeeRate {
    if per_thousand(one) > per_thousand(other) { other } else { one }
}
