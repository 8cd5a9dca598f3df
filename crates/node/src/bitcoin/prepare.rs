//! Prepares orders, redemptions and refunds with the coins and the fee rate that the chain reports.

use countersign::bitcoin::Bitcoin;
use countersign::bitcoin::recover::{Fee, Payout, Recovery};
use countersign::{Asset, Policy, UnsignedOrder, VerifiedOrder};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;

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
        let (fundings, rate) = (self.fundings(&recovery.htlc.tree).await?, self.fee_rate(speed, policy).await?);
        Ok(recovery.clone().with_policy(policy).prepare(&Payout::new(fundings, account, Fee::Deducted(rate.rate)))?)
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
        sent: &KeptTransaction,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder<Bitcoin>, NodeError> {
        let ((fundings, min, vsize), now) = (self.replaceable(sent, policy).await?, self.fee_rate(speed, policy).await?.rate);
        let rate = if now.fee(vsize) > min.fee(vsize) { now } else { min };
        Ok(recovery.clone().with_policy(policy).prepare(&Payout::new(fundings, account, Fee::Deducted(rate)))?)
    }
}
