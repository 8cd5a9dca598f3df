//! Whether an account has what an act needs.

use ruint::aliases::U256;

use crate::report::{Code, Refusal, TypedValue};

/// Requires that the sender has enough of a coin or token. `at` is where the amount belongs, and `what` names it: "of the token".
///
/// # Errors
///
/// [`Code::InsufficientFunds`] at `at`.
pub fn check_balance(at: &'static str, what: &str, needed: U256, has: U256) -> Result<(), Refusal> {
    if has >= needed {
        return Ok(());
    }
    let refusal = Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(needed)).with_actual(has);
    Err(refusal.with_reason(format!("the sender has too little {what}")))
}

/// Requires that the HTLC may take enough of the sender's token.
///
/// # Errors
///
/// [`Code::AllowanceTooLow`] at `/allowance`.
pub fn check_allowance(needed: U256, allowed: U256) -> Result<(), Refusal> {
    if allowed >= needed {
        return Ok(());
    }
    Err(Refusal::new(Code::AllowanceTooLow, "/allowance").with_expected(TypedValue::AtLeast(needed)).with_actual(allowed))
}
