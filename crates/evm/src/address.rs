//! EVM addresses: 20 bytes, written as `0x` and 40 digits in one letter case or with the EIP-55 checksum.

use alloy_primitives::Address;
use countersign_abi::rules::AddressCodec;
use countersign_core::chains::address::{AddressError, parse_evm};
use countersign_core::json::Node;
use countersign_core::{Account, Code, Family, Refusal};

pub(crate) const CODEC: AddressCodec =
    AddressCodec { family: Family::Evm, parse: |_, node| read(node), format: |address| address.to_string() };

/// Reads an address.
///
/// # Errors
///
/// [`Code::AddressChecksum`] for mixed case with a wrong checksum, [`Code::AddressMalformed`] for any other text.
pub fn read(node: Node<'_, '_>) -> Result<Address, Refusal> {
    parse(node.text()?).map_err(|code| node.refuse(code))
}

/// Parses an address.
///
/// # Errors
///
/// [`Code::AddressChecksum`] for mixed case with a wrong checksum, [`Code::AddressMalformed`] for any other text.
pub fn parse(text: &str) -> Result<Address, Code> {
    match parse_evm(text) {
        Ok(bytes) => Ok(bytes.into()),
        Err(AddressError::Checksum) => Err(Code::AddressChecksum),
        Err(_) => Err(Code::AddressMalformed),
    }
}

/// Returns the address of an account of this family; `None` for another family's.
#[must_use]
pub fn from_account(account: &Account) -> Option<Address> {
    account.array::<20>().map(Address::from)
}

/// Returns the account with this address.
#[must_use]
pub fn to_account(address: Address) -> Account {
    CODEC.account(address)
}
