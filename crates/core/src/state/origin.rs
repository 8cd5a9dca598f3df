//! What the payloads of an unsigned order were created from.

use super::VerifiedOrder;
use crate::family::ChainFamily;
use crate::report::Summary;

/// What the payloads were created from.
pub(super) enum Origin<F: ChainFamily> {
    Order(VerifiedOrder<F>),
    /// A recovery has no response, only the record that it was rebuilt from.
    Recovery {
        order_id: Option<String>,
        chain: String,
        summary: Summary,
    },
}

impl<F: ChainFamily> Origin<F> {
    pub(super) fn order_id(&self) -> Option<&str> {
        match self {
            Self::Order(order) => Some(order.order_id()),
            Self::Recovery { order_id, .. } => order_id.as_deref(),
        }
    }

    pub(super) fn chain(&self) -> &str {
        match self {
            Self::Order(order) => order.chain(),
            Self::Recovery { chain, .. } => chain,
        }
    }

    pub(super) const fn verified(&self) -> Option<&VerifiedOrder<F>> {
        match self {
            Self::Order(order) => Some(order),
            Self::Recovery { .. } => None,
        }
    }
}
