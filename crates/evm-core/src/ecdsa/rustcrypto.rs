//! RustCrypto's `k256`.

use alloy_primitives::{Address, B256, Signature};
use k256::ecdsa::VerifyingKey;
use k256::ecdsa::hazmat::SignPrimitive;
use k256::elliptic_curve::PrimeField;
use k256::elliptic_curve::ops::{MulByGenerator, Reduce};
use k256::sha2::Sha256;
use k256::{AffinePoint, NonZeroScalar, ProjectivePoint, Scalar, U256};
use zeroize::Zeroizing;

/// A secret scalar. Wiped on drop.
///
/// This is not a `SigningKey`, because that derives its public key without the generator's tables, which is slow (ADR 11).
pub(crate) struct Secret(Zeroizing<NonZeroScalar>);

impl Secret {
    /// Returns the scalar and its account; `None` for zero and for a number at or above the curve order.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<(Self, Address)> {
        let scalar = NonZeroScalar::from_repr((*bytes).into()).into_option()?;
        let secret = Self(Zeroizing::new(scalar));
        let point = ProjectivePoint::mul_by_generator(secret.0.as_ref());
        let key = VerifyingKey::from_affine(AffinePoint::from(point)).ok()?;
        Some((secret, Address::from_public_key(&key)))
    }

    /// Signs a digest. Returns `None` if the nonce gives no signature; no digest is known for which this happens.
    pub(crate) fn sign(&self, digest: &B256) -> Option<Signature> {
        // RFC 6979 uses the digest modulo the curve order.
        let digest = <Scalar as Reduce<U256>>::reduce_bytes(&digest.0.into()).to_repr();
        let (signature, id) = self.0.as_ref().try_sign_prehashed_rfc6979::<Sha256>(&digest, &[]).ok()?;
        Some(Signature::from((signature, id?)))
    }
}

/// Returns the account that made a signature; `None` if no account can have made it.
pub(crate) fn recover(signature: &Signature, digest: &B256) -> Option<Address> {
    signature.recover_from_prehash(digest).ok().map(|key| Address::from_public_key(&key))
}

/// Returns the account of a public key in the encoding of SEC 1; `None` if it is not a point of the curve.
pub(crate) fn account(public_key: &[u8]) -> Option<Address> {
    VerifyingKey::from_sec1_bytes(public_key).ok().as_ref().map(Address::from_public_key)
}
