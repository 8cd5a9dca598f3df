//! What a contract's event says about an order.

use ruint::aliases::U256;

use super::HtlcState;
use crate::wire::SecretHash;

/// An event of an HTLC contract about one order. `Id` is the family's type of order ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HtlcEvent<Id> {
    /// The order was funded.
    Initiated {
        /// The order's id.
        order_id: Id,
        /// SHA-256 of the secret.
        secret_hash: SecretHash,
        /// Amount in base units.
        amount: U256,
    },
    /// The order was redeemed.
    Redeemed {
        /// The order's id.
        order_id: Id,
        /// The secret. It was checked against the secret hash in the event, if the event has one.
        secret: [u8; 32],
    },
    /// The order was refunded.
    Refunded {
        /// The order's id.
        order_id: Id,
    },
}

impl<Id> HtlcEvent<Id> {
    /// Returns the id of the order that the event is about.
    pub const fn order_id(&self) -> &Id {
        match self {
            Self::Initiated { order_id, .. } | Self::Redeemed { order_id, .. } | Self::Refunded { order_id } => order_id,
        }
    }

    /// Returns the state of an order that has ended with this event: [`HtlcState::Unclear`] if it is not such an event, or if the secret
    /// does not hash to `secret_hash`, the hash of the verified terms.
    pub fn end(&self, secret_hash: SecretHash, transaction: Option<String>) -> HtlcState {
        match self {
            Self::Redeemed { secret, .. } if SecretHash::of(secret) == secret_hash => {
                HtlcState::Redeemed { secret: Some(*secret), transaction }
            }
            Self::Redeemed { .. } => HtlcState::Unclear("the order was redeemed with another secret".to_owned()),
            Self::Refunded { .. } => HtlcState::Refunded { transaction },
            Self::Initiated { .. } => HtlcState::Unclear("the order has ended, and its event is that of its funding".to_owned()),
        }
    }
}
