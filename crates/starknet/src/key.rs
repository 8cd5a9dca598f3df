//! The local signer: ECDSA over the Stark curve. Nonces are derived as in the reference SDK.

use std::fmt;
use std::str::FromStr;

use countersign_core::{Code, ParseError, Refusal};
use starknet_types_core::felt::Felt;
use zeroize::Zeroizing;

use crate::{curve, felt};

/// A secret key of the Stark curve. Wiped on drop, never printed.
///
/// Not constant-time: in the curve libraries of this crate (pathfinder-crypto, and starknet-crypto on targets with 32-bit pointers),
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
pub struct Key(Zeroizing<[u8; 32]>);

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
        if *bytes == [0; 32] || *bytes >= curve::ORDER { Err(Code::KeyMalformed.into()) } else { Ok(Self(Zeroizing::new(*bytes))) }
    }

    /// Returns the public key: the x coordinate that account contracts store.
    #[must_use]
    pub fn public_key(&self) -> Felt {
        // Every secret from 1 to below the order has a public key.
        curve::public_key(&self.0).unwrap_or_default()
    }

    /// Signs a hash and returns r and s. The nonce is that of RFC 6979 as in the reference SDK, so both produce the same signature.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if the hash is at or above 2^251, which the curve does not sign, or if no nonce gives a signature.
    /// Hashes of transactions and messages are below 2^251 except with negligible probability.
    pub fn sign(&self, hash: &Felt) -> Result<[Felt; 2], Refusal> {
        let signature = curve::sign(&self.0, hash);
        signature.ok_or_else(|| Refusal::new(Code::Internal, "").with_reason("the curve library cannot sign this hash"))
    }
}
