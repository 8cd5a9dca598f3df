//! Prepares orders, redemptions and refunds with the coins and the fee rate that the chain reports.

use countersign::bitcoin::recover::{Fee, Payout, Recovery};
use countersign::bitcoin::{Bitcoin, FeeRate};
use countersign::{Asset, Policy, Role, UnsignedOrder, VerifiedOrder};
use countersign_core::reader::Submission;
use countersign_transport::Transport;

use super::BitcoinChain;
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

    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let fundings = self.outputs(&recovery.htlc.tree).await?.to_recover(recovery.htlc.amount);
        let rate = self.rate_of(recovery, speed, policy).await?;
        Ok(recovery.clone().with_policy(policy).prepare(&Payout::new(fundings, account, Fee::Deducted(rate)))?)
    }

    async fn rate_of(&self, recovery: &Recovery, speed: Speed, policy: &Policy) -> Result<FeeRate, NodeError> {
        let estimate = match recovery.role() {
            Role::Redeem => self.urgent_fee_rate(speed, policy).await?,
            _ => self.fee_rate(speed, policy).await?,
        };
        Ok(estimate.rate)
    }

    #[allow(clippy::unused_async, reason = "every family has the same methods")]
    pub(crate) async fn describe(&self, _: &Asset) -> Result<Description, NodeError> {
        Ok(Description::default())
    }

    /// Prepares a replacement, which spends the same outputs of the HTLC.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let ((fundings, min, vsize), now) = (self.replaceable(sent, policy).await?, self.rate_of(recovery, speed, policy).await?);
        let rate = if now.fee(vsize) > min.fee(vsize) { now } else { min };
        Ok(recovery.clone().with_policy(policy).prepare(&Payout::new(fundings, account, Fee::Deducted(rate)))?)
    }
}
