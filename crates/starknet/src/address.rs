//! Starknet addresses: felts with any number of leading zeros. `0x1` and `0x01` are the same address.
//!
//! Specification: `docs/spec/starknet.md#chains-and-addresses`.

use countersign_core::{Account, Family};
use starknet_types_core::felt::Felt;

use crate::felt;

/// Returns the address of an account; `None` for an account of another family.
#[must_use]
pub fn from_account(account: &Account) -> Option<Felt> {
    if account.family() == Family::Starknet { account.array().and_then(|bytes| felt::from_bytes(bytes).ok()) } else { None }
}

/// Returns the account with this address.
#[must_use]
pub fn to_account(address: Felt) -> Account {
    Account::from_array(Family::Starknet, address.to_bytes_be())
}
