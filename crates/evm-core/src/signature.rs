//! secp256k1 signatures over Keccak-256 or SHA-256 digests: parsing them, checking them, and making them with a local key.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256, Signature};
use countersign_core::chains::digits;
use countersign_core::{Code, ParseError, Refusal};
use zeroize::Zeroizing;

use crate::ecdsa::Secret;

mod contract;
mod external;
mod proof;

pub use contract::{NO_CODE, for_account};
pub use external::{ExternalSignature, Stated};
pub use proof::is_by_key;
pub(crate) use proof::{Asked, is_of, not_a_contract, prove};

/// A secp256k1 secret key. Wiped on drop, never printed.
///
/// It signs in constant time, without blinding. Use an external signer where other side channels matter.
///
/// ```
/// use countersign::evm::Key;
///
/// # fn main() -> Result<(), countersign::report::ParseError> {
/// let key: Key =
///     "0x4646464646464646464646464646464646464646464646464646464646464646".parse()?;
/// assert_eq!(key.address().to_string(), "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F");
/// assert_eq!(format!("{key:?}"), "Key(..)");
/// # Ok(())
/// # }
/// ```
pub struct Key {
    secret: Secret,
    address: Address,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Parses 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text and for zero or a number at or above the curve order.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut bytes = Zeroizing::new([0; 32]);
        digits::into(text.strip_prefix("0x").unwrap_or(text), bytes.as_mut_slice()).map_err(|_| Code::KeyMalformed)?;
        Self::from_bytes(&bytes)
    }

    /// Creates a key from the 32 bytes of a secret scalar, big-endian. The caller must wipe its own copy.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for zero and for a number at or above the curve order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ParseError> {
        let (secret, address) = Secret::from_bytes(bytes).ok_or(Code::KeyMalformed)?;
        Ok(Self { secret, address })
    }

    /// Returns the account that this key controls.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Requires that the key controls `sender`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`]. It shows the key's own address, which is not secret and helps to find the right key.
    pub fn check_controls(&self, sender: Address, format: impl Fn(Address) -> String) -> Result<(), Refusal> {
        if self.address == sender {
            return Ok(());
        }
        Err(Refusal::new(Code::KeyMismatch, "")
            .with_expected(format!("the key of {}", format(sender)))
            .with_actual(format!("the key of {}", format(self.address))))
    }

    /// Signs a digest: RFC 6979, low s.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if the nonce gives no signature. No digest is known for which this happens.
    pub fn sign(&self, digest: &B256) -> Result<Signature, Refusal> {
        self.secret.sign(digest).ok_or_else(|| Refusal::new(Code::Internal, ""))
    }
}

impl FromStr for Key {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// Returns the 65 bytes r‖s‖v with v 27 or 28.
#[must_use]
pub fn bytes(signature: &Signature) -> Vec<u8> {
    signature.as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_number_below_the_order() {
        let digits = "4646464646464646464646464646464646464646464646464646464646464646";
        let key = Key::parse(digits).unwrap();
        assert_eq!(key.address().to_string(), "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F");
        assert_eq!(Key::from_bytes(&[0x46; 32]).unwrap().address(), format!("0x{digits}").parse::<Key>().unwrap().address());
        assert_eq!(format!("{key:?}"), "Key(..)");
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        for text in ["", "0x", &"0".repeat(64), order, &digits[1..], &format!("{digits}46"), &digits.replace('4', "g")] {
            assert_eq!(Key::parse(text).unwrap_err().code(), Code::KeyMalformed, "{text}");
        }
    }
}
