//! What must hold on Sui before an order is paid, and before its secret leaves. The rehearsal of a redemption shows whether the receiver
//! can be paid: see [`Rehearsal`](countersign::sui::reader::Rehearsal).

use countersign::sui::reader::CoinDecimals;
use countersign::{U256, evidence::Precondition};
use countersign_core::reader::{Ask, check_balance, check_worth};
use countersign_transport::Transport;

use super::SuiChain;
use super::prepare::redemption_budget;
use super::wallet::type_of;
use crate::error::NodeError;
use crate::preconditions::End;

impl<T: Transport> SuiChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        if let (Precondition::Decimals, Some(token)) = (item, &end.asset.token) {
            let asked = CoinDecimals { coin_type: type_of(token)?, pinned: end.asset.record.decimals };
            self.connection.agreed::<Ask<_>>(&self.on(asked)).await?.0?;
            return Ok(Vec::new());
        }
        let Some(account) = end.redeemer else { return Ok(Vec::new()) };
        let payout = end.coins();
        if item == Precondition::Redeemer || (item == Precondition::Payout && payout.is_some()) {
            let budget = U256::from(redemption_budget(self.gas_price(end.bid.speed).await?, end.bid.policy)?);
            match payout.filter(|_| item == Precondition::Payout) {
                Some(payout) => check_worth(payout, budget)?,
                None => check_balance("/balance", "SUI for the gas of a redemption", budget, self.balance_of(account, None).await?)?,
            }
        }
        Ok(Vec::new())
    }
}
