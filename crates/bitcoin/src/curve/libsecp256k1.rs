//! libsecp256k1, in C.

use bitcoin::XOnlyPublicKey;
use bitcoin::key::{Keypair, TapTweak, TweakedPublicKey};
use bitcoin::secp256k1::{Message, PublicKey, SecretKey, ecdsa, schnorr};

use super::SECP;

/// Returns the public key of a secret key; `None` if the bytes are not one.
pub(crate) fn public_key(secret: &[u8; 32]) -> Option<PublicKey> {
    with_keypair(secret, Keypair::public_key)
}

/// Returns the output key of the taproot output that a key alone can spend (BIP-86).
#[expect(clippy::unnecessary_wraps, reason = "the other library can fail")]
pub(crate) fn output_key(internal: &XOnlyPublicKey) -> Option<TweakedPublicKey> {
    Some(internal.tap_tweak(&SECP, None).0)
}

/// Signs a digest by BIP-340, without auxiliary randomness.
pub(crate) fn sign_schnorr(secret: &[u8; 32], digest: &[u8; 32]) -> Option<schnorr::Signature> {
    with_keypair(secret, |keypair| SECP.sign_schnorr_no_aux_rand(&Message::from_digest(*digest), keypair))
}

/// Signs a digest by BIP-340 for the output key of a secret key.
pub(crate) fn sign_key_path(secret: &[u8; 32], digest: &[u8; 32]) -> Option<schnorr::Signature> {
    with_keypair(secret, |keypair| {
        let mut tweaked = keypair.tap_tweak(&SECP, None).to_keypair();
        let signature = SECP.sign_schnorr_no_aux_rand(&Message::from_digest(*digest), &tweaked);
        tweaked.non_secure_erase();
        signature
    })
}

/// Signs a digest by ECDSA, with the nonce of RFC 6979 and the low s.
pub(crate) fn sign_ecdsa(secret: &[u8; 32], digest: &[u8; 32]) -> Option<ecdsa::Signature> {
    let mut secret = SecretKey::from_slice(secret).ok()?;
    let signature = SECP.sign_ecdsa(&Message::from_digest(*digest), &secret);
    secret.non_secure_erase();
    Some(signature)
}

/// Returns whether a BIP-340 signature of a digest is valid.
pub(crate) fn verify_schnorr(signature: &schnorr::Signature, digest: &[u8; 32], key: &XOnlyPublicKey) -> bool {
    SECP.verify_schnorr(signature, &Message::from_digest(*digest), key).is_ok()
}

/// Returns whether an ECDSA signature of a digest is valid and has the low s.
pub(crate) fn verify_ecdsa(signature: &ecdsa::Signature, digest: &[u8; 32], key: &PublicKey) -> bool {
    SECP.verify_ecdsa(&Message::from_digest(*digest), signature, key).is_ok()
}

fn with_keypair<T>(secret: &[u8; 32], then: impl FnOnce(&Keypair) -> T) -> Option<T> {
    let mut keypair = Keypair::from_seckey_slice(&SECP, secret).ok()?;
    let done = then(&keypair);
    keypair.non_secure_erase();
    Some(done)
}
