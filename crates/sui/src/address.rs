//! Sui addresses: 32 bytes, written as `0x` and 64 hex digits. Accounts, objects and packages all have such addresses.
//!
//! Specification: `docs/spec/sui.md#chains-and-addresses`.

use countersign_core::chains::address::parse_sui;
use countersign_core::chains::digits;
use countersign_core::json::Cursor;
use countersign_core::{Account, Code, Family, Refusal};
use sui_sdk_types::{Address, Digest, TypeTag};

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

/// Formats an address like its `Display`, which writes each byte on its own.
pub(crate) fn format_address(address: &Address) -> String {
    hex::encode_prefixed(address.as_bytes())
}

/// Formats a digest in base58 like its `Display`, which divides by 58 for each digit.
#[must_use]
pub fn format_digest(digest: &Digest) -> String {
    digits::base58(digest.inner())
}

/// Formats a coin type like its `Display`.
pub(crate) fn format_type(coin_type: &TypeTag) -> String {
    match coin_type {
        TypeTag::Struct(tag) if tag.type_params().is_empty() => {
            [&format_address(tag.address()), tag.module().as_str(), tag.name().as_str()].join("::")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_sdk() {
        for seed in 0..=u8::MAX {
            let mut bytes = [seed; 32];
            bytes[..usize::from(seed % 33)].fill(0);
            assert_eq!(format_address(&Address::new(bytes)), Address::new(bytes).to_string());
            assert_eq!(format_digest(&Digest::new(bytes)), Digest::new(bytes).to_base58());
        }
        for text in ["0x2::sui::SUI", "0x2::coin::Coin<0x2::sui::SUI>", "u64", "vector<0x2::sui::SUI>"] {
            let coin_type: TypeTag = text.parse().unwrap();
            assert_eq!(format_type(&coin_type), coin_type.to_string());
        }
    }

    #[test]
    fn accounts_of_other_families_are_not_sui_addresses() {
        let address = Address::new([7; 32]);
        assert_eq!(from_account(&to_account(address)), Some(address));
        assert_eq!(from_account(&Account::from_array(Family::Solana, [7; 32])), None);
        assert_eq!(countersign_core::TypedValue::from(to_account(address)).to_string(), address.to_string());
    }
}
