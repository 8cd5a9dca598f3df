//! Local keys: for tests, the program, and wallets that hold their own.

use std::fmt;

use bitcoin::key::{Keypair, TapTweak};
use bitcoin::secp256k1::{Message, SecretKey};
use bitcoin::sighash::TapSighashType;
use bitcoin::{EcdsaSighashType, PublicKey, base58, ecdsa, taproot};
use countersign_core::Code;
use countersign_core::chains::digits;
use zeroize::Zeroizing;

use super::{Proof, SECP, owns};
use crate::address::taproot_key;
use crate::transaction::{Input, Kind, Spend};

/// Most keys in one text: no transaction that nodes relay has more inputs.
const MAX_KEYS: usize = 2_000;

/// The wallet's secret keys, one for each kind of coin that it spends. Wiped on drop, never printed.
pub struct Key(Vec<Held>);

struct Held {
    secret: Zeroizing<[u8; 32]>,
    public_key: PublicKey,
    /// Output key of the taproot output that only this key opens (BIP-86).
    taproot: [u8; 32],
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Reads keys with white space between them, each as WIF of a compressed key, or as 64 hex digits with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text.
    pub fn parse(text: &str) -> Result<Self, Code> {
        let keys: Vec<_> = text.split_ascii_whitespace().take(MAX_KEYS.saturating_add(1)).map(Held::parse).collect::<Result<_, _>>()?;
        if (1..=MAX_KEYS).contains(&keys.len()) { Ok(Self(keys)) } else { Err(Code::KeyMalformed) }
    }

    /// The first key's x-only public key: what a request names as delegate.
    #[must_use]
    pub fn x_only(&self) -> Option<[u8; 32]> {
        self.0.first().map(Held::x_only)
    }

    /// Signs an input; `None` if no key opens it.
    pub(crate) fn sign(&self, input: &Input) -> Option<Proof> {
        let message = Message::from_digest(input.digest);
        match &input.kind {
            Kind::Htlc { signer, .. } => self.sign_as(signer, &message).map(schnorr),
            Kind::Wallet(Spend::P2tr) => {
                let output_key = taproot_key(&input.prevout.script_pubkey)?;
                let held = self.0.iter().find(|held| held.taproot == output_key)?;
                Some(schnorr(held.with_keypair(|keypair| {
                    let mut tweaked = keypair.tap_tweak(&SECP, None).to_keypair();
                    let signature = SECP.sign_schnorr_no_aux_rand(&message, &tweaked);
                    tweaked.non_secure_erase();
                    signature
                })?))
            }
            Kind::Done(_) => None,
            Kind::Wallet(_) => {
                let held = self.0.iter().find(|held| owns(&held.public_key, input))?;
                let mut secret = SecretKey::from_slice(held.secret.as_slice()).ok()?;
                let signature = SECP.sign_ecdsa(&message, &secret);
                secret.non_secure_erase();
                let signature = ecdsa::Signature { signature, sighash_type: EcdsaSighashType::All };
                Some(Proof::Ecdsa { signature, public_key: held.public_key })
            }
        }
    }

    /// Signs with the key that has this x-only public key, untweaked.
    pub(crate) fn sign_as(&self, signer: &[u8; 32], message: &Message) -> Option<bitcoin::secp256k1::schnorr::Signature> {
        let held = self.0.iter().find(|held| held.x_only() == *signer)?;
        held.with_keypair(|keypair| SECP.sign_schnorr_no_aux_rand(message, keypair))
    }
}

fn schnorr(signature: bitcoin::secp256k1::schnorr::Signature) -> Proof {
    Proof::Schnorr(taproot::Signature { signature, sighash_type: TapSighashType::Default })
}

impl Held {
    fn parse(text: &str) -> Result<Self, Code> {
        let mut secret = Zeroizing::new([0; 32]);
        if digits::into(text.strip_prefix("0x").unwrap_or(text), secret.as_mut_slice()).is_err() {
            // Version, key, and the mark of a compressed public key: segwit knows no other.
            let decoded = Zeroizing::new(base58::decode_check(text).map_err(|_| Code::KeyMalformed)?);
            let [0x80 | 0xb0 | 0xef, key @ .., 0x01] = decoded.as_slice() else { return Err(Code::KeyMalformed) };
            if key.len() != secret.len() {
                return Err(Code::KeyMalformed);
            }
            secret.copy_from_slice(key);
        }
        let mut parsed = SecretKey::from_slice(secret.as_slice()).map_err(|_| Code::KeyMalformed)?;
        let mut keypair = Keypair::from_secret_key(&SECP, &parsed);
        let (x_only, _) = keypair.x_only_public_key();
        let (taproot, _) = x_only.tap_tweak(&SECP, None);
        let public_key = PublicKey::new(keypair.public_key());
        parsed.non_secure_erase();
        keypair.non_secure_erase();
        Ok(Self { secret, public_key, taproot: taproot.to_x_only_public_key().serialize() })
    }

    fn x_only(&self) -> [u8; 32] {
        self.public_key.inner.x_only_public_key().0.serialize()
    }

    fn with_keypair<T>(&self, then: impl FnOnce(&Keypair) -> T) -> Option<T> {
        let mut keypair = Keypair::from_seckey_slice(&SECP, self.secret.as_slice()).ok()?;
        let done = then(&keypair);
        keypair.non_secure_erase();
        Some(done)
    }
}
