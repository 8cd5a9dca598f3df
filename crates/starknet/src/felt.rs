//! Felts, strictly read: the numbers below `2^251 + 17 * 2^192 + 1` that everything on Starknet is made of.
//!
//! The felt library reduces what is not below the prime, and takes an empty hex number for zero. So no text and no bytes
//! from outside reach it before they are known to be the felt that they say.

use countersign_core::chains::digits;
use countersign_core::json::{Node, Value};
use countersign_core::{Code, Refusal, U256, number};
use serde::{Serialize, Serializer};
use starknet_crypto::Felt;

/// Bytes of the prime, big-endian.
const PRIME: [u8; 32] = {
    let mut prime = [0; 32];
    prime[0] = 0x08;
    prime[7] = 0x11;
    prime[31] = 0x01;
    prime
};

/// Reads `0x` and 1 to 64 hex digits below the prime; leading zeros mean nothing.
///
/// # Errors
///
/// A `hex_` code, [`Code::NumberTooLarge`] for more digits, [`Code::FeltOutOfRange`] at or above the prime.
pub fn parse(text: &str) -> Result<Felt, Code> {
    parse_bytes(text).map(|bytes| Felt::from_bytes_be(&bytes))
}

/// As [`parse`], big-endian bytes.
fn parse_bytes(text: &str) -> Result<[u8; 32], Code> {
    let hex = text.strip_prefix("0x").ok_or(Code::HexPrefix)?;
    if hex.is_empty() {
        return Err(Code::HexEmpty);
    }
    let mut bytes = [0; 32];
    padded(hex, &mut bytes)?;
    if bytes < PRIME { Ok(bytes) } else { Err(Code::FeltOutOfRange) }
}

/// Reads up to 64 hex digits, in either letter case, as a number of 32 bytes, into memory of the caller's.
pub(crate) fn padded(hex: &str, bytes: &mut [u8; 32]) -> Result<(), Code> {
    let zeros = 64_usize.checked_sub(hex.len()).ok_or(Code::NumberTooLarge)?;
    // The digit that stands alone in front of an odd number of them, and the pairs behind it.
    let (alone, pairs) = hex.split_at_checked(hex.len() & 1).ok_or(Code::HexDigit)?;
    let (_, tail) = bytes.split_at_mut_checked(zeros.div_ceil(2)).ok_or(Code::Internal)?;
    digits::into(pairs, tail).map_err(|_| Code::HexDigit)?;
    if let (Some(byte), false) = (bytes.get_mut(zeros / 2), alone.is_empty()) {
        *byte = u8::from_str_radix(alone, 16).map_err(|_| Code::HexDigit)?;
    }
    Ok(())
}

/// Reads a hex felt, as calldata has them.
///
/// # Errors
///
/// [`Code::WrongType`], or as [`parse`].
pub fn read(node: Node<'_, '_>) -> Result<Felt, Refusal> {
    parse(node.text()?).map_err(|code| node.refuse(code))
}

/// Reads a hex felt of at most 128 bits.
///
/// # Errors
///
/// [`Code::NumberTooLarge`] if it is wider, or as [`read`].
pub fn read_u128(node: Node<'_, '_>) -> Result<u128, Refusal> {
    let bytes = parse_bytes(node.text()?).map_err(|code| node.refuse(code))?;
    u128::try_from(U256::from_be_bytes(bytes)).map_err(|_| node.refuse(Code::NumberTooLarge))
}

/// Reads a felt in any spelling of typed data: JSON integer, decimal string, `0x` hex string.
///
/// # Errors
///
/// The codes of the spelling, or [`Code::FeltOutOfRange`].
pub fn read_any(node: Node<'_, '_>) -> Result<Felt, Refusal> {
    of_number(node.any_number()?).ok_or_else(|| node.refuse(Code::FeltOutOfRange))
}

/// Reads a short string as typed data spells one: what looks like a number is that number, anything else is its ASCII
/// characters. So `"0x31"`, `"49"` and `49` are the character `1`, and `"1"` is not.
///
/// # Errors
///
/// [`Code::TextNotPlain`] for text that is no short string, or as [`read_any`].
pub fn read_short_string(node: Node<'_, '_>) -> Result<Felt, Refusal> {
    match node.value() {
        Value::String(text) => short_string_or_number(text).map_err(|code| node.refuse(code)),
        _ => read_any(node),
    }
}

/// As [`read_short_string`], of a text.
pub(crate) fn short_string_or_number(text: &str) -> Result<Felt, Code> {
    if text.starts_with("0x") {
        parse(text)
    } else if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        of_number(number::decimal(text)?).ok_or(Code::FeltOutOfRange)
    } else {
        of_short_string(text).ok_or(Code::TextNotPlain)
    }
}

