//! Signatures of external signers, in the forms in which signers return them: hex, a PSBT, or the signed transaction.

use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::str::FromStr;

use bitcoin::base64::Engine as _;
use bitcoin::base64::engine::general_purpose::STANDARD;
use bitcoin::consensus::encode;
use bitcoin::psbt::{self, Psbt};
use bitcoin::script::Instruction;
use bitcoin::secp256k1::{ecdsa, schnorr};
use bitcoin::sighash::TapSighashType;
use bitcoin::{EcdsaSighashType, PublicKey, Transaction, ecdsa as with_type, taproot};
use countersign_core::chains::digits;
use countersign_core::{Code, Refusal};

use super::opens;
use crate::received;
use crate::transaction::{Input, Kind, Spend, new_psbt};

/// The longest text or file that is read, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The forms of a signature of one input.
const OF_ONE_INPUT: &str = "64 bytes of a BIP-340 signature in hex, or 65 with their hash type, or <DER signature>:<public key>";
/// The forms of all signatures of a transaction.
pub(super) const OF_ALL_INPUTS: &str = "a PSBT or the signed transaction";

/// A signature of an external signer, which is not proven yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ExternalSignature {
    /// A BIP-340 signature for a taproot input, with SIGHASH_DEFAULT.
    Schnorr([u8; 64]),
    /// A BIP-340 signature for a taproot input, with SIGHASH_ALL. The witness has a 65th byte for this hash type, which covers the same as
    /// SIGHASH_DEFAULT.
    SchnorrAll([u8; 64]),
    /// An ECDSA signature with its public key, because the output has only the hash of the key.
    Ecdsa {
        /// The signature, with SIGHASH_ALL. Its s may be high; the transaction gets the low one.
        signature: ecdsa::Signature,
        /// The compressed public key.
        public_key: PublicKey,
    },
    /// A signed PSBT of the payment, finalized or not.
    Psbt(Box<Psbt>),
}

impl From<Psbt> for ExternalSignature {
    fn from(psbt: Psbt) -> Self {
        Self::Psbt(Box::new(psbt))
    }
}

impl From<Transaction> for ExternalSignature {
    /// Converts a signed transaction to the finalized PSBT with the same scripts and witnesses.
    fn from(mut transaction: Transaction) -> Self {
        let inputs = transaction.input.iter_mut().map(|input| psbt::Input {
            final_script_sig: Some(mem::take(&mut input.script_sig)).filter(|script| !script.is_empty()),
            final_script_witness: Some(mem::take(&mut input.witness)).filter(|witness| !witness.is_empty()),
            ..Default::default()
        });
        let inputs = inputs.collect();
        new_psbt(transaction, inputs).into()
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
            Self::SchnorrAll(bytes) => write!(f, "{}01", hex::encode(bytes)),
            Self::Ecdsa { signature, public_key } => write!(f, "{signature}:{public_key}"),
            Self::Psbt(psbt) => psbt.fmt(f),
        }
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses a signature or all signatures of a transaction. White space is ignored, also in the middle of a text, where files wrap it.
    ///
    /// | what | text |
    /// |---|---|
    /// | BIP-340 signature | hex of 64 bytes, or of 65 with the hash type 01 |
    /// | ECDSA signature | hex of the DER encoding, or of r and s in 64 bytes, then `:` and the public key in hex; the hash type 01 may follow |
    /// | PSBT, version 0 or 2, finalized or not | base64 or hex |
    /// | signed transaction | hex or base64 |
    ///
    /// Hex digits may have either letter case and a prefix `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMismatch`] for a hash type that does not cover all inputs and outputs; [`Code::SignatureMalformed`] for any other
    /// text.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_BYTES {
            return Err(malformed("it is longer than 16 MiB"));
        }
        let text = text.trim_start_matches('\u{feff}');
        let text: Cow<'_, str> =
            if text.contains(char::is_whitespace) { text.split_whitespace().collect::<String>().into() } else { text.into() };
        if let Some((signature, public_key)) = text.split_once(':') {
            return parse_ecdsa(signature, public_key);
        }
        let Ok(bytes) = digits::bytes(text.strip_prefix("0x").unwrap_or(&text)) else {
            let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| malformed("it is neither hex nor base64"))?;
            return whole(&bytes);
        };
        if matches!(bytes.len(), 64 | 65) { of_taproot(&bytes) } else { whole(&bytes) }
    }
}

