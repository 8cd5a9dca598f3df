//! Rules on decoded calls and messages that are the same on EVM and Tron: the request, the registry and the policy decide.

use alloy_primitives::Address;
use countersign_core::json::{At, Node};
use countersign_core::{Account, Code, Order, Refusal, SecretHash, Warnings};

use crate::call::{Approve, Initiate};
use crate::typed_data::Message;

/// How a family's accounts are made and written.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every function")]
pub struct AddressCodec {
    /// The account with this address.
    pub account: fn(Address) -> Result<Account, Refusal>,
    /// The address as the family's users write it.
    pub shown: fn(Address) -> String,
}

/// Each argument of an `initiate` call against the request, the registry or the policy, at its own bytes. An initiator is
/// one of the arguments only where another account sends for the owner.
///
/// # Errors
///
/// The codes of [`Order`]'s rules.
pub fn check_arguments(
    order: &Order<'_>,
    call: &Initiate,
    spelling: AddressCodec,
    at: &At<'_>,
    warnings: &mut Warnings,
) -> Result<(), Refusal> {
    let mut start = 4_usize;
    let mut next = || {
        let from = start;
        start = start.saturating_add(32);
        move |code| at.refuse_bytes(code, from, from.saturating_add(32))
    };
    if let Some(initiator) = call.initiator {
        order.check_initiator(&(spelling.account)(initiator)?, &next())?;
    }
    order.check_redeemer(&(spelling.account)(call.redeemer)?, warnings, &next())?;
    order.check_timelock(call.timelock, &next())?;
    order.check_amount(call.amount, &next())?;
    order.check_secret_hash(SecretHash(call.secret_hash.0), &next())
}

/// The spender is the HTLC and the approval coverage the amount; answers what will be signed, which is the proposal unless
/// the policy rewrites it to exactly the amount.
///
/// # Errors
///
/// [`Code::UnknownSpender`], [`Code::ApprovalBelowAmount`] or [`Code::ApprovalNotExact`].
pub fn check_approval(
    order: &Order<'_>,
    proposed: Approve,
    htlc: Address,
    spelling: AddressCodec,
    at: &At<'_>,
    warnings: &mut Warnings,
) -> Result<Approve, Refusal> {
    if proposed.spender != htlc {
        let (expected, got) = ((spelling.shown)(htlc), (spelling.shown)(proposed.spender));
        return Err(at.refuse_bytes(Code::UnknownSpender, 4, 36).with_expected(expected).with_actual(got));
    }
    let amount = order.check_approval(proposed.amount, warnings, &|code| at.refuse_bytes(code, 36, 68))?;
    Ok(Approve { amount, ..proposed })
}

/// Where the registry pins the contract's domain version, the message carries it.
///
/// # Errors
///
/// [`Code::TypedDataDomain`].
pub fn check_pinned_version(order: &Order<'_>, node: &Node<'_, '_>, message: &Message) -> Result<(), Refusal> {
    let pinned = order.source.record.htlc.as_ref().and_then(|htlc| htlc.domain.as_ref()).and_then(|domain| domain.get("version"));
    match pinned {
        Some(version) if *version != message.version => {
            Err(node.at().key("domain").key("version").refuse(Code::TypedDataDomain).with_expected(version).with_actual(&message.version))
        }
        _ => Ok(()),
    }
}
