//! Bitcoin-like chains: Bitcoin and Litecoin.
//!
//! An endpoint is an Esplora server or, with `rpc+` before its URL, a node's own RPC. What is asked, and what the answers prove, is
//! decided by [`countersign::bitcoin::reader`].
//!
//! Specification: `docs/spec/bitcoin.md#reading-an-order`, `docs/spec/chains.md`.

mod payment;
mod preconditions;
mod prepare;
mod send;
mod sent;
mod wallet;

use countersign::bitcoin::Chain;
use countersign::bitcoin::reader::{NamedChain, NewestBlock, OnChain};
use countersign_transport::Transport;

use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::families::shared_methods;
use crate::nodes::{Connection, Head, Nodes};

pub use countersign::bitcoin::reader::TransactionStatus;
pub use wallet::FeeEstimate;

/// A connected Bitcoin-like chain.
#[derive(Debug, Clone, Copy)]
pub struct BitcoinChain<'n, T> {
    pub(crate) connection: Connection<'n, T>,
    chain: Chain,
}

impl<T: Transport> Nodes<T> {
    /// Returns a connected Bitcoin-like chain.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    pub fn bitcoin(&self, chain: &str) -> Result<BitcoinChain<'_, T>, NodeError> {
        BitcoinChain::new(self.connection(chain)?)
    }
}

shared_methods! { BitcoinChain }

impl<'n, T: Transport> BitcoinChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        let chain = Chain::from_network(connection.network).ok_or_else(|| NodeError::NotConnected(connection.name.to_owned()))?;
        Ok(Self { connection, chain })
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.connection.read_one::<NewestBlock>(caller, &self.named()).await
    }

    pub(crate) fn on_chain<S>(&self, subject: S) -> OnChain<S> {
        OnChain::new(self.named(), subject)
    }

    pub(crate) fn named(&self) -> NamedChain {
        NamedChain::new(self.chain, self.connection.name)
    }
}
