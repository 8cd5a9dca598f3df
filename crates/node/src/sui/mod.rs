//! Sui, read over gRPC-web. What is asked, and what the answers mean, is in [`countersign::sui::reader`].
//!
//! Specification: `docs/spec/sui.md#reading-an-order`, `docs/spec/chains.md`.

mod package;
mod preconditions;
mod prepare;
mod send;
mod sent;
mod wallet;

use countersign::sui::reader::{self, NewestCheckpoint, On};
use countersign::sui::sui_sdk_types::Address;
use countersign::{Code, Refusal};
use countersign_core::reader::Ask;
use countersign_transport::Transport;

pub use reader::{PackageDescription, Preflight, Receipt, UpgradeAuthority};

use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::families::shared_methods;
use crate::nodes::{Connection, Head, Nodes};

/// A connected Sui network.
#[derive(Debug)]
pub struct SuiChain<'n, T> {
    pub(crate) connection: Connection<'n, T>,
}

impl<T> Clone for SuiChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SuiChain<'_, T> {}

impl<T: Transport> Nodes<T> {
    /// Returns a connected Sui network.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint, belongs to another family, or is neither the main network nor
    /// the test network.
    pub fn sui(&self, chain: &str) -> Result<SuiChain<'_, T>, NodeError> {
        SuiChain::new(self.connection(chain)?)
    }
}

shared_methods! { SuiChain }

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Connects the main network or the test network. The development network is restarted too often to be pinned.
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        match reader::identity(connection.network) {
            Ok(_) => Ok(Self { connection }),
            Err(_) => Err(NodeError::NotConnected(connection.name.to_owned())),
        }
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.connection.read_one::<Ask<_>>(caller, &self.on(NewestCheckpoint)).await
    }

    /// Returns the subject of a reading of this network.
    pub(crate) fn on<S>(&self, subject: S) -> On<S> {
        On::new(self.connection.network.clone(), subject)
    }
}

/// Parses an address that comes from the caller, not from an endpoint.
fn own_address(text: &str, at: &'static str) -> Result<Address, Refusal> {
    text.parse().map_err(|_| Refusal::new(Code::AddressMalformed, at).with_actual(text))
}
