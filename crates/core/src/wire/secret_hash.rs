//! The hash that locks both sides of a swap.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::from_str;
use crate::json::number;
use crate::report::ParseError;

/// SHA-256 of the 32-byte secret. It is displayed and serialized as 64 hex digits without `0x`.
///
/// ```
/// use countersign::SecretHash;
///
/// # fn main() -> Result<(), countersign::report::ParseError> {
/// let hash = SecretHash::of(b"thirty-two bytes of good secret!");
/// assert_eq!(hash, format!("0x{hash}").parse()?);
/// assert!(!hash.is_trivial() && SecretHash::of(&[0; 32]).is_trivial());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretHash(pub [u8; 32]);

/// Hashes of the secrets that anybody would try first: nothing, one byte repeated, and numbers 0 to 255 in either byte order.
/// Sorted.
static TRIVIAL: LazyLock<Vec<[u8; 32]>> = LazyLock::new(|| {
    let mut hashes: Vec<[u8; 32]> = Vec::new();
    // Inserts in order. Sorting at the end would add a kilobyte to every WebAssembly module.
    let mut add = |secret: &[u8]| {
        let hash = Sha256::digest(secret).into();
        hashes.insert(hashes.partition_point(|known| *known < hash), hash);
    };
    add(&[]);
    for byte in 0..=u8::MAX {
        add(&[byte; 32]);
        let mut small = [0; 32];
        let [first, ..] = &mut small;
        *first = byte;
        add(&small);
        small.reverse();
        add(&small);
    }
    hashes
});

impl SecretHash {
    /// Parses 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::HexLength`](crate::Code::HexLength), [`Code::HexOddLength`](crate::Code::HexOddLength) or
    /// [`Code::HexDigit`](crate::Code::HexDigit).
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        number::bare_hex_array(text.strip_prefix("0x").unwrap_or(text)).map(Self)
    }

    /// Computes the hash of a secret.
    #[must_use]
    pub fn of(secret: &[u8; 32]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Returns whether the hash cannot be that of a random secret: all zeros, all ones, or the hash of a secret that anybody can guess.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        self.0 == [0; 32] || self.0 == [0xff; 32] || TRIVIAL.binary_search(&self.0).is_ok()
    }
}

impl FromStr for SecretHash {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl From<[u8; 32]> for SecretHash {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer)
    }
}

impl fmt::Display for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_trivial_secrets() {
        // SHA-256 of the empty text (FIPS 180-4 examples) and of 32 zero bytes.
        assert!(SecretHash::parse("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855").unwrap().is_trivial());
        assert!(SecretHash::parse("66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925").unwrap().is_trivial());
        assert!(SecretHash::of(&[0x11; 32]).is_trivial());
        let mut one = [0; 32];
        one[31] = 1;
        assert!(SecretHash::of(&one).is_trivial());
        assert!(SecretHash([0; 32]).is_trivial() && SecretHash([0xff; 32]).is_trivial());
        assert!(!SecretHash::of(b"thirty-two bytes of good secret!").is_trivial());
    }
}
