//! Private values: the secret of a swap, and the application id.

use std::fmt;
use std::str::FromStr;

use countersign::{Code, Refusal, SecretHash};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, RandomError};

/// The 32-byte secret that redeems a swap. A solver that learns it before it has paid can redeem the source and pay nothing. Wiped
/// on drop, never printed.
///
/// ```
/// use countersign_client::Secret;
///
/// # fn main() -> Result<(), countersign_client::Error> {
/// let secret = Secret::generate()?;
/// let hash = secret.hash(); // goes into the order's request
/// assert_eq!(Secret::parse(&secret.to_hex())?.hash(), hash);
/// # Ok(())
/// # }
/// ```
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Generates a secret with the operating system's random number generator.
    ///
    /// # Errors
    ///
    /// [`Error::Random`] if the operating system returns no random numbers.
    pub fn generate() -> Result<Self, Error> {
        let mut secret = Self([0; 32]);
        getrandom::fill(&mut secret.0).map_err(RandomError)?;
        Ok(secret)
    }

    pub(crate) const fn from_bytes(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Parses a secret: 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] at `/secret`, with [`Code::KeyMalformed`] for text of another form, or with [`Code::SecretHashTrivial`] for a
    /// secret that is easy to guess. Neither contains any part of the text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut secret = Self([0; 32]);
        let digits = text.strip_prefix("0x").unwrap_or(text);
        // The digits are checked here because the hex crate would accept a second 0x.
        let plain = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !plain || hex::decode_to_slice(digits, &mut secret.0).is_err() {
            return Err(Error::Input(Refusal::new(Code::KeyMalformed, "/secret").with_reason("a secret is 64 hex digits")));
        }
        if secret.hash().is_trivial() {
            return Err(Error::Input(Refusal::new(Code::SecretHashTrivial, "/secret")));
        }
        Ok(secret)
    }

    /// Returns the SHA-256 hash of the secret. It locks both legs, and an order contains it.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }

    /// Returns the bytes of the secret, to build a redemption with.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the secret as 64 lower-case hex digits without `0x`.
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

/// The id that identifies the application to the service. Wiped on drop, never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct AppId(String);

impl AppId {
    /// Parses an id: 1 to 256 printable ASCII characters without space.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] with [`Code::TextNotPlain`] at `/app_id`. It does not contain the text.
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
