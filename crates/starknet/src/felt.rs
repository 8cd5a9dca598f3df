//! Strict parsing of felts, the elements of Starknet's prime field: integers below `2^251 + 17 * 2^192 + 1`.
//!
//! The felt library reduces numbers that are not below the prime, and reads an empty hex number as zero. Therefore all outside text
//! and bytes are checked before they reach the library.
//!
//! Specification: `docs/spec/starknet.md#chains-and-addresses`.

use countersign_core::chains::address::STARK_PRIME;
use countersign_core::chains::digits;
use countersign_core::json::{Cursor, Value};
use countersign_core::{Code, ParseError, Refusal, U256, number};
use serde::{Serialize, Serializer};
use starknet_types_core::felt::Felt;

/// Parses `0x` and 1 to 64 hex digits. The number must be below the prime. Leading zeros are ignored.
///
/// ```
/// use countersign::starknet::{Felt, felt};
///
/// assert_eq!(felt::parse("0x00ab")?, Felt::from(171));
/// assert!(felt::parse(&format!("0x{}", "f".repeat(64))).is_err());
/// # Ok::<(), countersign::report::ParseError>(())
/// ```
///
/// # Errors
///
/// A `hex_` code, [`Code::NumberTooLarge`] for more digits, or [`Code::FeltOutOfRange`] at or above the prime.
pub fn parse(text: &str) -> Result<Felt, ParseError> {
    parse_bytes(text).map(|bytes| Felt::from_bytes_be(&bytes))
}

/// Parses as [`parse`] does, into big-endian bytes.
fn parse_bytes(text: &str) -> Result<[u8; 32], ParseError> {
    let hex = text.strip_prefix("0x").ok_or(Code::HexPrefix)?;
    if hex.is_empty() {
        return Err(Code::HexEmpty.into());
    }
    let mut bytes = [0; 32];
    parse_padded(hex, &mut bytes)?;
    if bytes < STARK_PRIME { Ok(bytes) } else { Err(Code::FeltOutOfRange.into()) }
}

/// Parses up to 64 hex digits, in either letter case, as a 32-byte number. The caller supplies the memory, which must be zero, so
/// that no copy of a secret is left behind.
pub(crate) fn parse_padded(hex: &str, bytes: &mut [u8; 32]) -> Result<(), ParseError> {
    let zeros = 64_usize.checked_sub(hex.len()).ok_or(Code::NumberTooLarge)?;
    // If the number of digits is odd, a single digit precedes the pairs.
    let (single, pairs) = hex.split_at_checked(hex.len() & 1).ok_or(Code::HexDigit)?;
    let tail = bytes.get_mut(zeros.div_ceil(2)..).unwrap_or_default();
    digits::into(pairs, tail).map_err(|_| Code::HexDigit)?;
    if let (Some(byte), false) = (bytes.get_mut(zeros / 2), single.is_empty()) {
        *byte = u8::from_str_radix(single, 16).map_err(|_| Code::HexDigit)?;
    }
    Ok(())
}

/// Parses a felt in decimal, or in hex with `0x`.
pub(crate) fn parse_any(text: &str) -> Result<Felt, ParseError> {
    if text.starts_with("0x") { parse(text) } else { from_number(number::decimal(text)?) }
}

/// Parses the hex felt in a JSON node, the form of calldata.
///
/// # Errors
///
/// [`Code::WrongType`] if the node is not a string, or the errors of [`parse`].
pub fn read(cursor: Cursor<'_, '_>) -> Result<Felt, Refusal> {
    parse(cursor.text()?).map_err(|error| cursor.refuse(error))
}

/// Parses the hex felt in a JSON node as an integer of at most 128 bits.
///
/// # Errors
///
/// [`Code::NumberTooLarge`] if it is wider, or the errors of [`read`].
pub fn read_u128(cursor: Cursor<'_, '_>) -> Result<u128, Refusal> {
    let bytes = parse_bytes(cursor.text()?).map_err(|error| cursor.refuse(error))?;
    u128::try_from(U256::from_be_bytes(bytes)).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

/// Parses a felt in any form that typed data allows: a JSON integer, a decimal string, or a `0x` hex string.
///
/// # Errors
///
/// [`Code::WrongType`], [`Code::IntegerNotExact`], a `decimal_` or `hex_` code, [`Code::NumberTooLarge`], or
/// [`Code::FeltOutOfRange`].
pub fn read_any(cursor: Cursor<'_, '_>) -> Result<Felt, Refusal> {
    from_number(cursor.any_number()?).map_err(|error| cursor.refuse(error))
}

/// Parses a short string as typed data writes it. Text that looks like a number is that number; any other text is its ASCII
/// characters. So `"0x31"`, `"49"` and `49` are the character `1`, but `"1"` is the number 1.
///
/// # Errors
///
/// [`Code::TextNotPlain`] for text that is not a short string, or the errors of [`read_any`].
pub fn read_short_string(cursor: Cursor<'_, '_>) -> Result<Felt, Refusal> {
    match cursor.value() {
        Value::String(text) => parse_short_string(text).map_err(|error| cursor.refuse(error)),
        _ => read_any(cursor),
    }
}

/// Parses a text as [`read_short_string`] does.
pub(crate) fn parse_short_string(text: &str) -> Result<Felt, ParseError> {
    if text.starts_with("0x") || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())) {
        parse_any(text)
    } else {
        from_short_string(text)
    }
}

