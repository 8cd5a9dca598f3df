//! libsecp256k1, in C.

use bitcoin::XOnlyPublicKey;
use bitcoin::key::{Keypair, TapTweak, TweakedPublicKey};
use bitcoin::secp256k1::{Message, PublicKey, ecdsa, schnorr};

use super::SECP;

/// A secret key with its public key, in one allocation that is wiped on drop, so that moving the value copies no secret.
pub(crate) struct KeyPair(Box<Keypair>);

impl KeyPair {
    /// Creates the pair; `None` if the bytes are not a secret key.
    pub(crate) fn new(secret: &[u8; 32]) -> Option<Self> {
        let mut keypair = Keypair::from_seckey_slice(&SECP, secret).ok()?;
        let pair = Self(Box::new(keypair));
        keypair.non_secure_erase();
        Some(pair)
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        self.0.public_key()
    }

    /// Signs a digest by BIP-340, without auxiliary randomness.
    pub(crate) fn sign_schnorr(&self, digest: &[u8; 32]) -> Option<schnorr::Signature> {
        Some(SECP.sign_schnorr_no_aux_rand(&Message::from_digest(*digest), &self.0))
    }

    /// Returns the pair of the output key of the taproot output that this key alone can spend (BIP-86).
    #[expect(clippy::unnecessary_wraps, reason = "the other library can fail")]
    pub(crate) fn key_path(&self) -> Option<Self> {
        let mut tweaked = self.0.tap_tweak(&SECP, None).to_keypair();
        let pair = Self(Box::new(tweaked));
        tweaked.non_secure_erase();
        Some(pair)
    }

    /// Signs a digest by ECDSA, with the nonce of RFC 6979 and the low s.
    pub(crate) fn sign_ecdsa(&self, digest: &[u8; 32]) -> Option<ecdsa::Signature> {
        let mut secret = self.0.secret_key();
        let signature = SECP.sign_ecdsa(&Message::from_digest(*digest), &secret);
        secret.non_secure_erase();
        Some(signature)
    }
}

impl Drop for KeyPair {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

/// Returns the output key of the taproot output that a key alone can spend (BIP-86).
#[expect(clippy::unnecessary_wraps, reason = "the other library can fail")]
pub(crate) fn output_key(internal: &XOnlyPublicKey) -> Option<TweakedPublicKey> {
    Some(internal.tap_tweak(&SECP, None).0)
}

/// Returns whether a BIP-340 signature of a digest is valid.
pub(crate) fn verify_schnorr(signature: &schnorr::Signature, digest: &[u8; 32], key: &XOnlyPublicKey) -> bool {
    SECP.verify_schnorr(signature, &Message::from_digest(*digest), key).is_ok()
}

/// Returns whether an ECDSA signature of a digest is valid and has the low s.
pub(crate) fn verify_ecdsa(signature: &ecdsa::Signature, digest: &[u8; 32], key: &PublicKey) -> bool {
    SECP.verify_ecdsa(&Message::from_digest(*digest), signature, key).is_ok()
}
