//! Addresses of every family, parsed strictly and compared by the account that they denote (`docs/spec/batch.md#addresses`).
//!
//! The same account has several spellings: an EVM address in lower case or with its EIP-55 checksum, a Starknet felt with
//! or without leading zeros, a Tron address in base58check or hex. [`Account`] holds the canonical bytes, so that two
//! spellings of one account are equal and two accounts never are.
//!
//! ```
//! use countersign::chains::{Network, address};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let network = Network::parse("evm:1")?;
//! let account = address::parse(&network, "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed")?;
//! assert_eq!(account.to_string(), "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
//! assert!(
//!     address::parse(&network, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4").is_err()
//! );
//! # Ok(())
//! # }
//! ```

mod copied;

use std::fmt;

use crate::digits;
use crate::network::{Family, Network};

pub use crate::family::parsers::*;

/// Maximum length of a base58check text that is decoded, in characters. One of 21 bytes is shorter.
pub(crate) const MAX_BASE58: usize = 40;

/// Maximum length of a text that is parsed, in characters. A bech32m address of a witness program of 40 bytes is shorter.
const MAX_TEXT: usize = 130;

/// An account, contract, object or key on one family's chains, as canonical bytes: see the table of [`Family`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    family: Family,
    len: u8,
    bytes: [u8; 42],
}

impl Account {
    /// Creates the account with these canonical bytes; `None` if there are more than 42.
    #[must_use]
    pub fn new(family: Family, canonical: &[u8]) -> Option<Self> {
        let mut bytes = [0; 42];
        bytes.get_mut(..canonical.len())?.copy_from_slice(canonical);
        let len = u8::try_from(canonical.len()).ok()?;
        Some(Self { family, len, bytes })
    }

    /// Creates the account with these canonical bytes. More than 42 do not compile.
    #[must_use]
    pub fn from_array<const N: usize>(family: Family, canonical: [u8; N]) -> Self {
        const { assert!(N <= 42) };
        let mut bytes = [0; 42];
        for (to, from) in bytes.iter_mut().zip(canonical) {
            *to = from;
        }
        #[expect(clippy::as_conversions, reason = "N is at most 42, as the assertion above proves")]
        Self { family, len: N as u8, bytes }
    }

    /// Returns the family whose chains this account is on.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the canonical bytes: see the table of [`Family`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns the canonical bytes as an array; `None` if there are not exactly `N`.
    #[must_use]
    pub fn array<const N: usize>(&self) -> Option<[u8; N]> {
        self.bytes().try_into().ok()
    }

    /// Returns whether every byte is zero. Nobody owns that account.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.bytes().iter().all(|byte| *byte == 0)
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({}:{})", self.family, hex::encode(self.bytes()))
    }
}

/// Writes an account as its network's users write it; on Bitcoin-like chains the x-only key or the script pubkey in hex.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Also the form of an account whose number of bytes is not that of its family's addresses.
        let plain = || hex::encode_prefixed(self.bytes());
        f.pad(&(self.family.rules().format)(self).unwrap_or_else(plain))
    }
}

/// Why a text is not a valid address of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is empty, too long, or has characters that no address of this family has.
    Form,
    /// The characters are valid, but the number of bytes is wrong.
    Length,
    /// The checksum is wrong: EIP-55 letter case, base58check, bech32.
    Checksum,
    /// The address belongs to another chain or network.
    OtherNetwork,
    /// The felt is not below the field prime.
    Range,
    /// The 32 bytes are not the x coordinate of a point on the curve.
    NotOnCurve,
    /// The address belongs to Litecoin's extension block (MWEB), whose outputs have no script.
    ExtensionBlock,
    /// The text is a payment URI, not an address.
    Uri,
    /// The text is an account id with its chain (CAIP-10).
    AccountId,
    /// The text is an address with the short name of a chain (EIP-3770).
    ChainPrefix,
    /// The text is a Tron address in hex, with its prefix byte.
    TronHex,
    /// The letter case is the checksum of Rootstock (EIP-1191), and the network is another one.
    RootstockChecksum,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "not a valid address on this chain",
            Self::Length => "the address has the wrong length",
            Self::Checksum => "the checksum of the address is wrong",
            Self::OtherNetwork => "the address belongs to another chain or network",
            Self::Range => "the number is not below the field prime",
            Self::NotOnCurve => "the key is not a point on the curve",
            Self::ExtensionBlock => "addresses of the extension block (MWEB) are not supported: use an ltc1, L or M address",
            Self::Uri => "this is a payment URI: use only the address in it, without the scheme and what follows `?`",
            Self::AccountId => "this is an account id with its chain (CAIP-10): use only the address behind the last `:`",
            Self::ChainPrefix => "the text begins with the name of a chain (EIP-3770): use only the address, which begins with 0x",
            Self::TronHex => "this is a Tron address in hex: write it in base58check, which begins with T",
            Self::RootstockChecksum => {
                "the letters are the checksum of Rootstock (EIP-1191), not of this chain: if the account is yours on this chain, write it in lower case"
            }
        })
    }
}

impl std::error::Error for AddressError {}

/// Parses an address of `network`, in the form that its users write. Each family has one form: see the table of [`Family`].
///
/// # Errors
///
/// [`AddressError`] if the text is anything else. The length is checked first, so that no input is slow. A form in which wallets copy
/// addresses, and which is not one of these, is refused by its name.
pub fn parse(network: &Network, text: &str) -> Result<Account, AddressError> {
    parse_account(network, text).map_err(|error| copied::name(network, text, error))
}

fn parse_account(network: &Network, text: &str) -> Result<Account, AddressError> {
    if text.is_empty() || text.len() > MAX_TEXT || !text.is_ascii() {
        return Err(AddressError::Form);
    }
    (network.family().rules().address)(network, text)
}

/// Parses a party of an HTLC: an address, or on Bitcoin-like chains the 64 hex digits of an x-only key.
///
/// # Errors
///
/// As [`parse`], and [`AddressError::NotOnCurve`] if the key is not a point on the curve.
pub fn parse_party(network: &Network, text: &str) -> Result<Account, AddressError> {
    parse_party_unless_known(network, text, &|_| false)
}

/// Parses the same as [`parse_party`], without the curve arithmetic for a key that the caller has parsed before: `is_known` is asked
/// about the text of a key.
///
/// # Errors
///
/// As [`parse_party`].
pub fn parse_party_unless_known(network: &Network, text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<Account, AddressError> {
    match network {
        Network::Bitcoin(..) if is_key(text) => {
            parse_xonly_unless_known(text, is_known).map(|key| Account::from_array(Family::Bitcoin, key))
        }
        _ => parse(network, text),
    }
}

/// Returns the payload of a base58check text: its four checksum bytes are checked and removed.
pub(crate) fn base58check(text: &str) -> Result<Vec<u8>, AddressError> {
    // Decoding takes quadratic time; every address of 21 bytes and a checksum is shorter than this.
    if text.len() > MAX_BASE58 {
        return Err(AddressError::Length);
    }
    bs58::decode(text).with_check(None).into_vec().map_err(|error| match error {
        bs58::decode::Error::InvalidChecksum { .. } => AddressError::Checksum,
        bs58::decode::Error::NoChecksum => AddressError::Length,
        _ => AddressError::Form,
    })
}

pub(crate) fn hex_array<const N: usize>(digits: &str) -> Result<[u8; N], AddressError> {
    digits::array(digits).map_err(|error| match error {
        digits::FromHexError::InvalidHexCharacter { .. } => AddressError::Form,
        _ => AddressError::Length,
    })
}
