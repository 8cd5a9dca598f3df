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

mod bitcoin;
mod copied;
mod evm;

use std::fmt;

use crate::digits;
use crate::network::{Family, Network};
use crate::taproot;

pub use bitcoin::{hrp, parse_bitcoin};
pub use evm::{checksum_evm, parse_evm, parse_evm_on};

/// The version byte in front of every Tron address.
pub const TRON_PREFIX: u8 = 0x41;

/// The Stark field prime, `2^251 + 17 * 2^192 + 1`, big-endian.
pub const STARK_PRIME: [u8; 32] = {
    let mut prime = [0; 32];
    prime[0] = 0x08;
    prime[7] = 0x11;
    prime[31] = 0x01;
    prime
};

/// Maximum length of a base58check text that is decoded, in characters. One of 21 bytes is shorter.
const MAX_BASE58: usize = 40;

/// Maximum length of a text that is parsed, in characters. A bech32m address of a witness program of 40 bytes is shorter.
const MAX_TEXT: usize = 130;

/// An account, contract, object or key on one family's chains, as canonical bytes.
///
/// | family | bytes |
/// |---|---|
/// | EVM, Tron | the 20 address bytes, without Tron's `41` |
/// | Starknet | the felt, 32 bytes big-endian |
/// | Solana, Sui | the 32 bytes |
/// | Bitcoin | the script pubkey of an address, or the 32 bytes of an x-only key |
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

    /// Returns the canonical bytes: see the table on the type.
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
        f.pad(&match self.family {
            Family::Evm => self.array().map_or_else(plain, checksum_evm),
            Family::Tron => self.array().map_or_else(plain, tron_base58),
            Family::Solana => self.array().map_or_else(plain, |bytes| digits::base58(&bytes)),
            Family::Starknet | Family::Sui => plain(),
            Family::Bitcoin => hex::encode(self.bytes()),
        })
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

/// Parses an address of `network`, in the form that its users write.
///
/// EVM: `0x` and 40 digits, all lower, all upper or with the right EIP-55 checksum, on Rootstock also that of EIP-1191. Tron:
/// base58check. Starknet: `0x` and a felt, leading zeros optional. Solana: base58 of 32 bytes. Sui: `0x` and 64 digits. Bitcoin and
/// Litecoin: the network's bech32, bech32m or base58check addresses.
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
    match network {
        Network::Evm(chain_id) => parse_evm_on(*chain_id, text).map(|bytes| Account::from_array(Family::Evm, bytes)),
        Network::Tron(_) => parse_tron_base58(text).map(|bytes| Account::from_array(Family::Tron, bytes)),
        Network::Starknet(_) => parse_felt(text).map(|bytes| Account::from_array(Family::Starknet, bytes)),
        Network::Solana(_) => parse_solana(text).map(|bytes| Account::from_array(Family::Solana, bytes)),
        Network::Sui(_) => parse_sui(text).map(|bytes| Account::from_array(Family::Sui, bytes)),
        Network::Bitcoin(coin, net) => {
            let script = parse_bitcoin(*coin, *net, text)?;
            Account::new(Family::Bitcoin, &script).ok_or(AddressError::Length)
        }
    }
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

/// Returns whether a text has the form of an x-only key: 64 hex digits. The length alone is not enough, because a taproot address
/// of Litecoin's test network has 64 characters too.
#[must_use]
pub fn is_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Parses a Tron address in base58check: `T` and 33 characters.
///
/// # Errors
///
/// [`AddressError::OtherNetwork`] if the version byte is not `41`; [`AddressError::Form`], [`AddressError::Length`] or
/// [`AddressError::Checksum`].
pub fn parse_tron_base58(text: &str) -> Result<[u8; 20], AddressError> {
    let payload = base58check(text)?;
    let payload: [u8; 21] = payload.try_into().map_err(|_| AddressError::Length)?;
    let [TRON_PREFIX, address @ ..] = payload else { return Err(AddressError::OtherNetwork) };
    Ok(address)
}

/// Formats a Tron address in base58check.
#[must_use]
pub fn tron_base58(bytes: [u8; 20]) -> String {
    let mut payload = [TRON_PREFIX; 21];
    for (to, from) in payload.iter_mut().skip(1).zip(bytes) {
        *to = from;
    }
    bs58::encode(payload).with_check().into_string()
}

/// Parses a Starknet felt: `0x` and 1 to 64 hex digits, below the prime. Leading zeros do not matter.
///
/// # Errors
///
/// [`AddressError::Range`] at or above the prime, because a library that reduces it silently would give another account;
/// [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_felt(text: &str) -> Result<[u8; 32], AddressError> {
    let digits = text.strip_prefix("0x").ok_or(AddressError::Form)?;
    if digits.is_empty() {
        return Err(AddressError::Form);
    }
    if digits.len() > 64 {
        return Err(AddressError::Length);
    }
    let felt = hex_array::<32>(&format!("{digits:0>64}"))?;
    if felt < STARK_PRIME { Ok(felt) } else { Err(AddressError::Range) }
}

