//! Proven signatures, and the scripts and witnesses that contain them.

use std::sync::Arc;

use bitcoin::psbt;
use bitcoin::script::Builder;
use bitcoin::secp256k1::{self, schnorr};
use bitcoin::sighash::TapSighashType;
use bitcoin::{EcdsaSighashType, PubkeyHash, PublicKey, ScriptBuf, Witness, XOnlyPublicKey, ecdsa, taproot};
use countersign_core::{Code, Refusal};

use super::ExternalSignature;
use crate::address::key_hash;
use crate::curve;
use crate::transaction::{ExplicitAll, Input, Kind, LeafSpend, Spend};

/// A proven signature, with everything else that the scripts of its input need.
#[derive(Debug, Clone)]
pub(crate) enum Proof {
    /// A signature by a key whose hash is in the output.
    Ecdsa { spend: Spend, signature: ecdsa::Signature, public_key: PublicKey },
    /// A signature by a taproot output key.
    KeyPath(taproot::Signature),
    /// A signature by the key of a leaf.
    Leaf { leaf: Arc<LeafSpend>, signature: taproot::Signature },
}

impl Proof {
    pub(super) fn leaf(leaf: &Arc<LeafSpend>, signature: taproot::Signature) -> Self {
        Self::Leaf { leaf: Arc::clone(leaf), signature }
    }

    pub(super) fn ecdsa(spend: &Spend, signature: secp256k1::ecdsa::Signature, public_key: PublicKey) -> Self {
        let signature = ecdsa::Signature { signature, sighash_type: EcdsaSighashType::All };
        Self::Ecdsa { spend: spend.clone(), signature, public_key }
    }

    /// Returns the signature as an external signer gives it.
    pub(super) fn signature(&self) -> ExternalSignature {
        match self {
            Self::Ecdsa { signature, public_key, .. } => {
                ExternalSignature::Ecdsa { signature: signature.signature, public_key: *public_key }
            }
            Self::KeyPath(taproot::Signature { signature, sighash_type })
            | Self::Leaf { signature: taproot::Signature { signature, sighash_type }, .. } => {
                // Only these two hash types are proven.
                match sighash_type {
                    TapSighashType::All => ExternalSignature::SchnorrAll(signature.serialize()),
                    _ => (*signature).into(),
                }
            }
        }
    }

    /// Returns the script and the witness of the input.
    pub(crate) fn scripts(&self) -> (ScriptBuf, Witness) {
        match self {
            Self::Ecdsa { spend, signature, public_key } => {
                let witness = || Witness::p2wpkh(signature, &public_key.inner);
                match spend {
                    Spend::P2pkh => {
                        let script = Builder::new().push_slice(signature.serialize()).push_key(public_key).into_script();
                        (script, Witness::new())
                    }
                    // One push of the redeem script, 22 bytes.
                    Spend::P2shP2wpkh { redeem_script } => (ScriptBuf::from_bytes([&[22], redeem_script.as_bytes()].concat()), witness()),
                    Spend::P2wpkh | Spend::P2tr { .. } => (ScriptBuf::new(), witness()),
                }
            }
            Self::KeyPath(signature) => (ScriptBuf::new(), Witness::p2tr_key_spend(signature)),
            Self::Leaf { leaf, signature } => {
                let mut witness = Witness::new();
                witness.push(signature.to_vec());
                if let Some(secret) = &leaf.secret {
                    witness.push(secret.0.as_slice());
                }
                witness.push(&leaf.script);
                witness.push(leaf.control_block());
                (ScriptBuf::new(), witness)
            }
        }
    }

    /// Adds the signature to a PSBT.
    pub(crate) fn add_to_input(&self, input: &mut psbt::Input) {
        match self {
            Self::Ecdsa { signature, public_key, .. } => drop(input.partial_sigs.insert(*public_key, *signature)),
            Self::KeyPath(signature) => input.tap_key_sig = Some(*signature),
            Self::Leaf { leaf, signature } => drop(input.tap_script_sigs.insert((leaf.signer, leaf.leaf_hash), *signature)),
        }
    }
}

