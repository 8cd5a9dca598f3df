//! EVM addresses: 20 bytes, written as `0x` and 40 hex digits. The letters are in one case or carry the EIP-55 checksum.
//!
//! Specification: `docs/spec/evm.md#chains-and-addresses`.

use alloy_primitives::Address;
use countersign_core::chains::Network;
use countersign_core::chains::address::{AddressError, parse_evm_on};
use countersign_core::json::Cursor;
use countersign_core::{Account, Code, Family, ParseError, Refusal};
use countersign_evm_core::rules::AddressCodec;

pub(crate) const CODEC: AddressCodec = AddressCodec {
    family: Family::Evm,
    parse: |order, cursor| match order.source.chain.network {
        Network::Evm(chain_id) => read(chain_id, cursor),
        _ => Err(cursor.refuse(Code::UnsupportedFamily)),
    },
    format: |address| address.to_string(),
};

/// Parses the address in a JSON node.
///
/// # Errors
///
/// As [`parse`], or [`Code::WrongType`] if the node is not a string.
pub fn read(chain_id: u64, cursor: Cursor<'_, '_>) -> Result<Address, Refusal> {
    parse(chain_id, cursor.text()?).map_err(|error| cursor.refuse(error))
}

/// Parses an address on the chain with this id. On Rootstock, the letters may carry the checksum of EIP-1191 instead.
///
/// ```
/// let address = countersign::evm::address::parse(
///     1,
///     "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
/// )?;
/// assert_eq!(address.to_string(), "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
/// # Ok::<(), countersign::report::ParseError>(())
/// ```
///
/// # Errors
///
/// [`Code::AddressChecksum`] for mixed case with a wrong checksum, [`Code::AddressMalformed`] for any other invalid text.
pub fn parse(chain_id: u64, text: &str) -> Result<Address, ParseError> {
    match parse_evm_on(chain_id, text) {
        Ok(bytes) => Ok(bytes.into()),
        Err(AddressError::Checksum) => Err(Code::AddressChecksum.into()),
        Err(_) => Err(Code::AddressMalformed.into()),
    }
}

/// Returns the address of an account; `None` if it does not have 20 bytes. The family is not checked, so an account on Tron gives
/// its 20 bytes too.
#[must_use]
pub fn from_account(account: &Account) -> Option<Address> {
    account.array::<20>().map(Address::from)
}

/// Returns the account with this address.
#[must_use]
pub fn to_account(address: Address) -> Account {
    CODEC.account(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account of the examples in EIP-1191, as viem 2.57.1 writes it on Rootstock's main network.
    #[test]
    fn rootstocks_checksum_is_taken_on_rootstock_alone() {
        let text = "0x5aaEB6053f3e94c9b9a09f33669435E7ef1bEAeD";
        let account = parse(1, &text.to_ascii_lowercase()).unwrap();
        assert_eq!(parse(30, text), Ok(account));
        assert_eq!(parse(30, &account.to_string()), Ok(account));
        for other in [1, 31] {
            assert_eq!(parse(other, text), Err(Code::AddressChecksum.into()));
        }
    }
}
