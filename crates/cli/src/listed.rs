//! The service's list of the user's orders.

use countersign_client::driver::OrderState;
use countersign_client::{Client, Http};

use crate::failure::Failure;
use crate::session::Session;
use crate::state::State;

/// Checks, before an order can be paid, that the service lists no other order of its owners with the same secret hash. There is one if this
/// state directory is a copy that could not be recognized as such. The state directory then starts a branch of the rescue phrase of its
/// own, so that the next order has a new secret.
pub(crate) async fn check_unlisted(client: &Client<Http>, state: &State, kept: &OrderState, session: &Session) -> Result<(), Failure> {
    let again = || format!("nothing was signed or paid; continue with: {}", session.commands.resume(kept.swap.id()));
    let other = client.other_with_secret_of(&kept.swap).await.map_err(|error| Failure::from(error).with_advice(again()))?;
    let Some(other) = other else { return Ok(()) };
    if kept.index.is_some() {
        state.store.start_branch()?;
    }
    Err(Failure::Held {
        code: "secret_used",
        message: format!(
            "the service lists order {other} of yours with the same secret hash, so a copy of this state directory is in use elsewhere; nothing \
             was signed or paid; create a new order, which gets a new secret"
        ),
    })
}
