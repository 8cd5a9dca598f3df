//! Bitcoin-like chains: Bitcoin and Litecoin.
//!
//! An endpoint is an Esplora server or, with `rpc+` before its URL, a node's own RPC. What is asked, and what the answers prove, is
//! decided by [`countersign::bitcoin::reader`].
//!
//! Specification: `docs/spec/bitcoin.md#reading-an-order`, `docs/spec/chains.md`.

mod prepare;
mod send;
mod wallet;

use std::pin::pin;
use std::time::Duration;

use countersign::bitcoin::Chain;
use countersign::bitcoin::reader::{NamedChain, NewestBlock, OnChain};
use countersign_core::reader::{Agree, FailureKind, Fault, Machine, Quorum};
use countersign_transport::Transport;
use futures_util::future::{Either, select};

use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::{Connection, Head};

pub use countersign::bitcoin::reader::TransactionStatus;
pub use wallet::FeeEstimate;

/// The time limit for one endpoint where all of them are heard.
const READING: Duration = Duration::from_secs(20);

/// A connected Bitcoin-like chain.
#[derive(Debug, Clone, Copy)]
pub struct BitcoinChain<'n, T> {
    pub(crate) connection: Connection<'n, T>,
    chain: Chain,
}

impl<'n, T: Transport> BitcoinChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        let chain = Chain::from_network(connection.network).ok_or_else(|| NodeError::NotConnected(connection.name.to_owned()))?;
        Ok(Self { connection, chain })
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.connection.read_one::<NewestBlock>(caller, &self.named()).await
    }

    fn on_chain<S>(&self, subject: S) -> OnChain<S> {
        OnChain::new(self.named(), subject)
    }

    fn named(&self) -> NamedChain {
        NamedChain::new(self.chain, self.connection.name)
    }

    /// Reads a subject from all endpoints, each within its own time limit.
    async fn hear_all<M: Machine<Output: Agree>>(&self, subject: &M::Subject) -> Result<Quorum<M::Output>, NodeError> {
        let needed = usize::try_from(self.connection.needed()).unwrap_or(usize::MAX);
        let mut quorum = Quorum::new(self.connection.callers().map(|caller| caller.endpoint.name()), needed)?;
        let read = |caller: Caller<'n, T>| async move {
            let (reading, limit) = (pin!(self.connection.read_one::<M>(caller, subject)), pin!(caller.transport.sleep(READING)));
            Ok(match select(reading, limit).await {
                Either::Left((Ok(output), _)) => Ok(output),
                // The subject is the caller's.
                Either::Left((Err(NodeError::Refused(refusal)), _)) => return Err(NodeError::Refused(refusal)),
                Either::Left((Err(error), _)) => Err(Fault::Unanswered(error.failure())),
                Either::Right(_) => Err(Fault::Unanswered(FailureKind::Timeout.into())),
            })
        };
        for (caller, outcome) in self.connection.callers().zip(self.connection.each(read).await) {
            quorum.hear(caller.endpoint.name(), outcome?);
        }
        Ok(quorum)
    }
}
