//! What is said about an end of an order that only the service states.

use countersign_client::driver::StatedEnd;

/// What to say after an order has ended by a statement that counts.
pub(crate) const ONLY_STATED: &str = "this is only what the service states: look at your address";

/// Says what the service states, and what the user can do about it.
pub(crate) fn statement(end: StatedEnd) -> String {
    format!("the service states that the order is {}, and this program cannot check that: look at your address", end.name())
}

/// Says that the order is followed although the service states its end. Each such end is worth telling once.
pub(crate) fn doubt(end: StatedEnd) -> String {
    format!("{}. The order is followed until its end is certain, or until you stop the program", statement(end))
}
