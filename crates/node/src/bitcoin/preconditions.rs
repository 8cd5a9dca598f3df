//! What must hold on a Bitcoin-like chain before an order is paid, and before its secret leaves.

use countersign::bitcoin::reader::fees::higher;
use countersign::bitcoin::reader::{VersionCheck, version};
use countersign::chains::REDEMPTION_VBYTES;
use countersign::{U256, evidence::Precondition};
use countersign_core::reader::check_worth;
use countersign_transport::Transport;

use super::BitcoinChain;
use crate::error::NodeError;
use crate::preconditions::End;
use crate::prepare::Stakes;

impl<T: Transport> BitcoinChain<'_, T> {
    pub(crate) async fn precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        if let (Precondition::Payout, Some(payout)) = (item, end.payout) {
            // As the redemption itself will.
            let rate = higher(self.shown_fee_rate(end.bid.speed, Stakes::Secret).await?.rate, self.chain.min_fee_rate());
            check_worth(payout, U256::from(rate.fee(REDEMPTION_VBYTES).map_or(u64::MAX, |fee| fee.to_sat())))?;
        }
        if item == Precondition::NodeVersion && version::least(self.chain).is_some() {
            self.connection.agreed::<VersionCheck>(&self.named()).await?.0?;
        }
        Ok(Vec::new())
    }
}
