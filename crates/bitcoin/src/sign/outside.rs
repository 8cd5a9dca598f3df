//! Signatures as signers outside give them: hex, or a PSBT.

use std::str::FromStr;

use bitcoin::psbt::{self, Psbt};
use bitcoin::script::Instruction;
use bitcoin::secp256k1::ecdsa;
use bitcoin::sighash::TapSighashType;
use bitcoin::{EcdsaSighashType, PublicKey, XOnlyPublicKey, ecdsa as with_type};
use countersign_core::chains::digits;
use countersign_core::json::{Node, Value};
use countersign_core::{Code, Refusal};

use crate::transaction::{Input, Kind, Spend};

/// Longest PSBT text that is read.
const MAX_PSBT: usize = 16 * 1024 * 1024;

/// A signature from outside, not proven yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signature {
    /// BIP-340, for taproot inputs, over all outputs.
    Schnorr([u8; 64]),
    /// ECDSA with the public key that it is to be checked with: other inputs show only the key's hash.
    Ecdsa {
        /// Over all outputs.
        signature: ecdsa::Signature,
        /// Compressed.
        public_key: PublicKey,
    },
    /// A signed PSBT of the payment.
    Psbt(Box<Psbt>),
}

impl Signature {
    /// Reads 128 hex digits of a BIP-340 signature; `<DER signature>:<public key>` or an object `{"signature", "public_key"}`
    /// in hex, the sighash byte 01 optional; or the base64 of a PSBT.
    pub(crate) fn read(node: &Node<'_, '_>) -> Result<Self, Refusal> {
        let malformed = || {
            let expected = "128 hex digits, <DER signature>:<public key>, or a PSBT in base64";
            node.at().refuse(Code::SignatureMalformed).with_expected(expected)
        };
        if let Value::Object(_) = node.value() {
            let members = node.object()?;
            members.only(&["signature", "public_key"])?;
            return ecdsa_of(members.need("signature")?.text()?, members.need("public_key")?.text()?).ok_or_else(malformed);
        }
        let text = node.text()?;
        if text.len() > MAX_PSBT {
            return Err(malformed());
        }
        if let Some((signature, public_key)) = text.split_once(':') {
            return ecdsa_of(signature, public_key).ok_or_else(malformed);
        }
        if let Ok(bytes) = digits::array(text) {
            return Ok(Self::Schnorr(bytes));
        }
        Psbt::from_str(text).map(|psbt| Self::Psbt(Box::new(psbt))).map_err(|_| malformed())
    }
}

fn ecdsa_of(signature: &str, public_key: &str) -> Option<Signature> {
    let der = |hex: &str| digits::bytes(hex).ok();
    let bytes = der(signature)?;
    let all = u8::try_from(EcdsaSighashType::All.to_u32()).ok()?;
    let signature = ecdsa::Signature::from_der(&bytes).ok().or_else(|| match bytes.as_slice() {
        [bytes @ .., last] if *last == all => ecdsa::Signature::from_der(bytes).ok(),
        _ => None,
    })?;
    let public_key = PublicKey::from_slice(&der(public_key)?).ok().filter(|key| key.compressed)?;
    Some(Signature::Ecdsa { signature, public_key })
}

fn plain(found: with_type::Signature, public_key: PublicKey) -> Result<Signature, Code> {
    match found.sighash_type {
        EcdsaSighashType::All => Ok(Signature::Ecdsa { signature: found.signature, public_key }),
        _ => Err(Code::SignatureMismatch),
    }
}

fn schnorr(found: bitcoin::taproot::Signature) -> Result<Signature, Code> {
    match found.sighash_type {
        TapSighashType::Default => Ok(Signature::Schnorr(found.signature.serialize())),
        _ => Err(Code::SignatureMismatch),
    }
}

/// The signature that a PSBT holds for an input, finalised or not; `None` if it holds none. One over something else than all
/// inputs and outputs is refused.
pub(crate) fn of_psbt(input: &Input, known: &psbt::Input) -> Result<Option<Signature>, Code> {
    let item = |index: usize| known.final_script_witness.as_ref().and_then(|witness| witness.nth(index));
    match &input.kind {
        Kind::Htlc { tree, leaf, signer, .. } => {
            let Ok(signer) = XOnlyPublicKey::from_slice(signer) else { return Ok(None) };
            let found = known.tap_script_sigs.get(&(signer, tree.leaf_hash(*leaf))).copied();
            let last =
                item(0).map(|bytes| bitcoin::taproot::Signature::from_slice(bytes).map_err(|_| Code::SignatureMalformed)).transpose()?;
            found.or(last).map(schnorr).transpose()
        }
        Kind::Wallet(Spend::P2tr) => {
            let last =
                item(0).map(|bytes| bitcoin::taproot::Signature::from_slice(bytes).map_err(|_| Code::SignatureMalformed)).transpose()?;
            known.tap_key_sig.or(last).map(schnorr).transpose()
        }
        Kind::Done(_) => Ok(None),
        Kind::Wallet(spend) => {
            if let Some((public_key, found)) = known.partial_sigs.iter().find(|(key, _)| super::owns(key, input)) {
                return plain(*found, *public_key).map(Some);
            }
            let (signature, public_key) = match spend {
                Spend::P2pkh { .. } => {
                    let Some(script) = &known.final_script_sig else { return Ok(None) };
                    let mut pushes = script.instructions().flatten().filter_map(|push| match push {
                        Instruction::PushBytes(bytes) => Some(bytes.as_bytes()),
                        Instruction::Op(_) => None,
                    });
                    (pushes.next().ok_or(Code::SignatureMalformed)?, pushes.next().ok_or(Code::SignatureMalformed)?)
                }
                _ => match (item(0), item(1)) {
                    (Some(signature), Some(public_key)) => (signature, public_key),
                    _ => return Ok(None),
                },
            };
            let signature = with_type::Signature::from_slice(signature).map_err(|_| Code::SignatureMalformed)?;
            let public_key = PublicKey::from_slice(public_key).map_err(|_| Code::SignatureMalformed)?;
            plain(signature, public_key).map(Some)
        }
    }
}
