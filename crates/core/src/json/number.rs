//! Strict parsers for numbers and hex. Nothing is trimmed, rounded, reduced or guessed (`docs/spec/batch.md#numbers`).

use std::fmt;

use countersign_chains::digits::{self, FromHexError};
use ruint::aliases::U256;
use serde::{Serialize, Serializer};

use crate::report::{Code, ParseError};

/// Maximum number of decimal digits of a 256-bit number.
const MAX_DECIMAL: usize = 78;
/// Maximum number of hex digits of a 256-bit number.
const MAX_HEX: usize = 64;

/// Parses a canonical decimal string: digits only, no leading zero, at most 256 bits.
///
/// # Errors
///
/// The `decimal_` code of the first fault, or [`Code::NumberTooLarge`].
pub fn decimal(text: &str) -> Result<U256, ParseError> {
    if text.is_empty() {
        return Err(Code::DecimalEmpty.into());
    }
    if let Some(bad) = text.bytes().position(|byte| !byte.is_ascii_digit()) {
        let code = match text.as_bytes().get(bad) {
            Some(b'+' | b'-') if bad == 0 => Code::DecimalSign,
            Some(b' ' | b'\t' | b'\n' | b'\r') => Code::DecimalSpace,
            Some(b'.') => Code::DecimalFraction,
            Some(b'e' | b'E') => Code::DecimalExponent,
            Some(b'x' | b'X') if bad == 1 && text.starts_with('0') => Code::DecimalHex,
            _ => Code::DecimalDigit,
        };
        return Err(code.into());
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(Code::DecimalLeadingZero.into());
    }
    if text.len() > MAX_DECIMAL {
        return Err(Code::NumberTooLarge.into());
    }
    // Most numbers fit a machine word, which is parsed many times faster.
    match text.len() {
        0..20 => text.parse::<u64>().map(U256::from).map_err(|_| Code::DecimalDigit.into()),
        _ => U256::from_str_radix(text, 10).map_err(|_| Code::NumberTooLarge.into()),
    }
}

/// Parses the text of a JSON number that is a plain integer of at most 256 bits. `1.0`, `1e3` and `-0` are refused.
///
/// # Errors
///
/// [`Code::IntegerNotExact`] or [`Code::NumberTooLarge`].
pub fn integer(text: &str) -> Result<U256, ParseError> {
    match decimal(text) {
        Ok(number) => Ok(number),
        Err(error) if error.code() == Code::NumberTooLarge => Err(error),
        Err(_) => Err(Code::IntegerNotExact.into()),
    }
}

/// Parses a `0x` hex number of at most 256 bits. Leading zeros and the case of digits do not matter.
///
/// # Errors
///
/// [`Code::HexPrefix`], [`Code::HexEmpty`], [`Code::HexDigit`] or [`Code::NumberTooLarge`].
pub fn hex(text: &str) -> Result<U256, ParseError> {
    let digits = text.strip_prefix("0x").ok_or(Code::HexPrefix)?;
    if digits.is_empty() {
        return Err(Code::HexEmpty.into());
    }
    let digits = if digits.len() > MAX_HEX { digits.trim_start_matches('0') } else { digits };
    if digits.len() > MAX_HEX {
        return Err(Code::NumberTooLarge.into());
    }
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Code::HexDigit.into());
    }
    match digits.len() {
        // Only zeros, and more of them than a number has digits.
        0 => Ok(U256::ZERO),
        1..=16 => u64::from_str_radix(digits, 16).map(U256::from).map_err(|_| Code::HexDigit.into()),
        _ => U256::from_str_radix(digits, 16).map_err(|_| Code::NumberTooLarge.into()),
    }
}

/// Parses at most `max` bytes of `0x` hex. The length is checked before anything is allocated.
///
/// # Errors
///
/// [`Code::HexPrefix`], [`Code::HexLength`], [`Code::HexOddLength`] or [`Code::HexDigit`].
pub fn hex_bytes(text: &str, max: usize) -> Result<Vec<u8>, ParseError> {
    let digits = text.strip_prefix("0x").ok_or(Code::HexPrefix)?;
    if digits.len() > max.saturating_mul(2) {
        return Err(Code::HexLength.into());
    }
    digits::bytes(digits).map_err(|error| hex_code(error).into())
}

/// Parses exactly `N` bytes of `0x` hex.
///
/// # Errors
///
/// [`Code::HexPrefix`], [`Code::HexLength`], [`Code::HexOddLength`] or [`Code::HexDigit`].
pub fn hex_array<const N: usize>(text: &str) -> Result<[u8; N], ParseError> {
    bare_hex_array(text.strip_prefix("0x").ok_or(Code::HexPrefix)?)
}

