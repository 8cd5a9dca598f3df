//! What an external wallet has signed or broadcast, in the forms in which wallets and nodes return it.

use countersign::{Refusal, Verified, Warnings};

use super::{Failure, Matched, warnings};

/// Returns the role in an order of a transaction that an external wallet has signed or broadcast, such as `approval` or `initiate`, and
/// refuses what the owner would have to be warned about: see [`Verified::matches`]. Use this with wallets that choose nonce and fees
/// themselves.
///
/// The forms of the transaction are listed in `docs/spec/batch.md#external-transactions`.
///
/// # Errors
///
/// As [`match_with_warnings`]; [`Failure`] with the code `transaction_mismatch` where that returns a warning above `info`.
pub fn matches(order: &Verified, transaction: &[u8]) -> Result<String, Failure> {
    let matched = crate::match_with_warnings(order, transaction);
    let role = matched.and_then(|found| Warnings::only_informational(found).map_err(|refusal| refusal.with_prefix("/transaction")));
    role.map(|role| role.to_string()).map_err(|refusal| sent(&refusal))
}

/// Returns the role in an order of a transaction, and what the wallet changed or added although it may: see
/// [`Verified::match_with_warnings`]. [`matches()`] refuses what the owner has to read.
///
/// # Errors
///
/// [`Failure`] at the first member of `/transaction` that is missing, malformed or, with the code `transaction_mismatch`, not as in the
/// order; also where JSON states that the transaction failed.
pub fn match_with_warnings(order: &Verified, transaction: &[u8]) -> Result<Matched, Failure> {
    let (role, found) = crate::match_with_warnings(order, transaction).map_err(|refusal| sent(&refusal))?;
    Ok(Matched { role: role.to_string(), warnings: warnings(&found) })
}

fn sent(refusal: &Refusal) -> Failure {
    Failure::at_stage(refusal, crate::stage_of_sent(refusal))
}

/// Finds the payment of an order by its effect, such as that of calls that an external wallet bundled (EIP-5792), and returns the id of its
/// transaction. The forms of `effect`, and what this proves, are in `docs/spec/batch.md#bundled-calls`.
///
/// # Errors
///
/// [`Failure`] at the first member of `/calls` that is missing, malformed or, with the code `transaction_mismatch`, not as in the order;
/// `unsupported_family` if the source is Sui or a Bitcoin-like chain.
pub fn find_payment(order: &Verified, effect: &[u8]) -> Result<String, Failure> {
    Ok(crate::find_payment(order, effect)?)
}