impl ExternalSignature {
    /// Reads what a signer has written to a file: a PSBT or the signed transaction, in bytes or in any text that `FromStr` parses.
    ///
    /// ```
    /// use countersign::bitcoin::ExternalSignature;
    ///
    /// let refusal = ExternalSignature::from_bytes(b"psbt\xff").unwrap_err();
    /// assert_eq!(refusal.code().name(), "signature_malformed");
    /// ```
    ///
    /// # Errors
    ///
    /// As for `FromStr`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Refusal> {
        // Every transaction has zero bytes, and every PSBT begins with a byte that is not UTF-8.
        match str::from_utf8(bytes) {
            Ok(text) if !bytes.contains(&0) => text.parse(),
            _ if bytes.len() > MAX_BYTES => Err(malformed("it is longer than 16 MiB")),
            _ => whole(bytes),
        }
    }
}

fn malformed(why: impl fmt::Display) -> Refusal {
    let expected = format!("{OF_ONE_INPUT}, or {OF_ALL_INPUTS} in base64 or hex");
    Refusal::new(Code::SignatureMalformed, "").with_expected(expected).with_reason(why.to_string())
}

/// Reads a PSBT or a signed transaction from its bytes.
fn whole(bytes: &[u8]) -> Result<ExternalSignature, Refusal> {
    if bytes.starts_with(received::PSBT) {
        return received::read_psbt(bytes).map(ExternalSignature::from).map_err(malformed);
    }
    let transaction: Transaction = encode::deserialize(bytes).map_err(|_| malformed("it is neither a PSBT nor one transaction"))?;
    Ok(transaction.into())
}

fn parse_ecdsa(signature: &str, public_key: &str) -> Result<ExternalSignature, Refusal> {
    let bytes = |text: &str| digits::bytes(text.strip_prefix("0x").unwrap_or(text)).map_err(|_| malformed("it is not hex"));
    let (bytes, public_key) = (bytes(signature)?, bytes(public_key)?);
    let public_key = PublicKey::from_slice(&public_key).ok().filter(|key| key.compressed);
    let public_key = public_key.ok_or_else(|| malformed("the public key is not a compressed one"))?;
    let bare = ecdsa::Signature::from_der(&bytes).or_else(|_| ecdsa::Signature::from_compact(&bytes));
    match bare {
        Ok(signature) => Ok(ExternalSignature::Ecdsa { signature, public_key }),
        Err(_) => of_ecdsa(&bytes, public_key),
    }
}

/// Reads an ECDSA signature with its hash type behind it.
fn of_ecdsa(bytes: &[u8], public_key: PublicKey) -> Result<ExternalSignature, Refusal> {
    let found = with_type::Signature::from_slice(bytes).map_err(|_| malformed("it is not a DER signature"))?;
    without_hash_type(found, public_key)
}

fn without_hash_type(found: with_type::Signature, public_key: PublicKey) -> Result<ExternalSignature, Refusal> {
    match found.sighash_type {
        EcdsaSighashType::All => Ok(ExternalSignature::Ecdsa { signature: found.signature, public_key }),
        other => Err(other_hash_type("SIGHASH_ALL", &other.to_string())),
    }
}

/// Reads a BIP-340 signature with or without its hash type behind it.
fn of_taproot(bytes: &[u8]) -> Result<ExternalSignature, Refusal> {
    // Consensus rules refuse the byte 00, which the library reads.
    if let ([.., 0], 65) = (bytes, bytes.len()) {
        return Err(other_hash_type(TAP_TYPES, "a 65th byte 00, which is no hash type"));
    }
    with_tap_hash_type(taproot::Signature::from_slice(bytes).map_err(malformed)?)
}

const TAP_TYPES: &str = "SIGHASH_DEFAULT or SIGHASH_ALL";

fn with_tap_hash_type(found: taproot::Signature) -> Result<ExternalSignature, Refusal> {
    match found.sighash_type {
        TapSighashType::Default => Ok(found.signature.into()),
        TapSighashType::All => Ok(ExternalSignature::SchnorrAll(found.signature.serialize())),
        other => Err(other_hash_type(TAP_TYPES, &other.to_string())),
    }
}

fn other_hash_type(expected: &'static str, actual: &str) -> Refusal {
    let reason = "the hash type lets others change the transaction: ask the signer to cover all inputs and outputs";
    Refusal::new(Code::SignatureMismatch, "").with_expected(expected).with_actual(actual).with_reason(reason)
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
            let Some((signature, public_key)) = final_ecdsa(spend, known) else { return Ok(None) };
            let public_key = PublicKey::from_slice(public_key).map_err(|_| malformed("the public key of a final script is not one"))?;
            of_ecdsa(signature, public_key).map(Some)
        }
    }
}

fn taproot_signature(partial: Option<taproot::Signature>, known: &psbt::Input) -> Result<Option<ExternalSignature>, Refusal> {
    let first = || known.final_script_witness.as_ref()?.nth(0);
    match (partial, first()) {
        (Some(signature), _) => with_tap_hash_type(signature).map(Some),
        (None, Some(bytes)) => of_taproot(bytes).map(Some),
        (None, None) => Ok(None),
    }
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
