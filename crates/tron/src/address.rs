//! Tron addresses: the prefix byte `41` and 20 bytes. They are written in base58check (`T…`), as hex with the prefix, or as hex of
//! the 20 bytes alone, which is what the ABI and typed data use.
//!
//! Specification: `docs/spec/tron.md#chains-and-addresses`.

use std::fmt;
use std::str::FromStr;

use countersign_core::chains::address::{AddressError, TRON_PREFIX, parse_evm, parse_tron_base58, tron_base58};
use countersign_core::json::Cursor;
use countersign_core::number::bare_hex_array;
use countersign_core::{Account, Code, Family, OrderContext, ParseError, Refusal, TypedValue};
use countersign_evm_core::rules::AddressCodec;

/// Typed data has addresses in several forms: see [`Address::parse_any`].
pub(crate) const CODEC: AddressCodec = AddressCodec {
    family: Family::Tron,
    parse: |order, cursor| read_pinned(order, cursor, read_any).map(Address::bytes),
    format: |address| Address::from(address).to_string(),
};

/// A Tron address.
///
/// ```
/// use countersign::tron::Address;
///
/// let usdt: Address = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t".parse()?;
/// assert_eq!(Address::parse_any("41a614f803b6fd780986a42c78ec9c7f77e6ded13c")?, usdt);
/// assert_eq!(usdt.to_string(), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t");
/// # Ok::<(), countersign::report::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(alloy_primitives::Address);

impl Address {
    /// Parses base58check: `T` and 33 characters. Transactions, requests and records use no other form.
    ///
    /// # Errors
    ///
    /// [`Code::AddressChecksum`] for a wrong checksum, [`Code::AddressNetwork`] for another version byte,
    /// [`Code::AddressMalformed`] for any other invalid text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse_tron_base58(text).map(Self::from).map_err(|error| {
            let code = match error {
                AddressError::Checksum => Code::AddressChecksum,
                AddressError::OtherNetwork => Code::AddressNetwork,
                _ => Code::AddressMalformed,
            };
            code.into()
        })
    }

    /// Parses any form that typed data uses: base58check, `41` and 40 hex digits with or without `0x`, or `0x` and the 40 hex
    /// digits of the 20 bytes. In the last form, the letters are in one case or carry the EIP-55 checksum.
    ///
    /// # Errors
    ///
    /// As [`Address::parse`].
    pub fn parse_any(text: &str) -> Result<Self, ParseError> {
        let digits = text.strip_prefix("0x");
        match digits.unwrap_or(text) {
            bytes if bytes.len() == 42 && bytes.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let bytes = bare_hex_array::<21>(bytes).map_err(|_| Code::AddressMalformed)?;
                Self::from_prefixed(bytes).ok_or_else(|| Code::AddressNetwork.into())
            }
            _ if digits.is_some() => parse_evm(text).map(Self::from).map_err(|error| match error {
                AddressError::Checksum => Code::AddressChecksum.into(),
                _ => Code::AddressMalformed.into(),
            }),
            _ => Self::parse(text),
        }
    }

    /// Creates an address from the prefix `41` and the 20 bytes; `None` for another prefix.
    #[must_use]
    pub fn from_prefixed(bytes: [u8; 21]) -> Option<Self> {
        let [prefix, address @ ..] = bytes;
        if prefix == TRON_PREFIX { Some(Self::from(address)) } else { None }
    }

    /// Returns the address of an account; `None` for an account of another family.
    #[must_use]
    pub fn from_account(account: &Account) -> Option<Self> {
        if account.family() == Family::Tron { account.array::<20>().map(Self::from) } else { None }
    }

    /// Returns the account with this address.
    #[must_use]
    pub fn to_account(self) -> Account {
        CODEC.account(self.0)
    }

    /// Returns the 20 bytes without the prefix, as in the ABI and in typed data.
    #[must_use]
    pub const fn bytes(self) -> alloy_primitives::Address {
        self.0
    }

    /// Returns the prefix `41` and the 20 bytes, as in transactions.
    #[must_use]
    pub fn prefixed(self) -> [u8; 21] {
        let mut bytes = [TRON_PREFIX; 21];
        for (to, from) in bytes.iter_mut().skip(1).zip(self.0) {
            *to = from;
        }
        bytes
    }
}

impl FromStr for Address {
    type Err = ParseError;

