//! The local signer: ECDSA over the Stark curve, with the nonces of the reference SDK.

use std::fmt;
use std::str::FromStr;

use countersign_core::{Code, ParseError, Refusal};
use starknet_types_core::felt::Felt;
use zeroize::Zeroizing;

use crate::{curve, felt};

/// A secret key of the Stark curve. Wiped on drop, never printed.
///
/// Neither signing nor deriving the public key is constant-time in the curve libraries that this crate uses (pathfinder-crypto,
/// and starknet-crypto where pointers have 32 bits): how long they take depends on the secret. They also take secrets by value
/// without wiping their own copies. Use an external signer on a machine that others share, and where others can measure the time.
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

    /// Takes the 32 bytes of a secret scalar, big-endian. The caller wipes its own copy.
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
        // Every secret below the order has one.
        curve::public_key(&self.0).unwrap_or_default()
    }

    /// Signs a hash: RFC 6979 as in the reference SDK, so that both make the same signature of a hash.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] for a hash at or above 2^251, which the curve does not sign, or if no nonce gives a signature. No hash
    /// is known for which either happens.
    pub fn sign(&self, hash: &Felt) -> Result<[Felt; 2], Refusal> {
        let signature = curve::sign(&self.0, hash);
        signature.ok_or_else(|| Refusal::new(Code::Internal, "").with_reason("the curve library cannot sign this hash"))
    }
}
