//! Reads the state of one HTLC from every endpoint.

use countersign::sui::reader::Htlc;
use countersign::{HtlcState, HtlcTerms, SeenAt};
use countersign_client::Transport;

use super::SuiChain;
use crate::error::NodeError;

impl<T: Transport> SuiChain<'_, T> {
    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest checkpoint. The endpoints must agree.
    ///
    /// The state comes from the order that the pinned registry stores. The order must have the type that the pinned package defines, and
    /// the expected coin. How an order ended comes from the event of the transaction that last changed it. Without the event, the state is
    /// [`HtlcState::Unclear`]. A transaction in a checkpoint is final.
    ///
    /// The order is read under the id in the record. If the registry has an order under another id that follows from the terms, the state
    /// is unclear, because a call with the record's id would fail.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms contain an invalid address or swap id. Returns another [`NodeError`] if no endpoint
    /// answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        self.connection.read_htlc::<Htlc>(terms).await
    }
}
