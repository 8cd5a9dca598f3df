//! RustCrypto's `k256`. Each item does the same as its namesake in `libsecp256k1`.

use bitcoin::XOnlyPublicKey;
use bitcoin::hashes::Hash;
use bitcoin::key::TweakedPublicKey;
use bitcoin::secp256k1::{PublicKey, ecdsa, schnorr};
use bitcoin::taproot::TapTweakHash;
use countersign_core::chains::taproot;
use k256::ecdsa::hazmat::{SignPrimitive, VerifyPrimitive};
use k256::elliptic_curve::PrimeField;
use k256::elliptic_curve::ops::{MulByGenerator, Reduce};
use k256::elliptic_curve::sec1::ToEncodedPoint;
use k256::schnorr::{Signature, SigningKey, VerifyingKey};
use k256::sha2::Sha256;
use k256::{AffinePoint, NonZeroScalar, ProjectivePoint, Scalar, U256};
use zeroize::Zeroizing;

pub(crate) struct KeyPair {
    secret: Box<Zeroizing<[u8; 32]>>,
    public_key: PublicKey,
}

impl KeyPair {
    pub(crate) fn new(secret: &[u8; 32]) -> Option<Self> {
        let point = ProjectivePoint::mul_by_generator(scalar(secret)?.as_ref());
        let public_key = PublicKey::from_slice(AffinePoint::from(point).to_encoded_point(true).as_bytes()).ok()?;
        let mut boxed = Box::<Zeroizing<[u8; 32]>>::default();
        boxed.copy_from_slice(secret);
        Some(Self { secret: boxed, public_key })
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        self.public_key
    }

    pub(crate) fn sign_schnorr(&self, digest: &[u8; 32]) -> Option<schnorr::Signature> {
        sign(&SigningKey::from_bytes(self.secret.as_slice()).ok()?, digest)
    }

    pub(crate) fn key_path(&self) -> Option<Self> {
        // `SigningKey` negates the scalar if the y coordinate is odd, as BIP-341 requires before the tweak.
        let key = SigningKey::from_bytes(self.secret.as_slice()).ok()?;
        let internal = XOnlyPublicKey::from_slice(&key.verifying_key().to_bytes()).ok()?;
        let tweak = Scalar::from_repr(tweak_of(internal).into()).into_option()?;
        #[expect(clippy::arithmetic_side_effects, reason = "the sum is one modulo the order")]
        let sum = Zeroizing::new(*key.as_nonzero_scalar().as_ref() + tweak);
        Self::new(&Zeroizing::new(sum.to_repr().into()))
    }

    pub(crate) fn sign_ecdsa(&self, digest: &[u8; 32]) -> Option<ecdsa::Signature> {
        // RFC 6979 uses the digest modulo the curve order.
        let digest = <Scalar as Reduce<U256>>::reduce_bytes(&(*digest).into()).to_repr();
        let (signature, _) = scalar(&self.secret)?.as_ref().try_sign_prehashed_rfc6979::<Sha256>(&digest, &[]).ok()?;
        ecdsa::Signature::from_compact(&signature.to_bytes()).ok()
    }
}

pub(crate) fn output_key(internal: &XOnlyPublicKey) -> Option<TweakedPublicKey> {
    let (key, _) = taproot::tweak(internal.serialize(), tweak_of(*internal))?;
    XOnlyPublicKey::from_slice(&key).ok().map(TweakedPublicKey::dangerous_assume_tweaked)
}

pub(crate) fn verify_schnorr(signature: &schnorr::Signature, digest: &[u8; 32], key: &XOnlyPublicKey) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(&key.serialize()) else { return false };
    Signature::try_from(signature.serialize().as_slice()).is_ok_and(|signature| key.verify_raw(digest, &signature).is_ok())
}

pub(crate) fn verify_ecdsa(signature: &ecdsa::Signature, digest: &[u8; 32], key: &PublicKey) -> bool {
    let Ok(key) = k256::PublicKey::from_sec1_bytes(&key.serialize()) else { return false };
    let Ok(signature) = k256::ecdsa::Signature::from_slice(&signature.serialize_compact()) else { return false };
    signature.normalize_s().is_none() && key.as_affine().verify_prehashed(&(*digest).into(), &signature).is_ok()
}

fn scalar(secret: &[u8; 32]) -> Option<Zeroizing<NonZeroScalar>> {
    NonZeroScalar::from_repr((*secret).into()).into_option().map(Zeroizing::new)
}

fn tweak_of(internal: XOnlyPublicKey) -> [u8; 32] {
    TapTweakHash::from_key_and_tweak(internal, None).to_byte_array()
}

fn sign(key: &SigningKey, digest: &[u8; 32]) -> Option<schnorr::Signature> {
    // BIP-340 without auxiliary randomness is BIP-340 with zeros.
    let signature = key.sign_raw(digest, &[0; 32]).ok()?;
    schnorr::Signature::from_slice(&signature.to_bytes()).ok()
}
