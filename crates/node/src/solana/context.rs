//! The wallet context for signing.

use countersign::solana::reader::{self, BlockhashQuery, ContextQuery, wallet_context};
use countersign::solana::{Address, TxContext};
use countersign_transport::Transport;

use super::SolanaChain;
use crate::error::NodeError;
use crate::nodes::Speed;

impl<T: Transport> SolanaChain<'_, T> {
    /// Reads the context for signing the next transaction: a confirmed blockhash, the block height up to which it is valid, and a priority
    /// fee.
    ///
    /// `written` are the accounts that the transaction writes to. For each recent slot, nodes report the lowest price of a compute unit
    /// that was paid to write to them. Each endpoint states the 25th (slow), 50th (normal) or 90th (fast) percentile of these prices, and
    /// the context uses the median of the endpoints. If it is 0, no fee is set. The limit of the policy is checked when the context is
    /// used.
    ///
    /// A blockhash is used only if as many endpoints as must agree know it. With a false one the transaction would never be mined.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if too few endpoints answer, or if they know none of the offered blockhashes.
    pub async fn context(&self, written: &[Address], speed: Speed) -> Result<TxContext, NodeError> {
        let percentile = match speed {
            Speed::Slow => 25,
            Speed::Normal => 50,
            Speed::Fast => 90,
        };
        let network = self.connection.network;
        let query = ContextQuery::new(network, written, percentile);
        let offers = self.connection.all_agreed::<reader::Context>(&query).await?;
        // A single endpoint has said already that it knows its blockhash.
        if let ([only], 1) = (offers.as_slice(), self.connection.needed()) {
            return Ok(wallet_context(only, &offers));
        }
        let mut error = NodeError::NotConnected(self.connection.name.to_owned());
        for offer in &offers {
            match self.connection.agreed::<reader::Blockhash>(&BlockhashQuery::new(network, offer.blockhash())).await {
                Ok(_) => return Ok(wallet_context(offer, &offers)),
                Err(unknown) => error = unknown,
            }
        }
        Err(error)
    }
}
