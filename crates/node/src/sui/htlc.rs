//! Reads the state of one HTLC from every endpoint.

use countersign_transport::Transport;

use super::SuiChain;

impl<T: Transport> SuiChain<'_, T> {}
