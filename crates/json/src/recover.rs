//! Prepares recoveries with a wallet context in JSON (`docs/spec/batch.md#recovery-contexts`).
//!
//! The context has the members of the family's wallet context, those that only a recovery has, and `sender`: the account that sends and
//! pays for the transaction, by default the one that is paid. The name is the same on every account chain; on Solana it is the fee payer.
//! [`inputs`](crate::inputs()) has the members of each family.
//!
//! `accept_low_fee` allows a redemption whose fee is so low that nodes may not mine it, although they see its secret. On Bitcoin-like chains
//! `accept_less` allows one that takes less than the amount, and `accept_high_fee` a fee above the payout.
//!
//! Each may also have `secret_key`, which is not read here. A member with another name is refused, because a misspelt limit or
//! destination would silently be ignored.

use countersign::recover::Recovery;
use countersign::{Policy, Refusal, Unsigned, report::Origin};
use countersign_core::json::{Cursor, Members};

use crate::JsonFamily;
use crate::dispatch::unsupported;

/// Prepares a recovery with the JSON of its family.
macro_rules! prepare {
    ([$recovery:ident $wallet:ident $policy:ident] $($feature:literal $family:ident $module:ident,)*) => {
        match $recovery {
            $(
                #[cfg(feature = $feature)]
                Recovery::$family(recovery) => {
                    countersign::$module::$family::prepare_recovery(recovery, $wallet, $policy).map(Unsigned::from)
                }
            )*
            other => Err(unsupported(other.family())),
        }
    };
}

/// Reads a wallet context (`docs/spec/batch.md#recovery-contexts`) and prepares a recovery with it, within the limits of the policy.
///
/// # Errors
///
/// A [`Refusal`] at the member of `/wallet` that is missing, unknown, malformed or invalid; with the code `funding_mismatch`, `fee_too_low` or
/// `fee_above_payout` for what the user has to accept explicitly, and `warning_refused` for a warning that the policy refuses.
pub fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, policy: &Policy) -> Result<Unsigned, Refusal> {
    let order = countersign::for_each_family! { prepare! [recovery wallet policy] }?;
    order.warnings().check_refused(&policy.refused_warnings)?;
    Ok(order)
}

/// Returns the members of a context, and refuses every one except those of the family's wallet context (`funding`) and those that only a
/// recovery has.
pub(crate) fn members<'s, 'v>(wallet: &'s Cursor<'_, 'v>, funding: &[&str], recovery: &[&str]) -> Result<Members<'s, 'v>, Refusal> {
    let members = wallet.object()?;
    let reason = "the wallet context of a recovery has no such member";
    members.only(&[funding, recovery].concat()).map_err(|refusal| refusal.with_reason(reason))?;
    Ok(members)
}

/// Reads whether the user accepts something in spite of a rule.
pub(crate) fn accepts(members: &Members<'_, '_>, member: &str) -> Result<bool, Refusal> {
    Ok(members.get(member).map(|cursor| cursor.bool()).transpose()?.unwrap_or(false))
}

/// Puts `/wallet` in front of a refusal's location, unless the fault is in the record, which the service wrote.
pub(crate) fn in_wallet(refusal: Refusal) -> Refusal {
    if refusal.origin() == Origin::Service { refusal } else { refusal.with_prefix("/wallet") }
}
