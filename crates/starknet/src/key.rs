//! The local signer: ECDSA over the Stark curve, with the nonces of the reference SDK.

use std::fmt;
use std::str::FromStr;

use countersign_core::{Code, ParseError, Refusal};
use rfc6979::HmacDrbg;
use sha2::Sha256;
use starknet_crypto::{Felt, SignError};
use zeroize::Zeroizing;

use crate::felt;

/// The order of the curve's group, big-endian.
const ORDER: [u8; 32] = [
    0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xb7, 0x81, 0x12, 0x6d, 0xca, 0xe7,
    0xb2, 0x32, 0x1e, 0x66, 0xa2, 0x41, 0xad, 0xc6, 0x4d, 0x2f,
];

/// Half of the candidates for a nonce are beyond the order, so no hash needs nearly as many.
const MAX_CANDIDATES: usize = 256;

/// A secret key of the Stark curve. Wiped on drop, never printed.
///
/// Signing is not constant-time, and the curve library takes secrets by value without wiping its own copies. Use an external
/// signer where others can run code on the same machine or measure the time.
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
        if *bytes == [0; 32] || *bytes >= ORDER { Err(Code::KeyMalformed.into()) } else { Ok(Self(Zeroizing::new(*bytes))) }
    }

    fn secret(&self) -> Felt {
        // Below the curve order, and so below the prime.
        Felt::from_bytes_be(&self.0)
    }

    /// Returns the public key: the x coordinate that account contracts store.
    #[must_use]
    pub fn public_key(&self) -> Felt {
        starknet_crypto::get_public_key(&self.secret())
    }

    /// Signs a hash: RFC 6979 as in the reference SDK, so that both make the same signature of a hash.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] for a hash at or above 2^251, which the curve library does not sign, or if no nonce gives a
    /// signature. No hash is known for which either happens.
    pub fn sign(&self, hash: &Felt) -> Result<[Felt; 2], Refusal> {
        let secret = self.secret();
        let mut candidates = HmacDrbg::<Sha256>::new(self.0.as_slice(), &hash.to_bytes_be(), &[]);
        let mut k = Zeroizing::new([0; 32]);
        for _ in 0..MAX_CANDIDATES {
            candidates.fill_bytes(k.as_mut_slice());
            cut_to_252_bits(&mut k);
            if *k == [0; 32] || *k >= ORDER {
                continue;
            }
            match starknet_crypto::sign(&secret, hash, &Felt::from_bytes_be(&k)) {
                Ok(signature) => return Ok([signature.r, signature.s]),
                Err(SignError::InvalidK) => {}
                Err(SignError::InvalidMessageHash) => break,
            }
        }
        Err(Refusal::new(Code::Internal, "").with_reason("the curve library cannot sign this hash"))
    }
}

/// Takes the first 252 bits of a candidate. One that begins with a zero byte stays as it is, because the reference SDK
/// (@scure/starknet 1.1) counts bits from the first byte that is not zero; the curve library counts from the first byte.
fn cut_to_252_bits(candidate: &mut [u8; 32]) {
    if matches!(candidate, [0, ..]) {
        return;
    }
    let mut carried = 0;
    for byte in candidate {
        let low = *byte << 4;
        *byte = carried | (*byte >> 4);
        carried = low;
    }
}
