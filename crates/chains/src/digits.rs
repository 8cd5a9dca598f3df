//! Strict decoding of hex digits. The hex library also accepts a prefix `0x`, which must be refused where only digits are allowed.

pub use hex::FromHexError;

/// Decodes an even number of hex digits, in either letter case, without a prefix.
///
/// # Errors
///
/// [`FromHexError`] for anything else.
pub fn bytes(digits: &str) -> Result<Vec<u8>, FromHexError> {
    no_prefix(digits)?;
    hex::decode(digits)
}

/// Decodes exactly `N` bytes of hex digits, in either letter case, without a prefix.
///
/// # Errors
///
/// [`FromHexError`] for anything else.
pub fn array<const N: usize>(digits: &str) -> Result<[u8; N], FromHexError> {
    let mut bytes = [0; N];
    into(digits, &mut bytes)?;
    Ok(bytes)
}

/// Decodes like [`array()`], into the caller's memory. Use it for secrets, which can then be wiped in place. The digits must fill
/// `bytes` exactly.
///
/// # Errors
///
/// [`FromHexError`] for anything else.
pub fn into(digits: &str, bytes: &mut [u8]) -> Result<(), FromHexError> {
    no_prefix(digits)?;
    hex::decode_to_slice(digits, bytes)
}

/// Formats 32 bytes as a hex number: `0x` and digits in lower case without leading zeros, `0x0` for zero.
#[must_use]
pub fn hex_number(bytes: &[u8; 32]) -> String {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len().saturating_sub(1));
    let mut digits = hex::encode_prefixed(bytes.get(start..).unwrap_or_default());
    if digits.starts_with("0x0") {
        digits.remove(2);
    }
    digits
}

/// Formats 32 bytes in base58, as Solana writes accounts and Sui writes digests.
#[must_use]
pub fn base58(bytes: &[u8; 32]) -> String {
    let mut digits = [0; 44];
    let len = five8::encode_32(bytes, &mut digits);
    // Base58 consists of ASCII characters, and the length is that of the digits.
    digits.get(..usize::from(len)).and_then(|digits| str::from_utf8(digits).ok()).unwrap_or_default().to_owned()
}

fn no_prefix(digits: &str) -> Result<(), FromHexError> {
    match digits.as_bytes() {
        [_, b'x' | b'X', ..] => Err(FromHexError::InvalidHexCharacter { c: 'x', index: 1 }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_digits_and_nothing_else() {
        assert_eq!(bytes("00fF"), Ok(vec![0, 255]));
        assert_eq!(array::<2>("00fF"), Ok([0, 255]));
        for wrong in ["0x00", "0x0x00", "0X00", "0", "0g", "+1", " 0", "é0"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
            assert!(array::<1>(wrong).is_err(), "{wrong}");
        }
        assert!(array::<2>("00").is_err() && array::<2>("000000").is_err());
    }

    #[test]
    fn a_number_has_no_leading_zeros() {
        let mut number = [0; 32];
        assert_eq!(hex_number(&number), "0x0");
        number[31] = 0x0a;
        assert_eq!(hex_number(&number), "0xa");
        number[30] = 0xb0;
        assert_eq!(hex_number(&number), "0xb00a");
        assert_eq!(hex_number(&[0xff; 32]), format!("0x{}", "f".repeat(64)));
    }

    #[test]
    fn base58_is_that_of_the_general_library() {
        for seed in 0..=u8::MAX {
            let mut bytes = [seed; 32];
            // Leading zeros become the digit `1`.
            bytes[..usize::from(seed % 33)].fill(0);
            assert_eq!(base58(&bytes), bs58::encode(bytes).into_string());
        }
    }
}
