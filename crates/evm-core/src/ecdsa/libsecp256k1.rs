//! Bitcoin Core's libsecp256k1.

use std::sync::LazyLock;

use alloy_primitives::{Address, B256, Signature};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{All, Message, PublicKey, Secp256k1, SecretKey};

/// The context is not randomized, because nothing below the client has a source of randomness. Signing is constant-time without it.
/// Blinding would be a second barrier against measurements of the processor's power.
static CONTEXT: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// A secret scalar. Wiped on drop.
pub(crate) struct Secret(SecretKey);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

impl Secret {
    /// Returns the scalar and its account; `None` for zero and for a number at or above the curve order.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<(Self, Address)> {
        let secret = Self(SecretKey::from_slice(bytes).ok()?);
        let address = address(&PublicKey::from_secret_key(&CONTEXT, &secret.0));
        Some((secret, address))
    }

    /// Signs a digest. This library always returns a signature; the other one may return `None`.
    #[allow(clippy::unnecessary_wraps, reason = "the two libraries have one interface")]
    pub(crate) fn sign(&self, digest: &B256) -> Option<Signature> {
        let (id, bytes) = CONTEXT.sign_ecdsa_recoverable(&Message::from_digest(digest.0), &self.0).serialize_compact();
        Some(Signature::from_bytes_and_parity(&bytes, id.to_i32() & 1 == 1))
    }
}

/// Returns the account that made a signature; `None` if no account can have made it.
pub(crate) fn recover(signature: &Signature, digest: &B256) -> Option<Address> {
    let id = RecoveryId::from_i32(i32::from(signature.v())).ok()?;
    let compact = RecoverableSignature::from_compact(signature.as_bytes().first_chunk::<64>()?, id).ok()?;
    CONTEXT.recover_ecdsa(&Message::from_digest(digest.0), &compact).ok().as_ref().map(address)
}

/// Returns the account of a public key in the encoding of SEC 1; `None` if it is not a point of the curve.
pub(crate) fn account(public_key: &[u8]) -> Option<Address> {
    PublicKey::from_slice(public_key).ok().as_ref().map(address)
}

fn address(key: &PublicKey) -> Address {
    let [_, coordinates @ ..] = key.serialize_uncompressed();
    Address::from_raw_public_key(&coordinates)
}
