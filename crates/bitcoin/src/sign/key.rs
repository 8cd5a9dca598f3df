//! The local signer: keys of wallets that hold them in memory.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use bitcoin::secp256k1::{self, schnorr};
use bitcoin::sighash::TapSighashType;
use bitcoin::{PubkeyHash, PublicKey, XOnlyPublicKey, base58, taproot};
use countersign_core::chains::digits;
use countersign_core::{Code, ParseError};
use zeroize::Zeroizing;

use super::Proof;
use super::proof::hash_opens;
use crate::curve::KeyPair;
use crate::transaction::{Input, Kind, Spend};

/// The most keys after the first one. No transaction that nodes relay has more inputs.
const MAX_OTHERS: usize = 1_999;

/// One or more secret keys of the wallet, each of which can sign inputs. Wiped on drop, never printed.
///
/// ```
/// use countersign::bitcoin::Key;
///
/// // The secret key 1, whose public key is the generator.
/// let key: Key =
///     "0000000000000000000000000000000000000000000000000000000000000001".parse()?;
/// assert_eq!(
///     key.x_only().to_string(),
///     "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
/// );
/// # Ok::<(), countersign::report::ParseError>(())
/// ```
pub struct Key {
    first: KeyMaterial,
    others: Vec<KeyMaterial>,
}

struct KeyMaterial {
    pair: KeyPair,
    public_key: PublicKey,
    key_hash: PubkeyHash,
    /// The key of the taproot output that this key alone can spend (BIP-86). It costs as much as the key itself, so it is only computed
    /// if a payment spends taproot outputs.
    key_path: OnceLock<Option<KeyPair>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Parses keys separated by white space. Each is the WIF of a compressed key, or 64 hex digits with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text, and for more than 2,000 keys.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut texts = text.split_ascii_whitespace();
        let first = KeyMaterial::parse(texts.next().ok_or(Code::KeyMalformed)?)?;
        let others: Vec<_> = texts.by_ref().take(MAX_OTHERS).map(KeyMaterial::parse).collect::<Result<_, _>>()?;
        if texts.next().is_some() { Err(Code::KeyMalformed.into()) } else { Ok(Self { first, others }) }
    }

    /// Returns the x-only public key of the first key, which a request can have as its delegate.
    #[must_use]
    pub fn x_only(&self) -> XOnlyPublicKey {
        self.first.x_only()
    }

    fn all(&self) -> impl Iterator<Item = &KeyMaterial> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Signs an input; `None` if no key can sign it, or if it is presigned.
    pub(super) fn sign(&self, input: &Input) -> Option<Proof> {
        match &input.kind {
            Kind::Presigned(_) => None,
            Kind::Htlc(leaf) => self.sign_as(&leaf.signer, &input.digest).map(|signature| Proof::leaf(leaf, bare(signature))),
            Kind::Wallet(Spend::P2tr { output_key }) => {
                let pair = self.all().filter_map(KeyMaterial::key_path).find(|pair| x_only(&pair.public_key()) == *output_key)?;
                pair.sign_schnorr(&input.digest).map(|signature| Proof::KeyPath(bare(signature)))
            }
            Kind::Wallet(spend) => {
                let script = &input.prevout.script_pubkey;
                let material = self.all().find(|material| hash_opens(&material.key_hash, spend, script))?;
                let signature = material.pair.sign_ecdsa(&input.digest)?;
                Some(Proof::ecdsa(spend, signature, material.public_key))
            }
        }
    }

    /// Signs with the key that has this x-only public key, without a taproot tweak; `None` if there is no such key.
    pub(crate) fn sign_as(&self, signer: &XOnlyPublicKey, digest: &[u8; 32]) -> Option<schnorr::Signature> {
        let material = self.all().find(|material| material.x_only() == *signer)?;
        material.pair.sign_schnorr(digest)
    }
}

/// Returns a signature with the requested hash type, which the witness does not name.
const fn bare(signature: schnorr::Signature) -> taproot::Signature {
    taproot::Signature { signature, sighash_type: TapSighashType::Default }
}

impl FromStr for Key {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl KeyMaterial {
    fn parse(text: &str) -> Result<Self, ParseError> {
        let mut secret = Zeroizing::new([0; 32]);
        if digits::into(text.strip_prefix("0x").unwrap_or(text), secret.as_mut_slice()).is_err() {
            // Version, key, and the flag of a compressed public key. Segwit allows no other keys.
            let decoded = Zeroizing::new(base58::decode_check(text).map_err(|_| Code::KeyMalformed)?);
            let [0x80 | 0xb0 | 0xef, key @ .., 0x01] = decoded.as_slice() else { return Err(Code::KeyMalformed.into()) };
            if key.len() != secret.len() {
                return Err(Code::KeyMalformed.into());
            }
            secret.copy_from_slice(key);
        }
        let pair = KeyPair::new(&secret).ok_or(Code::KeyMalformed)?;
        let public_key = PublicKey::new(pair.public_key());
        Ok(Self { pair, public_key, key_hash: public_key.pubkey_hash(), key_path: OnceLock::new() })
    }

    fn x_only(&self) -> XOnlyPublicKey {
        x_only(&self.public_key.inner)
    }

    fn key_path(&self) -> Option<&KeyPair> {
        self.key_path.get_or_init(|| self.pair.key_path()).as_ref()
    }
}

fn x_only(key: &secp256k1::PublicKey) -> XOnlyPublicKey {
    key.x_only_public_key().0
}
