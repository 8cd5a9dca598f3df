//! What must hold on Sui before an order is paid, and before its secret leaves.

use countersign::sui::htlc;
use countersign::sui::reader::{CoinDecimals, DENY_LIST, InitialSharedVersion, Receiver, ReceiverCheck};
use countersign::{Code, Refusal, U256, evidence::Precondition};
use countersign_core::reader::{Ask, check_balance, check_worth};
use countersign_transport::Transport;

use super::prepare::redemption_budget;
use super::wallet::type_of;
use super::{SuiChain, own_address};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::preconditions::End;

impl<T: Transport> SuiChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        let coin_type = end.asset.token.as_ref().map(type_of).transpose()?;
        if let (Precondition::Decimals, Some(coin_type)) = (item, &coin_type) {
            let asked = CoinDecimals { coin_type: coin_type.clone(), pinned: end.asset.record.decimals };
            self.connection.agreed::<Ask<_>>(&self.on(asked)).await?.0?;
            return Ok(Vec::new());
        }
        if let (Precondition::Receiver, Some(coin_type), Some(receiver)) = (item, &coin_type, end.receiver) {
            // Nobody can be denied SUI itself.
            if *coin_type != htlc::sui() {
                // Far above the reference price, which the next epoch may have raised when a node simulates.
                let gas_price = self.gas_price(Speed::Fast).await?;
                let list = self.connection.agreed::<Ask<_>>(&self.on(InitialSharedVersion(DENY_LIST))).await?.0;
                let no_list =
                    || Refusal::new(Code::SimulationReverted, "/destination").with_reason("the network has no deny list of coins");
                let asked = Receiver::new(own_address(receiver, "/destination")?, coin_type, list.ok_or_else(no_list)?, gas_price)?;
                self.connection.agreed::<ReceiverCheck>(&self.on(asked)).await?.0?;
            }
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
