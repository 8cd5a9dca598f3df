//! Sui addresses: 32 bytes, written as `0x` and 64 hex digits. Accounts, objects and packages all have such addresses.
//!
//! Specification: `docs/spec/sui.md#chains-and-addresses`.

use countersign_core::chains::address::parse_sui;
use countersign_core::json::Cursor;
use countersign_core::{Account, Code, Family, Refusal};
use sui_sdk_types::Address;

/// Parses the address in a JSON node: `0x` and exactly 64 hex digits.
///
/// # Errors
///
/// [`Code::AddressMalformed`] for any other text, or [`Code::WrongType`] if the node is not a string.
pub fn read(cursor: Cursor<'_, '_>) -> Result<Address, Refusal> {
    parse_sui(cursor.text()?).map(Address::new).map_err(|error| cursor.refuse(Code::AddressMalformed).with_reason(error.to_string()))
}

/// Returns the address of an account; `None` for an account of another family.
#[must_use]
pub fn from_account(account: &Account) -> Option<Address> {
    if account.family() == Family::Sui { account.array::<32>().map(Address::new) } else { None }
}

/// Returns the account with this address.
#[must_use]
pub fn to_account(address: Address) -> Account {
    Account::from_array(Family::Sui, address.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_other_families_are_not_sui_addresses() {
        let address = Address::new([7; 32]);
        assert_eq!(from_account(&to_account(address)), Some(address));
        assert_eq!(from_account(&Account::from_array(Family::Solana, [7; 32])), None);
        assert_eq!(countersign_core::TypedValue::from(to_account(address)).to_string(), address.to_string());
    }
}
