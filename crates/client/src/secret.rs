//! Private values: the secret of a swap, and the application id.

use std::fmt;
use std::str::FromStr;

use countersign::{Code, Refusal, SecretHash};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, RandomError};

/// The 32 bytes that redeem a swap. Whoever knows them can redeem both legs. Wiped on drop, never printed.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Generates a secret from the operating system's random numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Random`] if there are none.
    pub fn generate() -> Result<Self, Error> {
        let mut secret = Self([0; 32]);
        getrandom::fill(&mut secret.0).map_err(RandomError)?;
        Ok(secret)
    }

    pub(crate) const fn from_bytes(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Parses 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] at `/secret`, or [`Code::SecretHashTrivial`] for a secret that anybody would guess; neither
    /// shows any part of the text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut secret = Self([0; 32]);
        let digits = text.strip_prefix("0x").unwrap_or(text);
        // The hex crate skips a second 0x by itself: only 64 plain digits are a secret.
        let plain = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !plain || hex::decode_to_slice(digits, &mut secret.0).is_err() {
            return Err(Error::Input(Refusal::new(Code::KeyMalformed, "/secret").with_reason("a secret is 64 hex digits")));
        }
        if secret.hash().is_trivial() {
            return Err(Error::Input(Refusal::new(Code::SecretHashTrivial, "/secret")));
        }
        Ok(secret)
    }

    /// Returns SHA-256 of the secret: the hash that locks both legs, and that an order names.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }

    /// Returns the secret's bytes, to build a redemption from.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns 64 hex digits.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(self.0))
    }
}

impl FromStr for Secret {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The id by which the service knows the application. Wiped on drop, never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct AppId(String);

impl AppId {
    /// Parses an id: 1 to 256 printable ASCII characters without space.
    ///
    /// # Errors
    ///
    /// [`Code::TextNotPlain`] at `/app_id`, without the text.
    pub fn new(id: &str) -> Result<Self, Error> {
        let id = Self(id.to_owned());
        if (1..=256).contains(&id.0.len()) && id.0.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(id);
        }
        Err(Error::Input(Refusal::new(Code::TextNotPlain, "/app_id")))
    }

    pub(crate) fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.clone())
    }
}

impl FromStr for AppId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl fmt::Debug for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppId(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_64_digits_and_not_guessable() {
        // A captured order's secret and hash.
        let secret = Secret::parse("8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40").unwrap();
        assert_eq!(secret.hash().to_string(), "3c4522983261f81e2e679346bbda5dddd8b4ea0367dd4073f73f13320d9dee62");
        for text in ["", "0x", "00", &"0".repeat(64), &"11".repeat(32), &"g".repeat(64), &format!("0x0x{}", "a1".repeat(31))] {
            let error = Secret::parse(text).unwrap_err();
            assert!(text.is_empty() || text.len() < 3 || !error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn random_secrets_differ() {
        assert_ne!(Secret::generate().unwrap().hash(), Secret::generate().unwrap().hash());
    }

    #[test]
    fn nothing_is_printed() {
        let id = AppId::new("a-very-private-id").unwrap();
        assert_eq!(format!("{id:?} {:?}", Secret::generate().unwrap()), "AppId(..) Secret(..)");
        assert!(!AppId::new("two words").unwrap_err().to_string().contains("two words"));
    }
}
