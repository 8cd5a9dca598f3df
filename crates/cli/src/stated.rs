//! How an order ends if only the service states it, and when that counts.

use countersign::OrderRecord;
use countersign_client::Secret;
use countersign_client::status::{State, Status};

/// What to say after an order has ended by a statement that counts.
pub(crate) const ONLY_STATED: &str = "this is only what the service states: look at your address";

/// An end of an order that only the service states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StatedEnd {
    Complete,
    Refunded,
    Expired,
    Lost,
}

impl StatedEnd {
    /// Returns the end that a status states; `None` if it states none.
    pub(crate) const fn from_status(status: &Status) -> Option<Self> {
        match status.state {
            State::Lost => Some(Self::Lost),
            _ if status.complete => Some(Self::Complete),
            State::Refunded => Some(Self::Refunded),
            State::Expired => Some(Self::Expired),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Refunded => "refunded",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }

    /// Returns whether the secret agrees with the statement. A completion and a loss need a secret that is out, because nobody can redeem
    /// without it. A refund needs the opposite: while the secret is out, the destination has to be redeemed. `has_left` is whether the
    /// secret may have left this machine.
    pub(crate) fn agrees_with_secret(self, record: &OrderRecord, has_left: bool) -> bool {
        match self {
            Self::Complete | Self::Lost => has_left || is_revealed(record),
            Self::Refunded => !has_left && !is_revealed(record),
            Self::Expired => true,
        }
    }

    /// Says what the service states, and what the user can do about it.
    pub(crate) fn statement(self) -> String {
        format!("the service states that the order is {}, and this program cannot check that: look at your address", self.name())
    }

    /// Says that the order is followed although the service states its end. Each such end is worth telling once.
    pub(crate) fn doubt(self) -> String {
        format!("{}. The order is followed until its end is certain, or until you stop the program", self.statement())
    }
}

/// Returns whether the record contains the right secret: its hash is the secret hash of the order.
fn is_revealed(record: &OrderRecord) -> bool {
    let hash = record.destination_swap.secret_hash;
    let is_right = |text: &str| Secret::parse(text).is_ok_and(|secret| secret.hash() == hash);
    [&record.source_swap, &record.destination_swap].iter().any(|swap| is_right(&swap.secret))
}
