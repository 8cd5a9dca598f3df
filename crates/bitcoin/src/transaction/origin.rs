//! Key origins, by which a signer finds the key of an output (BIP-32, BIP-174, BIP-371).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bitcoin::bip32::{DerivationPath, Fingerprint, KeySource};
use bitcoin::psbt;
use bitcoin::{CompressedPublicKey, ScriptBuf, TapLeafHash, XOnlyPublicKey};
use countersign_core::{Code, ParseError};

use super::Spend;
use crate::curve;

/// A public key of the wallet and its derivation.
///
/// The text form is the key expression of output descriptors (BIP-380).
///
/// ```
/// use countersign::bitcoin::KeyOrigin;
///
/// let text = "[d34db33f/84'/0'/0'/0/3]\
///     0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
/// let origin: KeyOrigin = text.parse().unwrap();
/// assert_eq!(origin.to_string(), text);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyOrigin {
    /// Fingerprint of the master key.
    pub fingerprint: Fingerprint,
    /// The path from the master key.
    pub path: DerivationPath,
    /// The derived key, which is the internal key of taproot outputs.
    pub public_key: CompressedPublicKey,
}

impl KeyOrigin {
    /// Creates an origin from the fingerprint of the master key, the path, and the derived key.
    #[must_use]
    pub const fn new(fingerprint: Fingerprint, path: DerivationPath, public_key: CompressedPublicKey) -> Self {
        Self { fingerprint, path, public_key }
    }

    fn source(&self) -> KeySource {
        (self.fingerprint, self.path.clone())
    }

    pub(crate) fn x_only(&self) -> XOnlyPublicKey {
        self.public_key.0.x_only_public_key().0
    }

    /// Returns the scripts that this key alone can spend: p2wpkh, p2sh-p2wpkh, p2pkh, and p2tr without a script tree (BIP-86).
    fn scripts(&self) -> impl Iterator<Item = ScriptBuf> + use<> {
        let p2wpkh = ScriptBuf::new_p2wpkh(&self.public_key.wpubkey_hash());
        let p2tr = curve::output_key(&self.x_only()).map(ScriptBuf::new_p2tr_tweaked);
        let hashes = [ScriptBuf::new_p2sh(&p2wpkh.script_hash()), ScriptBuf::new_p2pkh(&self.public_key.pubkey_hash()), p2wpkh];
        hashes.into_iter().chain(p2tr)
    }

    /// Adds the derivation to an input of the wallet.
    pub(crate) fn add_to_input(&self, spend: &Spend, input: &mut psbt::Input) {
        if let Spend::P2tr { .. } = spend {
            input.tap_internal_key = Some(self.x_only());
            input.tap_key_origins.insert(self.x_only(), (Vec::new(), self.source()));
        } else {
            input.bip32_derivation.insert(self.public_key.0, self.source());
        }
    }

    /// Adds the derivation to an input that is spent by a leaf.
    pub(crate) fn add_to_leaf(&self, leaf_hash: TapLeafHash, input: &mut psbt::Input) {
        input.tap_key_origins.insert(self.x_only(), (vec![leaf_hash], self.source()));
    }

    /// Adds the derivation to the change output, so that hardware signers recognize it as their own.
    pub(crate) fn add_to_change(&self, script: &ScriptBuf, output: &mut psbt::Output) {
        if script.is_p2tr() {
            output.tap_internal_key = Some(self.x_only());
            output.tap_key_origins.insert(self.x_only(), (Vec::new(), self.source()));
            return;
        }
        if script.is_p2sh() {
            output.redeem_script = Some(ScriptBuf::new_p2wpkh(&self.public_key.wpubkey_hash()));
        }
        output.bip32_derivation.insert(self.public_key.0, self.source());
    }
}

impl fmt::Display for KeyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}", self.fingerprint)?;
        if !self.path.is_empty() {
            write!(f, "/{}", self.path)?;
        }
        write!(f, "]{}", self.public_key)
    }
}

impl FromStr for KeyOrigin {
    type Err = ParseError;

    /// Parses `[fingerprint/path]public key`, with a compressed key in hex.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let malformed = || ParseError::from(Code::KeyMalformed);
        let (origin, public_key) = text.strip_prefix('[').and_then(|text| text.split_once(']')).ok_or_else(malformed)?;
        let (fingerprint, path) = origin.split_once('/').unwrap_or((origin, ""));
        let path = if path.is_empty() { Ok(DerivationPath::default()) } else { path.parse() };
        Ok(Self {
            fingerprint: fingerprint.parse().map_err(|_| malformed())?,
            path: path.map_err(|_| malformed())?,
            public_key: public_key.parse().map_err(|_| malformed())?,
        })
    }
}

/// Origins by the scripts that their keys can spend.
#[derive(Debug, Default)]
pub(crate) struct Origins<'o>(BTreeMap<ScriptBuf, &'o KeyOrigin>);

impl<'o> Origins<'o> {
    pub(crate) fn new(origins: &'o [KeyOrigin]) -> Self {
        let mut scripts = BTreeMap::new();
        scripts.extend(origins.iter().flat_map(|origin| origin.scripts().map(move |script| (script, origin))));
        Self(scripts)
    }

    /// Returns the origin of the key that can spend a script; `None` if there is none.
    pub(crate) fn of_script(&self, script: &ScriptBuf) -> Option<KeyOrigin> {
        self.0.get(script).copied().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_not_a_key_expression() {
        let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        assert!(format!("[d34db33f]{key}").parse::<KeyOrigin>().is_ok());
        for text in ["", key, "[d34db33f/84']", &format!("[d34db3/84']{key}"), &format!("[d34db33f/x]{key}"), &format!("[d34db33f/0{key}")]
        {
            assert_eq!(text.parse::<KeyOrigin>().unwrap_err().code(), Code::KeyMalformed, "{text}");
        }
    }
}
