//! Starknet addresses: felts, in any number of digits. `0x1`, `0x01` and 64 digits are one address.

use countersign_core::{Account, Code, Family, Refusal};
use starknet_crypto::Felt;

use crate::felt;

/// The address of an account of this family; `None` for another family's.
#[must_use]
pub fn of(account: &Account) -> Option<Felt> {
    account.array().and_then(felt::of_bytes)
}

/// The account with this address.
///
/// # Errors
///
/// Never in practice: 32 bytes always fit; [`Code::Internal`] otherwise.
pub(crate) fn account(address: Felt) -> Result<Account, Refusal> {
    Account::new(Family::Starknet, &address.to_bytes_be()).ok_or_else(|| Refusal::new(Code::Internal, ""))
}