/// Proves that a signature is valid for an input.
///
/// # Errors
///
/// [`Code::SignatureMalformed`] for a signature of another kind than the input needs, [`Code::SignatureMismatch`], or [`Code::NothingToSign`] for a presigned input.
pub(super) fn prove(index: usize, input: &Input, signature: &ExternalSignature, explicit: &mut ExplicitAll<'_>) -> Result<Proof, Refusal> {
    let mut schnorr = |key| prove_schnorr(index, input, signature, key, explicit);
    let malformed = |expected| Err(Refusal::new(Code::SignatureMalformed, "").with_expected(expected));
    match &input.kind {
        Kind::Presigned(_) => Err(Refusal::new(Code::NothingToSign, "").with_reason("the input is signed already")),
        Kind::Htlc(leaf) => schnorr(&leaf.signer).map(|signature| Proof::leaf(leaf, signature)),
        Kind::Wallet(Spend::P2tr { output_key }) => schnorr(output_key).map(Proof::KeyPath),
        Kind::Wallet(spend) => match signature {
            ExternalSignature::Ecdsa { signature, public_key } => {
                let signature = prove_ecdsa(input, spend, signature, public_key)?;
                Ok(Proof::ecdsa(spend, signature, *public_key))
            }
            _ => malformed("a DER signature and its public key"),
        },
    }
}

fn mismatch(digest: &[u8; 32]) -> Refusal {
    Refusal::new(Code::SignatureMismatch, "").with_expected(format!("a signature over {}", hex::encode(digest)))
}

/// Proves a signature with the hash type that it has. Both hash types cover all inputs and outputs.
fn prove_schnorr(
    index: usize,
    input: &Input,
    signature: &ExternalSignature,
    key: &XOnlyPublicKey,
    explicit: &mut ExplicitAll<'_>,
) -> Result<taproot::Signature, Refusal> {
    let (bytes, sighash_type, digest) = match signature {
        ExternalSignature::Schnorr(bytes) => (bytes, TapSighashType::Default, Some(input.digest)),
        ExternalSignature::SchnorrAll(bytes) => (bytes, TapSighashType::All, explicit.digest(index, input)),
        _ => return Err(Refusal::new(Code::SignatureMalformed, "").with_expected("64 or 65 bytes of a BIP-340 signature")),
    };
    // The library can compute a digest for every input of the transaction, so this error does not occur.
    let digest = digest.ok_or_else(|| Refusal::new(Code::Internal, ""))?;
    let signature = schnorr::Signature::from_slice(bytes).map_err(|_| mismatch(&digest))?;
    let is_valid = curve::verify_schnorr(&signature, &digest, key);
    if is_valid { Ok(taproot::Signature { signature, sighash_type }) } else { Err(mismatch(&digest)) }
}

/// Proves a signature, and returns it with a low s. Nodes do not relay a high one. Both forms are signatures of the same key over the same
/// digest, and signers that know nothing of Bitcoin, such as key management services, return either.
fn prove_ecdsa(
    input: &Input,
    spend: &Spend,
    signature: &secp256k1::ecdsa::Signature,
    public_key: &PublicKey,
) -> Result<secp256k1::ecdsa::Signature, Refusal> {
    let mut low = *signature;
    low.normalize_s();
    let is_sound = opens(public_key, spend, &input.prevout.script_pubkey) && curve::verify_ecdsa(&low, &input.digest, &public_key.inner);
    if is_sound { Ok(low) } else { Err(mismatch(&input.digest)) }
}

/// Returns whether an output pays to the hash of a public key. Segwit allows only compressed ones.
pub(crate) fn opens(public_key: &PublicKey, spend: &Spend, script: &ScriptBuf) -> bool {
    (public_key.compressed || *spend == Spend::P2pkh) && hash_opens(&public_key.pubkey_hash(), spend, script)
}

/// Returns whether an output pays to this hash of a public key.
pub(super) fn hash_opens(hash: &PubkeyHash, spend: &Spend, script: &ScriptBuf) -> bool {
    let is_witness = |script: &ScriptBuf| script.is_p2wpkh() && script.as_bytes().ends_with(hash.as_ref());
    match spend {
        Spend::P2wpkh => is_witness(script),
        Spend::P2shP2wpkh { redeem_script } => is_witness(redeem_script),
        Spend::P2pkh => key_hash(script) == Some(*hash),
        Spend::P2tr { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn an_uncompressed_key_opens_no_segwit_output() {
        let compressed = PublicKey::new(crate::curve::KeyPair::new(&[7; 32]).unwrap().public_key());
        let uncompressed = PublicKey { compressed: false, ..compressed };
        for (key, is_segwit) in [(compressed, true), (uncompressed, false)] {
            let script = ScriptBuf::new_p2pkh(&key.pubkey_hash());
            assert!(opens(&key, &Spend::P2pkh, &script));
            // An output to the hash of this form of the key, which nobody could spend if the form is the long one.
            let hash = bitcoin::WPubkeyHash::from_raw_hash(key.pubkey_hash().to_raw_hash());
            let witness = ScriptBuf::new_p2wpkh(&hash);
            assert_eq!(opens(&key, &Spend::P2wpkh, &witness), is_segwit);
            assert_eq!(opens(&key, &Spend::P2shP2wpkh { redeem_script: witness }, &ScriptBuf::new()), is_segwit);
        }
    }
}
