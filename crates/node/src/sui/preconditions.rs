//! What must hold on Sui before an order is paid, and before its secret leaves. The rehearsal of a redemption shows whether the receiver
//! can be paid: see [`Rehearsal`](countersign::sui::reader::Rehearsal).

use countersign::{Precondition, U256};
use countersign_core::reader::check_balance;
use countersign_transport::Transport;

use super::SuiChain;
use super::prepare::{REDEEM_STORAGE, REDEEM_UNITS};
use crate::error::NodeError;
use crate::preconditions::End;

impl<T: Transport> SuiChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        if let (Precondition::Redeemer, Some(account)) = (item, end.redeemer) {
            let budget = self.gas_price(end.speed).await?.saturating_mul(REDEEM_UNITS).saturating_add(REDEEM_STORAGE);
            let has = self.balance_of(account, None).await?;
            check_balance("/balance", "SUI for the gas of a redemption", U256::from(budget), has)?;
        }
        Ok(Vec::new())
    }
}
