//! The newest block of a chain, on which enough endpoints agree.

use countersign::reader::{HeadReader, agreed_head};
use countersign_core::reader::{Doubt, Known};
use countersign_transport::{Transport, gather};

use crate::error::NodeError;
use crate::nodes::{Head, Nodes};

impl<T: Transport> Nodes<T> {
    /// Reads the newest block of a chain from its endpoints, and requires that it is neither too old nor in the future. `now` is the
    /// caller's clock in Unix seconds.
    ///
    /// The block is the one that as many endpoints as must agree have reached. One that is behind, or ahead of time, does not decide. Call
    /// this for both chains before an order is paid, and again before the payment is sent.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Head`] if the block is older than blocks of the family become, or more than a minute ahead of the clock. Returns
    /// [`NodeError::NotConnected`] if the chain is not connected, and another [`NodeError`] if too few endpoints answer.
    pub async fn newest_block(&self, chain: &str, now: u64) -> Result<Head, NodeError> {
        let connection = self.connection(chain)?;
        let start = |known: &Known| HeadReader::new(connection.network, connection.name, known);
        let quorum = gather(self, connection.transport, self.memory(), chain, start, |one| one.time_at(now)).await?;
        agreed_head(&quorum, now).map_err(|doubt| match doubt {
            Doubt::Held(doubt) => NodeError::Head { chain: connection.name.to_owned(), doubt },
            other => connection.doubt(other),
        })
    }
}
