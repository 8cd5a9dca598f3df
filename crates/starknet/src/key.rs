//! The local signer: ECDSA over the Stark curve. Nonces are derived as in the reference SDK.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use countersign_core::{Code, ParseError, Refusal};
use starknet_types_core::felt::Felt;
use zeroize::Zeroizing;

use crate::{curve, felt};

/// A secret key of the Stark curve. Wiped on drop, never printed.
///
/// Not constant-time: in the curve libraries of this crate (pathfinder-crypto, and starknet-rust-crypto on targets with 32-bit pointers),
/// the duration of signing and of deriving the public key depends on the secret. The libraries also take secrets by value and do not
/// wipe their own copies. Use an external signer on shared machines, and wherever others can measure the time.
///
/// ```
/// use countersign::starknet::{Felt, Key};
///
/// let key: Key =
///     "0x139fe4d6f02e666e86a6f58e65060f115cd3c185bd9e98bd829636931458f79".parse()?;
/// let [r, s] = key.sign(&Felt::from(7))?;
/// # let _ = (r, s);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Key {
    secret: Zeroizing<[u8; 32]>,
    /// The public key. It costs nearly as much as a signature, so it is computed when first needed, and then kept.
    public_key: OnceLock<Felt>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl FromStr for Key {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Key {
    /// Parses 1 to 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text and for zero or a number at or above the curve order.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut bytes = Zeroizing::new([0; 32]);
        felt::parse_padded(text.strip_prefix("0x").unwrap_or(text), &mut bytes).map_err(|_| Code::KeyMalformed)?;
        Self::from_bytes(&bytes)
    }

    /// Creates a key from the 32 bytes of a secret scalar, big-endian. The caller must wipe its own copy.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for zero and for a number at or above the curve order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ParseError> {
        if *bytes == [0; 32] || *bytes >= curve::ORDER {
            return Err(Code::KeyMalformed.into());
        }
        Ok(Self { secret: Zeroizing::new(*bytes), public_key: OnceLock::new() })
    }

    /// Returns the public key: the x coordinate that account contracts store.
    #[must_use]
    pub fn public_key(&self) -> Felt {
        // Every secret from 1 to below the order has a public key.
        *self.public_key.get_or_init(|| curve::public_key(&self.secret).unwrap_or_default())
    }

    /// Signs a hash and returns r and s. The nonce is that of RFC 6979 as in the reference SDK, so both produce the same signature.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if the hash is at or above 2^251, which the curve does not sign, or if no nonce gives a signature.
    /// Hashes of transactions and messages are below 2^251 except with negligible probability.
    pub fn sign(&self, hash: &Felt) -> Result<[Felt; 2], Refusal> {
        let signature = curve::sign(&self.secret, hash);
        signature.ok_or_else(|| Refusal::new(Code::Internal, "").with_reason("the curve library cannot sign this hash"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn the_public_key_is_computed_once_and_only_if_it_is_needed() {
        let key = Key::from_bytes(&[3; 32]).unwrap();
        key.sign(&Felt::from(7)).unwrap();
        assert_eq!(key.public_key.get(), None);
        let public_key = key.public_key();
        assert_eq!(Some(public_key), curve::public_key(&[3; 32]));
        assert_eq!(key.public_key.get(), Some(&public_key));
        assert_eq!(key.public_key(), public_key);
        assert_eq!(format!("{key:?}"), "Key(..)");
    }
}
