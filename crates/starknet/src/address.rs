//! Starknet addresses: felts, in any number of digits. `0x1`, `0x01` and 64 digits are one address.

use countersign_core::{Account, Family};
use starknet_types_core::felt::Felt;

use crate::felt;

/// Returns the address of an account of this family; `None` for another family's.
#[must_use]
pub fn from_account(account: &Account) -> Option<Felt> {
    if account.family() == Family::Starknet { account.array().and_then(felt::from_bytes) } else { None }
}

/// Returns the account with this address.
#[must_use]
pub fn to_account(address: Felt) -> Account {
    Account::from_array(Family::Starknet, address.to_bytes_be())
}
