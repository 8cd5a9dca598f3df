//! What must hold on an EVM chain before an order is paid, and before its secret leaves.

use countersign::evm::address::from_account;
use countersign::evm::alloy_primitives::U256;
use countersign::evm::reader::{Receiver, ReceiverCheck, Served, ServedCheck, fees, has_l1_fee, needs_lower_height};
use countersign::evm::recover::{GAS_LIMIT, gas_limit};
use countersign::{chains::Finality, evidence::Precondition};
use countersign_core::reader::check_worth;
use countersign_transport::Transport;

use super::EvmChain;
use crate::error::NodeError;
use crate::preconditions::End;

/// A redemption uses less than this part of its gas limit, beside the gas for its data. Only what a payout is worth is compared with it; an
/// account must have the coins for the whole limit.
const USED_GAS: u64 = GAS_LIMIT / 3;

impl<T: Transport> EvmChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        let (asset, finality) = (end.asset, end.bid.policy.finality_of(end.asset, end.payout.unwrap_or(U256::MAX)).finality);
        let token = asset.token.as_ref().map(|token| self.parse(&token.text, "/token")).transpose()?;
        let htlc = asset.htlc.as_ref().and_then(from_account);
        match item {
            Precondition::FinalityMark if matches!(finality, Finality::Safe | Finality::Finalized) => {
                self.served(Served::Mark(finality)).await?
            }
            Precondition::LowerHeight if needs_lower_height(self.chain_id, asset.chain.profile) => self.served(Served::LowerHeight).await?,
            Precondition::Decimals => {
                if let Some(token) = token {
                    self.served(Served::Decimals { token, decimals: asset.record.decimals }).await?;
                }
            }
            Precondition::Receiver => {
                if let (Some(receiver), Some(htlc)) = (end.receiver, htlc) {
                    let subject = Receiver { token, htlc, receiver: self.parse(receiver, "/destination")?, amount: end.held() };
                    self.connection.agreed::<ReceiverCheck>(&self.on_chain(subject)).await?.0?;
                }
            }
            Precondition::Payout => {
                if let (Some(payout), Some(htlc)) = (end.coins(), htlc) {
                    let gas = USED_GAS.saturating_add(self.data_gas(htlc).await?);
                    let gas_cost = self.gas_cost(end, gas).await?;
                    if has_l1_fee(self.chain_id) {
                        self.served(Served::Worth { payout, gas_cost }).await?;
                    } else {
                        check_worth(payout, gas_cost)?;
                    }
                }
            }
            Precondition::Redeemer => {
                if let (Some(account), Some(htlc)) = (end.redeemer, htlc) {
                    let gas = gas_limit(end.bid.policy, self.data_gas(htlc).await?)?;
                    let (account, gas_cost) = (self.parse(account, "/sender")?, self.gas_cost(end, gas).await?);
                    self.served(Served::Coins { account, gas_cost }).await?;
                }
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    async fn served(&self, asked: Served) -> Result<(), NodeError> {
        Ok(self.connection.agreed::<ServedCheck>(&self.on_chain(asked)).await?.0?)
    }

    /// Returns what this much gas costs a redemption today, in wei.
    async fn gas_cost(&self, end: &End<'_>, gas: u64) -> Result<U256, NodeError> {
        let account = end.redeemer.map(|account| self.parse(account, "/sender")).transpose()?.unwrap_or_default();
        let calls = self.calls(account, end.bid.speed, end.bid.policy).await?;
        Ok(U256::from(gas).saturating_mul(U256::from(fees::cap(calls.fees))))
    }
}
