//! EVM chains.

use countersign::{HtlcState, HtlcTerms, SeenAt};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;

use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::{Connection, Head};

/// A connected EVM chain.
#[derive(Debug, Clone, Copy)]
pub struct EvmChain<'n, T> {
    connection: Connection<'n, T>,
}

impl<'n, T: Transport> EvmChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        Ok(Self { connection })
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        let _ = caller;
        Err(NodeError::NotConnected(self.connection.name.to_owned()))
    }

    /// Reads the state of one HTLC from every endpoint.
    ///
    /// # Errors
    ///
    /// [`NodeError`]; a failed read tells nothing.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        let _ = terms;
        Err(NodeError::NotConnected(self.connection.name.to_owned()))
    }

    /// Broadcasts a signed transaction. One that the chain knows already counts as accepted.
    ///
    /// # Errors
    ///
    /// [`NodeError::Rejected`] if the chain refuses it; any other [`NodeError`] if nothing tells whether it arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let _ = transaction;
        Err(NodeError::NotConnected(self.connection.name.to_owned()))
    }
}
