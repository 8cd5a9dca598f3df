//! Rules on decoded calls and messages that are the same on EVM and Tron. They compare with the request, the registry and the
//! policy (`docs/spec/batch.md#terms`, `docs/spec/batch.md#approvals`, `docs/spec/batch.md#typed-data`).

use alloy_primitives::Address;
use countersign_core::json::{At, Cursor};
use countersign_core::{Account, Code, Family, OrderContext, Refusal, SecretHash, Warnings};

use crate::call::{Approve, Initiate};
use crate::typed_data::Message;

/// How a family's addresses are parsed and formatted.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct AddressCodec {
    /// The family whose accounts these are.
    pub family: Family,
    /// Parses an address in any form that the family's typed data may have.
    pub parse: fn(&OrderContext<'_>, Cursor<'_, '_>) -> Result<Address, Refusal>,
    /// Formats an address as the family's users write it.
    pub format: fn(Address) -> String,
}

impl AddressCodec {
    /// Returns the account with this address.
    #[must_use]
    pub fn account(&self, address: Address) -> Account {
        Account::from_array(self.family, address.into_array())
    }
}

/// Compares each argument of an `initiate` call with the request, the registry or the policy, and returns the timelock in blocks.
/// A refusal names the bytes of its argument. The initiator is an argument only if another account sends for the owner.
///
/// # Errors
///
/// [`Code::InitiatorMismatch`], [`Code::RedeemerInvalid`], [`Code::UnknownRedeemer`], [`Code::TimelockZero`],
/// [`Code::TimelockTooLong`], [`Code::AmountMismatch`], [`Code::SecretHashMismatch`] or [`Code::SecretHashTrivial`].
pub fn check_arguments(
    order: &OrderContext<'_>,
    call: &Initiate,
    codec: AddressCodec,
    at: &At<'_>,
    warnings: &mut Warnings,
) -> Result<u64, Refusal> {
    let mut start = 4_usize;
    let mut next = || {
        let from = start;
        start = start.saturating_add(32);
        move |code| at.refuse_bytes(code, from, from.saturating_add(32))
    };
    if let Some(initiator) = call.initiator {
        order.check_initiator(&codec.account(initiator), &next())?;
    }
    order.check_redeemer(&codec.account(call.redeemer), warnings, &next())?;
    let timelock = order.check_timelock(call.timelock, warnings, &next())?;
    order.check_amount(call.amount, &next())?;
    order.check_secret_hash(SecretHash(call.secret_hash.0), &next())?;
    Ok(timelock)
}

/// Requires that the spender is the HTLC and that the approval covers the amount. Returns the approval that will be signed: the
/// proposed one, unless the policy rewrites it to exactly the amount.
///
/// # Errors
///
/// [`Code::UnknownSpender`], [`Code::ApprovalBelowAmount`] or [`Code::ApprovalNotExact`].
pub fn check_approval(
    order: &OrderContext<'_>,
    proposed: Approve,
    htlc: Address,
    codec: AddressCodec,
    at: &At<'_>,
    warnings: &mut Warnings,
) -> Result<Approve, Refusal> {
    if proposed.spender != htlc {
        let (expected, actual) = ((codec.format)(htlc), (codec.format)(proposed.spender));
        return Err(at.refuse_bytes(Code::UnknownSpender, 4, 36).with_expected(expected).with_actual(actual));
    }
    let amount = order.check_approval(proposed.amount, warnings, &|code| at.refuse_bytes(code, 36, 68))?;
    Ok(Approve { amount, ..proposed })
}

/// Requires that the message has the contract's domain version, if the registry pins one.
///
/// # Errors
///
/// [`Code::TypedDataDomain`] if it has another version.
pub fn check_pinned_version(order: &OrderContext<'_>, cursor: &Cursor<'_, '_>, message: &Message) -> Result<(), Refusal> {
    let pinned = order.source.record.htlc.as_ref().and_then(|htlc| htlc.domain.as_ref()).and_then(|domain| domain.get("version"));
    match pinned {
        Some(version) if *version != message.version => {
            Err(cursor.at().key("domain").key("version").refuse(Code::TypedDataDomain).with_expected(version).with_actual(&message.version))
        }
        _ => Ok(()),
    }
}
