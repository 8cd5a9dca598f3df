//! The local signer: keys of Sui's three simple schemes, Ed25519, secp256k1 and secp256r1.

use std::fmt;
use std::str::FromStr;

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use countersign_core::chains::digits;
use countersign_core::{Code, ParseError, Refusal, U256};
use ed25519_dalek::SigningKey;
use sui_crypto::Signer as _;
use sui_crypto::secp256k1::Secp256k1PrivateKey;
use sui_crypto::secp256r1::Secp256r1PrivateKey;
use sui_sdk_types::{Address, Ed25519PublicKey, Ed25519Signature, Secp256k1Signature, Secp256r1Signature, SimpleSignature};
use zeroize::Zeroizing;

/// The order of secp256k1.
const K1_ORDER: U256 = U256::from_limbs([0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX]);
/// The order of secp256r1.
const R1_ORDER: U256 = U256::from_limbs([0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000]);

/// A secret key of one of Sui's three simple schemes. Wiped on drop, never printed.
///
/// ```
/// use countersign::sui::Key;
///
/// let key =
///     Key::parse("0x0707070707070707070707070707070707070707070707070707070707070707")?;
/// assert_eq!(key.address(), Key::from_ed25519_seed(&[7; 32]).address());
/// # Ok::<(), countersign::report::ParseError>(())
/// ```
pub struct Key {
    key: Scheme,
    address: Address,
}

enum Scheme {
    Ed25519(SigningKey),
    Secp256k1(Secp256k1PrivateKey),
    Secp256r1(Secp256r1PrivateKey),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Parses `suiprivkey1..` of any simple scheme, or the 64 hex digits of an Ed25519 seed, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text, and for bytes that are not a key of the scheme.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut bytes = Zeroizing::new([0; 32]);
        let mut flag = 0;
        if let Ok(parsed) = CheckedHrpstring::new::<Bech32>(text) {
            if !parsed.hrp().as_str().eq_ignore_ascii_case("suiprivkey") || parsed.byte_iter().len() != 33 {
                return Err(Code::KeyMalformed.into());
            }
            let mut decoded = parsed.byte_iter();
            flag = decoded.next().ok_or(Code::KeyMalformed)?;
            for (to, from) in bytes.iter_mut().zip(decoded) {
                *to = from;
            }
        } else {
            digits::into(text.strip_prefix("0x").unwrap_or(text), bytes.as_mut_slice()).map_err(|_| Code::KeyMalformed)?;
        }
        match flag {
            0 => Ok(Self::from_ed25519_seed(&bytes)),
            1 => Self::from_secp256k1_bytes(&bytes),
            2 => Self::from_secp256r1_bytes(&bytes),
            _ => Err(Code::KeyMalformed.into()),
        }
    }

    /// Creates a key from the 32 bytes of an Ed25519 seed. The caller must wipe its own copy.
    #[must_use]
    pub fn from_ed25519_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let address = public_key(&key).derive_address();
        Self { key: Scheme::Ed25519(key), address }
    }

    /// Creates a key from the 32 bytes of a secp256k1 scalar, big-endian. The caller must wipe its own copy.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for zero and for a number at or above the curve order.
    pub fn from_secp256k1_bytes(bytes: &[u8; 32]) -> Result<Self, ParseError> {
        let key = Secp256k1PrivateKey::new(*bytes).map_err(|_| Code::KeyMalformed)?;
        let address = key.public_key().derive_address();
        Ok(Self { key: Scheme::Secp256k1(key), address })
    }

    /// Creates a key from the 32 bytes of a secp256r1 scalar, big-endian. The caller must wipe its own copy.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for zero and for a number at or above the curve order.
    pub fn from_secp256r1_bytes(bytes: &[u8; 32]) -> Result<Self, ParseError> {
        // The library does not check the bytes, and would panic later.
        let scalar = U256::from_be_bytes(*bytes);
        if scalar.is_zero() || scalar >= R1_ORDER {
            return Err(Code::KeyMalformed.into());
        }
        let key = Secp256r1PrivateKey::new(*bytes);
        let address = key.public_key().derive_address();
        Ok(Self { key: Scheme::Secp256r1(key), address })
    }

    /// Returns the account that this key controls.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Signs a digest, with s in the lower half of the curve order.
    pub(crate) fn sign(&self, digest: &[u8; 32]) -> Result<SimpleSignature, Refusal> {
        let signature: Result<SimpleSignature, _> = match &self.key {
            Scheme::Ed25519(key) => key
                .try_sign(digest)
                .map(|signature| Ed25519Signature::new(signature.to_bytes()))
                .map(|signature| SimpleSignature::Ed25519 { signature, public_key: public_key(key) }),
            Scheme::Secp256k1(key) => key.try_sign(digest),
            Scheme::Secp256r1(key) => key.try_sign(digest),
        };
        signature.map(low_s).map_err(|_| Refusal::new(Code::Internal, ""))
    }
}

impl FromStr for Key {
    type Err = ParseError;

    /// Parses a key: see [`Key::parse`].
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

fn public_key(key: &SigningKey) -> Ed25519PublicKey {
    Ed25519PublicKey::new(key.verifying_key().to_bytes())
}

/// Returns the curve order and s of an ECDSA signature.
fn order_and_s(signature: &SimpleSignature) -> Option<(U256, U256)> {
    let (order, bytes) = match signature {
        SimpleSignature::Secp256k1 { signature, .. } => (K1_ORDER, signature.inner()),
        SimpleSignature::Secp256r1 { signature, .. } => (R1_ORDER, signature.inner()),
        _ => return None,
    };
    let (_, s) = bytes.split_at(32);
    Some((order, U256::try_from_be_slice(s)?))
}

/// Returns whether s is in the upper half of the curve order, which validators refuse.
pub(crate) fn is_high_s(signature: &SimpleSignature) -> bool {
    order_and_s(signature).is_some_and(|(order, s)| s > order.wrapping_shr(1))
}

/// Returns the signature with s in the lower half of the curve order, which is as valid over the same digest. Neither the library for
/// secp256r1 nor every key service normalizes s.
pub(crate) fn low_s(signature: SimpleSignature) -> SimpleSignature {
    let Some((order, s)) = order_and_s(&signature).filter(|(order, s)| *s > order.wrapping_shr(1)) else { return signature };
    let lower = |found: &[u8; Secp256k1Signature::LENGTH]| {
        let mut bytes = *found;
        for (to, from) in bytes.iter_mut().skip(32).zip(order.saturating_sub(s).to_be_bytes::<32>()) {
            *to = from;
        }
        bytes
    };
    match signature {
        SimpleSignature::Secp256k1 { signature, public_key } => {
            SimpleSignature::Secp256k1 { signature: Secp256k1Signature::new(lower(signature.inner())), public_key }
        }
        SimpleSignature::Secp256r1 { signature, public_key } => {
            SimpleSignature::Secp256r1 { signature: Secp256r1Signature::new(lower(signature.inner())), public_key }
        }
        other => other,
    }
}
