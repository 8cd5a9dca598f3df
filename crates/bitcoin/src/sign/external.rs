//! Signatures of external signers, in hex or in a PSBT.

use std::fmt;
use std::str::FromStr;

use bitcoin::psbt::{self, Psbt};
use bitcoin::script::Instruction;
use bitcoin::secp256k1::{ecdsa, schnorr};
use bitcoin::sighash::TapSighashType;
use bitcoin::{EcdsaSighashType, PublicKey, ecdsa as with_type, taproot};
use countersign_core::chains::digits;
use countersign_core::{Code, Refusal};

use super::opens;
use crate::transaction::{Input, Kind, Spend};

/// The longest text that is parsed as a PSBT, in bytes.
const MAX_PSBT: usize = 16 * 1024 * 1024;
/// The hash type that may follow a DER signature.
const SIGHASH_ALL: u8 = 0x01;

/// A signature of an external signer, which is not proven yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ExternalSignature {
    /// A BIP-340 signature for a taproot input, with SIGHASH_DEFAULT.
    Schnorr([u8; 64]),
    /// An ECDSA signature with its public key, because the output has only the hash of the key.
    Ecdsa {
        /// The signature, with SIGHASH_ALL.
        signature: ecdsa::Signature,
        /// The compressed public key.
        public_key: PublicKey,
    },
    /// A signed PSBT of the payment.
    Psbt(Box<Psbt>),
}

impl From<Psbt> for ExternalSignature {
    fn from(psbt: Psbt) -> Self {
        Self::Psbt(Box::new(psbt))
    }
}

impl From<schnorr::Signature> for ExternalSignature {
    fn from(signature: schnorr::Signature) -> Self {
        Self::Schnorr(signature.serialize())
    }
}

impl fmt::Display for ExternalSignature {
    /// Writes the text that `FromStr` parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schnorr(bytes) => f.write_str(&hex::encode(bytes)),
            Self::Ecdsa { signature, public_key } => write!(f, "{signature}:{public_key}"),
            Self::Psbt(psbt) => psbt.fmt(f),
        }
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses the 128 hex digits of a BIP-340 signature, `<DER signature>:<public key>` in hex with an optional sighash byte 01, or
    /// the base64 of a PSBT.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] for any other text.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let malformed = || {
            let expected = "128 hex digits, <DER signature>:<public key>, or a PSBT in base64";
            Refusal::new(Code::SignatureMalformed, "").with_expected(expected)
        };
        if text.len() > MAX_PSBT {
            return Err(malformed());
        }
        if let Some((signature, public_key)) = text.split_once(':') {
            return parse_ecdsa(signature, public_key).ok_or_else(malformed);
        }
        if let Ok(bytes) = digits::array(text) {
            return Ok(Self::Schnorr(bytes));
        }
        Psbt::from_str(text).map(Self::from).map_err(|_| malformed())
    }
}

fn parse_ecdsa(signature: &str, public_key: &str) -> Option<ExternalSignature> {
    let bytes = digits::bytes(signature).ok()?;
    let signature = ecdsa::Signature::from_der(&bytes).ok().or_else(|| match bytes.as_slice() {
        [der @ .., SIGHASH_ALL] => ecdsa::Signature::from_der(der).ok(),
        _ => None,
    })?;
    let public_key = PublicKey::from_slice(&digits::bytes(public_key).ok()?).ok().filter(|key| key.compressed)?;
    Some(ExternalSignature::Ecdsa { signature, public_key })
}

fn without_hash_type(found: with_type::Signature, public_key: PublicKey) -> Result<ExternalSignature, Refusal> {
    match found.sighash_type {
        EcdsaSighashType::All => Ok(ExternalSignature::Ecdsa { signature: found.signature, public_key }),
        other => Err(other_hash_type("SIGHASH_ALL", &other.to_string())),
    }
}

fn without_tap_hash_type(found: taproot::Signature) -> Result<ExternalSignature, Refusal> {
    match found.sighash_type {
        TapSighashType::Default => Ok(found.signature.into()),
        other => Err(other_hash_type("SIGHASH_DEFAULT", &other.to_string())),
    }
}

fn other_hash_type(expected: &'static str, actual: &str) -> Refusal {
    Refusal::new(Code::SignatureMismatch, "").with_expected(expected).with_actual(actual)
}

/// Returns the signature of an input in a PSBT, finalized or not; `None` if it has none.
///
/// # Errors
///
/// [`Code::SignatureMalformed`], or [`Code::SignatureMismatch`] for a hash type that does not cover all inputs and outputs.
pub(super) fn from_psbt_input(input: &Input, known: &psbt::Input) -> Result<Option<ExternalSignature>, Refusal> {
    match &input.kind {
        Kind::Presigned(_) => Ok(None),
        Kind::Htlc(leaf) => {
            let partial = known.tap_script_sigs.get(&(leaf.signer, leaf.leaf_hash)).copied();
            taproot_signature(partial, known)
        }
        Kind::Wallet(Spend::P2tr { .. }) => taproot_signature(known.tap_key_sig, known),
        Kind::Wallet(spend) => {
            let own = |(public_key, _): &(&PublicKey, _)| opens(public_key, spend, &input.prevout.script_pubkey);
            if let Some((public_key, found)) = known.partial_sigs.iter().find(own) {
                return without_hash_type(*found, *public_key).map(Some);
            }
            let malformed = || Refusal::new(Code::SignatureMalformed, "");
            let Some((signature, public_key)) = final_ecdsa(spend, known) else { return Ok(None) };
            let signature = with_type::Signature::from_slice(signature).map_err(|_| malformed())?;
            let public_key = PublicKey::from_slice(public_key).map_err(|_| malformed())?;
            without_hash_type(signature, public_key).map(Some)
        }
    }
}

fn taproot_signature(partial: Option<taproot::Signature>, known: &psbt::Input) -> Result<Option<ExternalSignature>, Refusal> {
    let first = || known.final_script_witness.as_ref()?.nth(0);
    let signature = match (partial, first()) {
        (Some(signature), _) => signature,
        (None, Some(bytes)) => taproot::Signature::from_slice(bytes).map_err(|_| Refusal::new(Code::SignatureMalformed, ""))?,
        (None, None) => return Ok(None),
    };
    without_tap_hash_type(signature).map(Some)
}

/// Returns the signature and the public key of a finalized input.
fn final_ecdsa<'p>(spend: &Spend, known: &'p psbt::Input) -> Option<(&'p [u8], &'p [u8])> {
    if *spend != Spend::P2pkh {
        let witness = known.final_script_witness.as_ref()?;
        return witness.nth(0).zip(witness.nth(1));
    }
    let mut pushes = known.final_script_sig.as_ref()?.instructions().flatten().filter_map(|push| match push {
        Instruction::PushBytes(bytes) => Some(bytes.as_bytes()),
        Instruction::Op(_) => None,
    });
    pushes.next().zip(pushes.next())
}
