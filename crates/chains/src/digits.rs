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
}