/// Parses a Solana account: base58 of exactly 32 bytes.
///
/// # Errors
///
/// [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_solana(text: &str) -> Result<[u8; 32], AddressError> {
    if text.len() > 44 {
        return Err(AddressError::Length);
    }
    let mut bytes = [0; 32];
    match five8::decode_32(text, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(five8::DecodeError::InvalidChar(_)) => Err(AddressError::Form),
        Err(_) => Err(AddressError::Length),
    }
}

/// Parses a Sui account or object id: `0x` and exactly 64 hex digits.
///
/// # Errors
///
/// [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_sui(text: &str) -> Result<[u8; 32], AddressError> {
    hex_array(text.strip_prefix("0x").ok_or(AddressError::Form)?)
}

/// Parses an x-only public key: 64 hex digits, the x coordinate of a point of secp256k1.
///
/// # Errors
///
/// [`AddressError::NotOnCurve`] if no point has this x coordinate; [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_xonly(text: &str) -> Result<[u8; 32], AddressError> {
    parse_xonly_unless_known(text, &|_| false)
}

/// Parses the same as [`parse_xonly`], without the curve arithmetic for a key that the caller has parsed before.
///
/// # Errors
///
/// As [`parse_xonly`].
pub fn parse_xonly_unless_known(text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<[u8; 32], AddressError> {
    let key = hex_array::<32>(text)?;
    if !is_known(text) {
        taproot::lift_x(key).ok_or(AddressError::NotOnCurve)?;
    }
    Ok(key)
}

/// Returns the payload of a base58check text: its four checksum bytes are checked and removed.
fn base58check(text: &str) -> Result<Vec<u8>, AddressError> {
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

fn hex_array<const N: usize>(digits: &str) -> Result<[u8; N], AddressError> {
    digits::array(digits).map_err(|error| match error {
        digits::FromHexError::InvalidHexCharacter { .. } => AddressError::Form,
        _ => AddressError::Length,
    })
}

#[cfg(test)]
mod tests {
    use bech32::segwit;

    use super::*;
    use crate::network::{BitcoinNet, Coin};

    #[test]
    fn a_tron_address_has_version_byte_41_and_a_checksum() {
        // The USDT contract and its hex form, as Tron's documentation prints them.
        let network = Network::Tron(728_126_428);
        let account = parse(&network, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap();
        assert_eq!(hex::encode(account.bytes()), "a614f803b6fd780986a42c78ec9c7f77e6ded13c");
        assert_eq!(tron_base58(account.array().unwrap()), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t");
        assert_eq!(parse(&network, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u"), Err(AddressError::Checksum));
        assert_eq!(parse(&network, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"), Err(AddressError::OtherNetwork));
    }

    #[test]
    fn a_felt_is_below_the_prime_and_never_reduced() {
        let network = Network::Starknet("SN_MAIN".into());
        let prime = "0x800000000000011000000000000000000000000000000000000000000000001";
        assert_eq!(parse(&network, prime), Err(AddressError::Range));
        assert!(parse(&network, "0x800000000000011000000000000000000000000000000000000000000000000").is_ok());
        assert_eq!(parse(&network, "0x00ab").unwrap(), parse(&network, "0xAB").unwrap());
        assert_eq!(parse(&network, "0x"), Err(AddressError::Form));
        assert_eq!(parse(&network, &format!("0x{}", "0".repeat(65))), Err(AddressError::Length));
    }

    #[test]
    fn an_xonly_key_is_a_point() {
        let network = Network::Bitcoin(Coin::Bitcoin, BitcoinNet::Test);
        let generator = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        assert!(parse_party(&network, generator).is_ok());
        // An address that has 64 characters too: the generator as a witness program, encoded by bech32's own tool.
        let litecoin = Network::Bitcoin(Coin::Litecoin, BitcoinNet::Test);
        let address = segwit::encode(hrp(Coin::Litecoin, BitcoinNet::Test), segwit::VERSION_1, &parse_xonly(generator).unwrap()).unwrap();
        assert_eq!(address.len(), 64);
        assert_eq!(parse_party(&litecoin, &address).unwrap().bytes().len(), 34);
        // BIP-340's test vector 5: a public key that is not on the curve.
        let outside = "eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34";
        assert_eq!(parse_party(&network, outside), Err(AddressError::NotOnCurve));
    }
}
