//! Why the contract aborted (`docs/spec/sui.md#errors`).

use countersign_core::reader::{Fault, Urgency};

use super::fields::{abort, effects, execution, execution_error, location, transaction};
use super::proto::Message;
use crate::htlc;

/// The code for a wrong secret. The contract looks for the order first, and pays only after it.
const WRONG_SECRET: u64 = 8;
/// The codes for an order that is not in the registry, and for one that has ended.
const NO_OPEN_ORDER: [u64; 2] = [5, 14];

/// The contract's errors.
const ERRORS: [(u64, &str, &str); 14] = [
    (1, "EIncorrectFunds", "the coin is not the amount"),
    (2, "EOrderNotExpired", "the timelock has not expired"),
    (3, "EZeroAddressInitiator", "the initiator is the zero address"),
    (4, "EZeroAddressRedeemer", "the redeemer is the zero address"),
    (5, "EOrderNotInitiated", "the registry has no such order"),
    (7, "EDuplicateOrder", "an order with these terms exists already"),
    (WRONG_SECRET, "EIncorrectSecret", "the secret is wrong"),
    (9, "EInvalidTimelock", "the timelock is zero or too long"),
    (10, "EZeroAmount", "the amount is zero"),
    (11, "ESameInitiatorRedeemer", "the initiator is the redeemer"),
    (13, "EInvalidSecretHashLength", "the secret hash is not 32 bytes"),
    (14, "EOrderFulfilled", "the order was already redeemed or refunded"),
    (15, "ESameFunderRedeemer", "the sender is the redeemer"),
    (16, "ESenderNotRedeemer", "the sender is not the redeemer"),
];

/// Returns what the contract's error means, with its name; `None` if the contract did not abort, or with an unknown code.
pub(super) fn meaning(executed: Message<'_>) -> Result<Option<String>, Fault> {
    let aborted = code(executed)?;
    let known = ERRORS.iter().find(|(code, ..)| Some(*code) == aborted);
    Ok(known.map(|(_, name, meaning)| format!("{meaning} ({name})")))
}

/// Returns whether the contract aborted because the secret is wrong. Once the right one is out, any abort of the contract is taken for that
/// which does not say that the order has ended: to wait could then cost the payout, and a redemption that fails costs gas.
pub(super) fn is_wrong_secret(executed: Message<'_>, urgency: Urgency) -> Result<bool, Fault> {
    let code = code(executed)?;
    Ok(match urgency {
        Urgency::CanWait => code == Some(WRONG_SECRET),
        Urgency::SecretIsOut => code.is_some_and(|code| !NO_OPEN_ORDER.contains(&code)),
    })
}

/// Returns the contract's abort code.
fn code(executed: Message<'_>) -> Result<Option<u64>, Fault> {
    let status: Message<'_> = executed.need::<Message<'_>>(transaction::EFFECTS)?.need(effects::STATUS)?;
    let Some(error) = status.get::<Message<'_>>(execution::ERROR)? else { return Ok(None) };
    let Some(abort) = error.get::<Message<'_>>(execution_error::ABORT)? else { return Ok(None) };
    let module = abort.get::<Message<'_>>(abort::LOCATION)?.map(|location| location.get(location::MODULE)).transpose()?.flatten();
    if module == Some(htlc::MODULE) { abort.get(abort::CODE) } else { Ok(None) }
}