/// Parses exactly `N` bytes of hex without a prefix.
///
/// # Errors
///
/// [`Code::HexLength`], [`Code::HexOddLength`] or [`Code::HexDigit`].
pub fn bare_hex_array<const N: usize>(digits: &str) -> Result<[u8; N], ParseError> {
    digits::array(digits).map_err(|error| hex_code(error).into())
}

const fn hex_code(error: FromHexError) -> Code {
    match error {
        FromHexError::InvalidHexCharacter { .. } => Code::HexDigit,
        FromHexError::OddLength => Code::HexOddLength,
        FromHexError::InvalidStringLength => Code::HexLength,
    }
}

/// Bytes that are displayed and serialized as `0x` and lower-case hex.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Hex(pub Vec<u8>);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode_prefixed(&self.0))
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode_prefixed(&self.0))
    }
}

/// Formats an amount of base units exactly in whole units: `50000` with 8 decimals is `0.0005`.
#[must_use]
pub fn in_whole_units(amount: U256, decimals: u8) -> String {
    let mut digits = amount.to_string();
    let decimals = usize::from(decimals);
    if let Some(missing @ 1..) = decimals.saturating_add(1).checked_sub(digits.len()) {
        digits.insert_str(0, &"0".repeat(missing));
    }
    digits.insert(digits.len().saturating_sub(decimals), '.');
    let kept = digits.trim_end_matches('0').trim_end_matches('.').len();
    digits.truncate(kept);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

    #[test]
    fn each_wrong_decimal_has_its_code() {
        for (text, code) in [
            ("", Code::DecimalEmpty),
            ("+5", Code::DecimalSign),
            ("-1", Code::DecimalSign),
            ("-", Code::DecimalSign),
            ("1e3", Code::DecimalExponent),
            ("1E3", Code::DecimalExponent),
            (" 5", Code::DecimalSpace),
            ("5 ", Code::DecimalSpace),
            ("5\n", Code::DecimalSpace),
            ("0x5", Code::DecimalHex),
            ("05", Code::DecimalLeadingZero),
            ("00", Code::DecimalLeadingZero),
            ("1.5", Code::DecimalFraction),
            ("1.0", Code::DecimalFraction),
            ("1_000", Code::DecimalDigit),
            ("１", Code::DecimalDigit),
            ("5-", Code::DecimalDigit),
            ("115792089237316195423570985008687907853269984665640564039457584007913129639936", Code::NumberTooLarge),
        ] {
            assert_eq!(decimal(text), Err(code.into()), "{text:?}");
        }
        assert_eq!(decimal(&"9".repeat(5_000_000)), Err(Code::NumberTooLarge.into()));
        assert_eq!(decimal("0"), Ok(U256::ZERO));
        assert_eq!(decimal(MAX), Ok(U256::MAX));
    }

    #[test]
    fn integers_are_exact() {
        assert_eq!(integer(MAX), Ok(U256::MAX));
        for text in ["1.0", "1e3", "-0", "-5", "1E0"] {
            assert_eq!(integer(text), Err(Code::IntegerNotExact.into()), "{text}");
        }
    }

    #[test]
    fn each_wrong_hex_has_its_code() {
        for (text, code) in [
            ("ab", Code::HexPrefix),
            ("0Xab", Code::HexPrefix),
            ("0x", Code::HexEmpty),
            ("0xg", Code::HexDigit),
            ("0x-1", Code::HexDigit),
            ("0x_1", Code::HexDigit),
        ] {
            assert_eq!(hex(text), Err(code.into()), "{text}");
        }
        assert_eq!(hex(&format!("0x1{}", "0".repeat(64))), Err(Code::NumberTooLarge.into()));
        assert_eq!(hex(&format!("0x{}g", "0".repeat(64))), Err(Code::HexDigit.into()));
        assert_eq!(hex(&format!("0x{}", "0".repeat(65))), Ok(U256::ZERO));
        assert_eq!(hex(&format!("0x{}ff{}", "0".repeat(65), "0".repeat(62))), Ok(U256::from(0xff) << 248));
        assert_eq!(hex(&format!("0x{}Ff", "0".repeat(62))), Ok(U256::from(255)));
        assert_eq!(hex_bytes("0xabc", 9), Err(Code::HexOddLength.into()));
        assert_eq!(hex_bytes("0xabcd", 1), Err(Code::HexLength.into()));
        assert_eq!(hex_array::<2>("0xab"), Err(Code::HexLength.into()));
    }

    #[test]
    fn whole_units_lose_no_digit() {
        assert_eq!(in_whole_units(U256::from(50_000), 8), "0.0005");
        assert_eq!(in_whole_units(U256::from(354_608_265), 9), "0.354608265");
        assert_eq!(in_whole_units(U256::from(1), 18), "0.000000000000000001");
        assert_eq!(in_whole_units(U256::from(1_500_000), 6), "1.5");
        assert_eq!(in_whole_units(U256::from(7), 0), "7");
        assert_eq!(in_whole_units(U256::MAX, 255).len(), 257);
    }
}