    /// Parses base58check: see [`Address::parse`].
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl From<[u8; 20]> for Address {
    fn from(bytes: [u8; 20]) -> Self {
        Self(bytes.into())
    }
}

impl From<alloy_primitives::Address> for Address {
    fn from(bytes: alloy_primitives::Address) -> Self {
        Self(bytes)
    }
}

impl From<Address> for TypedValue {
    fn from(address: Address) -> Self {
        Self::Account(address.to_account())
    }
}

impl fmt::Display for Address {
    /// Writes base58check.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&tron_base58(self.0.into_array()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses the base58check address in a JSON node.
///
/// # Errors
///
/// As [`Address::parse`], or [`Code::WrongType`] if the node is not a string.
pub fn read(cursor: Cursor<'_, '_>) -> Result<Address, Refusal> {
    Address::parse(cursor.text()?).map_err(|error| cursor.refuse(error))
}

/// Parses the address in a JSON node, in any form that typed data uses.
///
/// # Errors
///
/// As [`Address::parse_any`], or [`Code::WrongType`] if the node is not a string.
pub fn read_any(cursor: Cursor<'_, '_>) -> Result<Address, Refusal> {
    Address::parse_any(cursor.text()?).map_err(|error| cursor.refuse(error))
}

/// Parses an address of a response. A text that is pinned was parsed when it was pinned, so it is looked up instead. That saves the
/// two hashes of base58check.
pub(crate) fn read_pinned(
    order: &OrderContext<'_>,
    cursor: Cursor<'_, '_>,
    read: fn(Cursor<'_, '_>) -> Result<Address, Refusal>,
) -> Result<Address, Refusal> {
    match order.pinned_as(cursor.text()?).and_then(Address::from_account) {
        Some(address) => Ok(address),
        None => read(cursor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // USDT on the main network, in the forms that explorers show.
    const BASE58: &str = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
    const DIGITS: &str = "a614f803b6fd780986a42c78ec9c7f77e6ded13c";

    #[test]
    fn three_forms_are_one_address() {
        let address = Address::parse(BASE58).unwrap();
        assert_eq!(address.to_string(), BASE58);
        assert_eq!(alloy_primitives::hex::encode(address.prefixed()), format!("41{DIGITS}"));
        for form in [
            BASE58.to_owned(),
            format!("41{DIGITS}"),
            format!("0x41{DIGITS}"),
            format!("0x{DIGITS}"),
            format!("0x{}", DIGITS.to_uppercase()),
            address.bytes().to_string(),
        ] {
            assert_eq!(Address::parse_any(&form), Ok(address), "{form}");
        }
    }

    #[test]
    fn refuses_other_forms_prefixes_and_checksums() {
        for (text, code) in [
            ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u".to_owned(), Code::AddressChecksum),
            // Version byte 00: a Bitcoin address.
            ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa".to_owned(), Code::AddressNetwork),
            // The prefix of Tron's first test network.
            (format!("a0{DIGITS}"), Code::AddressNetwork),
            (format!("0x42{DIGITS}"), Code::AddressNetwork),
            (format!("0x{}", DIGITS.replacen('a', "A", 1)), Code::AddressChecksum),
            (DIGITS.to_owned(), Code::AddressMalformed),
            (format!("0x{DIGITS}00"), Code::AddressNetwork),
            (format!("0x41{DIGITS}00"), Code::AddressMalformed),
            (format!("0X{DIGITS}"), Code::AddressMalformed),
            (String::new(), Code::AddressMalformed),
            (format!(" {BASE58}"), Code::AddressMalformed),
            ("T".repeat(100_000), Code::AddressMalformed),
        ] {
            assert_eq!(Address::parse_any(&text), Err(code.into()), "{}", text.get(..60).unwrap_or(&text));
        }
        assert_eq!(Address::parse(&format!("41{DIGITS}")), Err(Code::AddressMalformed.into()));
        assert_eq!(Address::parse(&format!("0x{DIGITS}")), Err(Code::AddressMalformed.into()));
    }

    #[test]
    fn accounts_of_other_families_are_not_tron_addresses() {
        let account = Account::new(Family::Evm, &[7; 20]).unwrap();
        assert_eq!(Address::from_account(&account), None);
        assert_eq!(Address::from_account(&Address::from([7; 20]).to_account()), Some(Address::from([7; 20])));
    }

    #[test]
    fn refusals_and_summaries_show_base58() {
        let address = Address::parse(BASE58).unwrap();
        assert_eq!(TypedValue::from(address).to_string(), BASE58);
        assert_eq!(BASE58.parse(), Ok(address));
        assert_eq!(Address::from_prefixed(address.prefixed()), Some(address));
        assert_eq!(Address::from_prefixed([0xa0; 21]), None);
    }
}