/// Returns the felt of a short string, which has 1 to 31 printable ASCII characters.
///
/// # Errors
///
/// [`Code::TextNotPlain`] for any other text.
pub fn from_short_string(text: &str) -> Result<Felt, ParseError> {
    let plain = (1..=31).contains(&text.len()) && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if plain { Ok(Felt::from_bytes_be_slice(text.as_bytes())) } else { Err(Code::TextNotPlain.into()) }
}

/// Returns the text of a short string; `None` for a felt that is not a short string.
#[must_use]
pub fn to_short_string(felt: &Felt) -> Option<String> {
    let bytes = felt.to_bytes_be();
    let text = std::str::from_utf8(&bytes).ok()?.trim_start_matches('\0');
    (from_short_string(text) == Ok(*felt)).then(|| text.to_owned())
}

/// Returns the felt with this value.
///
/// # Errors
///
/// [`Code::FeltOutOfRange`] if it is not below the prime.
pub fn from_number(number: U256) -> Result<Felt, ParseError> {
    from_bytes(number.to_be_bytes())
}

/// Returns the felt with these big-endian bytes.
///
/// # Errors
///
/// [`Code::FeltOutOfRange`] if they are not below the prime.
pub fn from_bytes(bytes: [u8; 32]) -> Result<Felt, ParseError> {
    if bytes < STARK_PRIME { Ok(Felt::from_bytes_be(&bytes)) } else { Err(Code::FeltOutOfRange.into()) }
}

/// Returns the two felts that encode a 256-bit number in calldata: the low 128 bits, then the high 128 bits.
#[must_use]
pub fn halves(number: U256) -> [Felt; 2] {
    let [low, high] = split(number);
    [Felt::from(low), Felt::from(high)]
}

/// Returns the low and high 128 bits.
pub(crate) fn split(number: U256) -> [u128; 2] {
    let half = |number: U256| number.wrapping_to::<u128>();
    [half(number), half(number.wrapping_shr(128))]
}

/// Returns the number with these low and high 128 bits.
pub(crate) fn join(low: u128, high: u128) -> U256 {
    U256::from(high).wrapping_shl(128) | U256::from(low)
}

/// Returns the big-endian bytes of the felts, 32 bytes each.
pub(crate) fn to_bytes(felts: &[Felt]) -> Vec<u8> {
    felts.iter().flat_map(Felt::to_bytes_be).collect()
}

/// Writes felts in decimal, joined by commas, as the service takes a signature.
pub(crate) fn join_decimal(felts: &[Felt]) -> String {
    felts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Formats a felt as nodes expect it: `0x` and hex digits without leading zeros. It is the text of `{felt:#x}`, which divides once for
/// each digit.
#[must_use]
pub fn to_hex(felt: &Felt) -> String {
    digits::hex_number(&felt.to_bytes_be())
}

/// Serializes a felt as nodes expect it: `0x` and hex digits without leading zeros.
pub(crate) struct HexFelt<'f>(pub(crate) &'f Felt);

impl Serialize for HexFelt<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(self.0))
    }
}

/// Serializes felts as nodes expect them: an array of hex strings.
pub(crate) struct HexFelts<'f>(pub(crate) &'f [Felt]);

impl Serialize for HexFelts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(HexFelt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BELOW: &str = "0x800000000000011000000000000000000000000000000000000000000000000";

    #[test]
    fn hex_is_that_of_the_library() {
        let powers = (0..252_u32).map(|bit| Felt::TWO.pow(bit));
        for felt in powers.chain([Felt::ZERO, Felt::MAX, Felt::from(0xab), Felt::from(0x0100)]) {
            assert_eq!(to_hex(&felt), format!("{felt:#x}"));
        }
    }

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
            assert_eq!(parse(text), Err(code.into()), "{text:?}");
        }
    }

    #[test]
    fn a_short_string_that_looks_like_a_number_is_that_number() {
        for (text, felt) in [("HTLC", Felt::from(0x4854_4c43)), ("1", Felt::ONE), ("0x31", Felt::from(0x31)), ("49", Felt::from(0x31))] {
            assert_eq!(parse_short_string(text), Ok(felt), "{text}");
        }
        assert_eq!(from_short_string("1"), Ok(Felt::from(0x31)));
        for (text, code) in [
            ("", Code::TextNotPlain),
            ("1\n", Code::TextNotPlain),
            ("é", Code::TextNotPlain),
            (&"x".repeat(32), Code::TextNotPlain),
            ("01", Code::DecimalLeadingZero),
            ("0x", Code::HexEmpty),
        ] {
            assert_eq!(parse_short_string(text), Err(code.into()), "{text:?}");
        }
    }

    #[test]
    fn numbers_split_and_join() {
        let wide = U256::from(7).wrapping_shl(128) | U256::from(u128::MAX);
        assert_eq!(split(wide), [u128::MAX, 7]);
        assert_eq!(join(u128::MAX, 7), wide);
        assert_eq!(from_number(U256::MAX), Err(Code::FeltOutOfRange.into()));
        assert_eq!(from_number(U256::from(5)), Ok(Felt::from(5)));
    }
}