/// The felt of 1 to 31 printable ASCII characters; `None` for other text.
#[must_use]
pub fn of_short_string(text: &str) -> Option<Felt> {
    let plain = (1..=31).contains(&text.len()) && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    plain.then(|| Felt::from_bytes_be_slice(text.as_bytes()))
}

/// The felt with this value; `None` if it is not below the prime.
#[must_use]
pub fn of_number(number: U256) -> Option<Felt> {
    of_bytes(number.to_be_bytes())
}

/// The felt with these big-endian bytes; `None` if it is not below the prime.
#[must_use]
pub fn of_bytes(bytes: [u8; 32]) -> Option<Felt> {
    (bytes < PRIME).then(|| Felt::from_bytes_be(&bytes))
}

/// A number of 256 bits as the two felts that stand for it in calldata: low and high 128 bits.
#[must_use]
pub fn halves(number: U256) -> [Felt; 2] {
    let [low, high] = words(number);
    [Felt::from(low), Felt::from(high)]
}

/// The low and high 128 bits.
pub(crate) fn words(number: U256) -> [u128; 2] {
    let half = |number: U256| number.wrapping_to::<u128>();
    [half(number), half(number.wrapping_shr(128))]
}

/// The number with these low and high 128 bits.
pub(crate) fn number(low: u128, high: u128) -> U256 {
    U256::from(high).wrapping_shl(128) | U256::from(low)
}

/// A felt as results have it: `0x` and hex digits without leading zeros.
pub(crate) struct Shown<'f>(pub(crate) &'f Felt);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// Felts as results have them.
pub(crate) struct AllShown<'f>(pub(crate) &'f [Felt]);

impl Serialize for AllShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BELOW: &str = "0x800000000000011000000000000000000000000000000000000000000000000";

    #[test]
    fn a_felt_is_what_it_says_or_refused() {
        assert_eq!(parse("0x0"), Ok(Felt::ZERO));
        assert_eq!(parse("0x00aB"), Ok(Felt::from(171)));
        assert_eq!(parse("0x123"), Ok(Felt::from(0x123)));
        assert_eq!(parse(BELOW), Ok(Felt::MAX));
        assert_eq!(parse(&format!("0x{:0>64}", "1")), Ok(Felt::ONE));
        for (text, code) in [
            ("0x800000000000011000000000000000000000000000000000000000000000001", Code::FeltOutOfRange),
            (&format!("0x{}", "f".repeat(64)), Code::FeltOutOfRange),
            (&format!("0x{}", "0".repeat(65)), Code::NumberTooLarge),
            ("", Code::HexPrefix),
            ("12", Code::HexPrefix),
            ("0X12", Code::HexPrefix),
            ("0x", Code::HexEmpty),
            ("0x0x1", Code::HexDigit),
            ("0x+1", Code::HexDigit),
            ("0x+", Code::HexDigit),
            ("0x 1", Code::HexDigit),
            ("0xg", Code::HexDigit),
            ("0xé", Code::HexDigit),
            ("0xé1", Code::HexDigit),
        ] {
            assert_eq!(parse(text), Err(code), "{text:?}");
        }
    }

    #[test]
    fn a_short_string_that_looks_like_a_number_is_that_number() {
        for (text, felt) in [("HTLC", Felt::from(0x4854_4c43)), ("1", Felt::ONE), ("0x31", Felt::from(0x31)), ("49", Felt::from(0x31))] {
            assert_eq!(short_string_or_number(text), Ok(felt), "{text}");
        }
        assert_eq!(of_short_string("1"), Some(Felt::from(0x31)));
        for (text, code) in [
            ("", Code::TextNotPlain),
            ("1\n", Code::TextNotPlain),
            ("é", Code::TextNotPlain),
            (&"x".repeat(32), Code::TextNotPlain),
            ("01", Code::DecimalLeadingZero),
            ("0x", Code::HexEmpty),
        ] {
            assert_eq!(short_string_or_number(text), Err(code), "{text:?}");
        }
    }

    #[test]
    fn numbers_split_and_join() {
        let wide = U256::from(7).wrapping_shl(128) | U256::from(u128::MAX);
        assert_eq!(words(wide), [u128::MAX, 7]);
        assert_eq!(number(u128::MAX, 7), wide);
        assert_eq!(of_number(U256::MAX), None);
        assert_eq!(of_number(U256::from(5)), Some(Felt::from(5)));
    }
}
