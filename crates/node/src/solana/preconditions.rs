//! What must hold on Solana before an order is paid, and before its secret leaves.

use countersign::solana::Address;
use countersign::solana::reader::{PayoutAsked, PayoutCheck, PayoutQuery};
use countersign::solana::recover::max_fee;
use countersign::{U256, evidence::Precondition};
use countersign_core::reader::check_worth;
use countersign_transport::Transport;

use super::{SolanaChain, parse};
use crate::error::NodeError;
use crate::preconditions::End;
use crate::prepare::Stakes;

impl<T: Transport> SolanaChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        let to = end.receiver.map(|receiver| parse(receiver, "/destination")).transpose()?;
        let payer = end.redeemer.map(|account| parse(account, "/sender")).transpose()?;
        let asked = match (item, to, payer) {
            (Precondition::Decimals, ..) if end.asset.token.is_some() => PayoutAsked::Decimals,
            (Precondition::Mint, ..) if end.asset.token.is_some() => PayoutAsked::Mint,
            (Precondition::Receiver, Some(to), _) => {
                PayoutAsked::Receiver { to, amount: end.payout.and_then(|payout| u64::try_from(payout).ok()) }
            }
            (Precondition::Redeemer, Some(to), Some(account)) => {
                PayoutAsked::Payer { account, to, fee: self.redemption_fee(account, end).await? }
            }
            (Precondition::Payout, _, Some(account)) => {
                if let Some(payout) = end.coins() {
                    check_worth(payout, U256::from(self.redemption_fee(account, end).await?))?;
                }
                return Ok(Vec::new());
            }
            _ => return Ok(Vec::new()),
        };
        let query = PayoutQuery::new(self.connection.network, end.asset, asked)?;
        Ok(self.judged::<_, PayoutCheck>(&query).await?.powers)
    }

    /// Returns the highest fee of a redemption that `payer` sends now, in lamports.
    async fn redemption_fee(&self, payer: Address, end: &End<'_>) -> Result<u64, NodeError> {
        Ok(max_fee(self.priced(&[payer], end.bid.speed, Stakes::Secret).await?.priority_fee, end.bid.policy)?)
    }
}
