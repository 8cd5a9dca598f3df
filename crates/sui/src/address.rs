//! Sui addresses: 32 bytes, written as `0x` and 64 digits. Accounts, objects and packages share them.

use countersign_core::chains::address::parse_sui;
use countersign_core::json::Node;
use countersign_core::{Account, Code, Family, Refusal};
use sui_sdk_types::Address;

/// Reads an address: `0x` and exactly 64 digits.
///
/// # Errors
///
/// [`Code::AddressMalformed`].
pub fn read(node: Node<'_, '_>) -> Result<Address, Refusal> {
    parse_sui(node.text()?).map(Address::new).map_err(|error| node.refuse(Code::AddressMalformed).with_reason(error.to_string()))
}

/// The address of an account of this family; `None` for another family's.
#[must_use]
pub fn of(account: &Account) -> Option<Address> {
    account.array::<32>().map(Address::new)
}

/// The account with this address.
///
/// # Errors
///
/// Never in practice: 32 bytes always fit; [`Code::Internal`] otherwise.
pub(crate) fn account(address: Address) -> Result<Account, Refusal> {
    Account::new(Family::Sui, address.as_bytes()).ok_or_else(|| Refusal::new(Code::Internal, ""))
}
