//! The wallet context for signing.

use countersign::solana::reader::{self, ContextQuery, wallet_context};
use countersign::solana::{Address, TxContext};
use countersign_transport::Transport;

use super::SolanaChain;
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Stakes;

impl<T: Transport> SolanaChain<'_, T> {
    /// Reads the context for signing the next transaction: a recent blockhash of a finalized block, the block height up to which it is
    /// valid, and a priority fee.
    ///
    /// `written` are the accounts that the transaction writes to. For each recent slot, nodes report the lowest price of a compute unit
    /// that was paid to write to them. Each endpoint states the 25th (slow), 50th (normal) or 90th (fast) percentile of these prices, and
    /// the context uses the median of the endpoints. If it is 0, no fee is set. The limit of the policy is checked when the context is
    /// used.
    ///
    /// The blockhash is the newest that as many endpoints as must agree list among those of the newest 50 blocks, so that at least 100 of
    /// the 150 blocks are left for which it is valid. With a false or an old one the transaction would never be mined.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if too few endpoints answer, or if they show no such blockhash.
    pub async fn context(&self, written: &[Address], speed: Speed) -> Result<TxContext, NodeError> {
        self.priced(written, speed, Stakes::Time).await
    }

    /// Reads the context for a transaction with these stakes.
    pub(super) async fn priced(&self, written: &[Address], speed: Speed, stakes: Stakes) -> Result<TxContext, NodeError> {
        let percentile = match speed {
            Speed::Slow => 25,
            Speed::Normal => 50,
            Speed::Fast => 90,
        };
        let query = ContextQuery::new(self.connection.network, written, percentile);
        let offers = self.connection.all_agreed::<reader::Context>(&query, stakes).await?;
        let needed = self.connection.needed();
        wallet_context(&offers, usize::try_from(needed).unwrap_or(usize::MAX), stakes.makes_public()).ok_or_else(|| {
            let detail = "; they show no recent blockhash in common".to_owned();
            NodeError::Disagree { agreed: 1, needed, detail }
        })
    }
}
