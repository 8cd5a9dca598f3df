//! Signing requests, proofs of signatures from outside, and the local signer. One signature for each input.

mod key;
mod outside;

use bitcoin::consensus::encode;
use bitcoin::key::Secp256k1;
use bitcoin::psbt::Psbt;
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::secp256k1::{All, Message};
use bitcoin::sighash::TapSighashType;
use bitcoin::{EcdsaSighashType, PublicKey, ScriptBuf, Transaction, Witness, XOnlyPublicKey, ecdsa, taproot};
use countersign_core::json::At;
use countersign_core::{Code, Refusal, SigningRequest};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::sync::LazyLock;

pub use key::Key;
pub use outside::Signature;

use crate::address::{Chain, key_hash, taproot_key};
use crate::transaction::{Input, Kind, Payment, Spend, Unsigned};

/// Tables of the curve, made once.
pub(crate) static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// A signature that is proven to open its input.
#[derive(Debug, Clone)]
pub(crate) enum Proof {
    Ecdsa { signature: ecdsa::Signature, public_key: PublicKey },
    Schnorr(taproot::Signature),
}

/// A transaction with as many signatures as there are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Signed {
    /// The payment's PSBT with the signatures in it.
    pub psbt: Psbt,
    /// The transaction, ready to be sent; `None` while a signature is missing.
    pub transaction: Option<Transaction>,
}

impl Signed {
    /// The transaction's bytes as nodes take them, in hex.
    #[must_use]
    pub fn raw(&self) -> Option<String> {
        self.transaction.as_ref().map(encode::serialize_hex)
    }

    /// The transaction's id.
    #[must_use]
    pub fn tx_id(&self) -> Option<String> {
        self.transaction.as_ref().map(|transaction| transaction.compute_txid().to_string())
    }

    fn new(payment: &Payment, proofs: &[Option<Proof>]) -> Result<Self, Refusal> {
        let internal = || Refusal::new(Code::Internal, "/signatures");
        let mut psbt = payment.psbt.clone();
        for ((known, input), proof) in psbt.inputs.iter_mut().zip(&payment.inputs).zip(proofs) {
            match (proof, &input.kind) {
                (Some(Proof::Ecdsa { signature, public_key }), _) => drop(known.partial_sigs.insert(*public_key, *signature)),
                (Some(Proof::Schnorr(signature)), Kind::Htlc { tree, leaf, signer, .. }) => {
                    let signer = XOnlyPublicKey::from_slice(signer).map_err(|_| internal())?;
                    known.tap_script_sigs.insert((signer, tree.leaf_hash(*leaf)), *signature);
                }
                (Some(Proof::Schnorr(signature)), Kind::Wallet(_)) => known.tap_key_sig = Some(*signature),
                (Some(Proof::Schnorr(_)), Kind::Done(_)) | (None, _) => {}
            }
        }
        let opened = payment.inputs.iter().zip(proofs).map(|(input, proof)| match &input.kind {
            Kind::Done(witness) => Some((ScriptBuf::new(), witness.clone())),
            _ => finalize(input, proof.as_ref()?),
        });
        let done: Option<Vec<_>> = opened.collect();
        Ok(Self { psbt, transaction: done.map(|done| payment.complete(done)) })
    }
}

/// The script and witness that open an input.
fn finalize(input: &Input, proof: &Proof) -> Option<(ScriptBuf, Witness)> {
    match (&input.kind, proof) {
        (Kind::Wallet(Spend::P2wpkh), Proof::Ecdsa { signature, public_key }) => {
            Some((ScriptBuf::new(), Witness::p2wpkh(signature, &public_key.inner)))
        }
        (Kind::Wallet(Spend::P2shP2wpkh { redeem_script }), Proof::Ecdsa { signature, public_key }) => {
            let redeem_script = PushBytesBuf::try_from(redeem_script.to_bytes()).ok()?;
            Some((Builder::new().push_slice(redeem_script).into_script(), Witness::p2wpkh(signature, &public_key.inner)))
        }
        (Kind::Wallet(Spend::P2pkh { .. }), Proof::Ecdsa { signature, public_key }) => {
            let script = Builder::new().push_slice(signature.serialize()).push_key(public_key).into_script();
            Some((script, Witness::new()))
        }
        (Kind::Wallet(Spend::P2tr), Proof::Schnorr(signature)) => Some((ScriptBuf::new(), Witness::p2tr_key_spend(signature))),
        (kind @ Kind::Htlc { secret, .. }, Proof::Schnorr(signature)) => {
            let (script, control) = kind.leaf()?;
            let mut witness = Witness::new();
            witness.push(signature.to_vec());
            if let Some(secret) = secret {
                witness.push(secret.0);
            }
            witness.push(script);
            witness.push(control);
            Some((ScriptBuf::new(), witness))
        }
        _ => None,
    }
}

/// Whose signature an input needs.
fn signer(input: &Input, chain: Chain) -> String {
    match &input.kind {
        Kind::Htlc { signer, .. } => hex::encode(signer),
        _ => chain.shown(&input.prevout.script_pubkey),
    }
}

/// The name of an input's request.
fn name(index: usize) -> String {
    format!("input_{index}")
}

impl Payment {
    /// What a signer outside is asked for, one request for each input; a hardware signer takes [`Payment::psbt`] instead.
    #[must_use]
    pub fn requests(&self, chain: Chain) -> Vec<SigningRequest> {
        let open = self.inputs.iter().enumerate().filter(|(_, input)| !matches!(input.kind, Kind::Done(_)));
        let requests = open.map(|(index, input)| {
            SigningRequest::new(name(index), signer(input, chain), self.payload(index).unwrap_or_default(), input.digest.to_vec())
        });
        requests.collect()
    }

    /// Signs every input.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if none of the keys opens an input.
    pub fn sign(&self, key: &Key, chain: Chain) -> Result<Signed, Refusal> {
        let proofs = self.inputs.iter().map(|input| match &input.kind {
            Kind::Done(_) => Ok(None),
            _ => key.sign(input).map(Some).ok_or_else(|| {
                Refusal::new(Code::KeyMismatch, "/wallet/secret_key").with_expected(format!("the key of {}", signer(input, chain)))
            }),
        });
        Signed::new(self, &proofs.collect::<Result<Vec<_>, _>>()?)
    }

    /// Proves signatures from outside and attaches them: `input_0` and on, or `psbt` with a signed PSBT. Inputs without a
    /// signature stay unsigned.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at `/signatures/<name>` if a signature does not open its input.
    pub fn attach(&self, given: &[(String, Signature)]) -> Result<Signed, Refusal> {
        let mut proofs: Vec<Option<Proof>> = vec![None; self.inputs.len()];
        for (name_given, signature) in given {
            let root = At::root("/signatures");
            let at = root.key(name_given);
            if let Signature::Psbt(psbt) = signature {
                if psbt.unsigned_tx != self.psbt.unsigned_tx {
                    return Err(at.refuse(Code::PsbtMismatch));
                }
                for ((input, known), proof) in self.inputs.iter().zip(&psbt.inputs).zip(&mut proofs) {
                    if let Some(found) = outside::of_psbt(input, known).map_err(|code| at.refuse(code))? {
                        *proof = Some(prove(input, &found, &at)?);
                    }
                }
                continue;
            }
            let index = (0..self.inputs.len()).find(|index| name(*index) == *name_given);
            let input = index.and_then(|index| Some((self.inputs.get(index)?, proofs.get_mut(index)?)));
            let (input, proof) = input.ok_or_else(|| at.refuse(Code::NothingToSign).with_reason("the transaction has no such input"))?;
            *proof = Some(prove(input, signature, &at)?);
        }
        Signed::new(self, &proofs)
    }
}

/// Proves that a signature opens an input.
fn prove(input: &Input, signature: &Signature, at: &At<'_>) -> Result<Proof, Refusal> {
    let message = Message::from_digest(input.digest);
    let mismatch = || at.refuse(Code::SignatureMismatch).with_expected(format!("a signature over {}", hex::encode(input.digest)));
    let malformed = |expected| Err(at.refuse(Code::SignatureMalformed).with_expected(expected));
    let schnorr_key = match &input.kind {
        Kind::Htlc { signer, .. } => Some(*signer),
        Kind::Wallet(Spend::P2tr) => taproot_key(&input.prevout.script_pubkey),
        Kind::Done(_) => return Err(at.refuse(Code::NothingToSign).with_reason("the input is signed already")),
        Kind::Wallet(_) => None,
    };
    match (signature, schnorr_key) {
        (Signature::Schnorr(bytes), Some(key)) => {
            let signature = bitcoin::secp256k1::schnorr::Signature::from_slice(bytes).map_err(|_| mismatch())?;
            let key = XOnlyPublicKey::from_slice(&key).map_err(|_| mismatch())?;
            SECP.verify_schnorr(&signature, &message, &key).map_err(|_| mismatch())?;
            Ok(Proof::Schnorr(taproot::Signature { signature, sighash_type: TapSighashType::Default }))
        }
        (Signature::Ecdsa { signature, public_key }, None) => {
            let mut low = *signature;
            low.normalize_s();
            if low != *signature {
                return Err(at.refuse(Code::SignatureHighS));
            }
            if !owns(public_key, input) {
                return Err(mismatch());
            }
            SECP.verify_ecdsa(&message, signature, &public_key.inner).map_err(|_| mismatch())?;
            let signature = ecdsa::Signature { signature: *signature, sighash_type: EcdsaSighashType::All };
            Ok(Proof::Ecdsa { signature, public_key: *public_key })
        }
        (_, Some(_)) => malformed("64 bytes of a BIP-340 signature"),
        (_, None) => malformed("a DER signature and its public key"),
    }
}

/// Whether a public key's hash is the one that an input pays to.
pub(crate) fn owns(public_key: &PublicKey, input: &Input) -> bool {
    let script = &input.prevout.script_pubkey;
    let witness = public_key.wpubkey_hash().ok().map(|hash| ScriptBuf::new_p2wpkh(&hash));
    match &input.kind {
        Kind::Wallet(Spend::P2wpkh) => witness.as_ref() == Some(script),
        Kind::Wallet(Spend::P2shP2wpkh { redeem_script }) => witness.as_ref() == Some(redeem_script),
        Kind::Wallet(Spend::P2pkh { .. }) => key_hash(script) == Some(public_key.pubkey_hash()),
        Kind::Wallet(Spend::P2tr) | Kind::Htlc { .. } | Kind::Done(_) => false,
    }
}

/// A deposit, and its payment as far as it is signed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Artefacts {
    /// What was signed.
    pub unsigned: Unsigned,
    /// The signed transaction.
    pub signed: Signed,
}

fn payment(unsigned: &Unsigned) -> Result<&Payment, Refusal> {
    let nothing = "without unspent outputs there is no transaction: pay the address with any wallet";
    unsigned.payment.as_ref().ok_or_else(|| Refusal::new(Code::NothingToSign, "/wallet/utxos").with_reason(nothing))
}

pub(crate) fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
    unsigned.payment.as_ref().map(|payment| payment.requests(unsigned.deposit.chain)).unwrap_or_default()
}

pub(crate) fn sign(unsigned: Unsigned, key: &Key) -> Result<Artefacts, Refusal> {
    let signed = payment(&unsigned)?.sign(key, unsigned.deposit.chain)?;
    Ok(Artefacts { unsigned, signed })
}

pub(crate) fn attach(unsigned: Unsigned, given: &[(String, Signature)]) -> Result<Artefacts, Refusal> {
    let signed = payment(&unsigned)?.attach(given)?;
    Ok(Artefacts { unsigned, signed })
}

impl Serialize for Artefacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Members<'a>(&'a Artefacts);
        impl Serialize for Members<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                self.0.unsigned.serialize_members(&mut map)?;
                map.serialize_entry("signed_psbt", &self.0.signed.psbt.to_string())?;
                if let Some(raw) = self.0.signed.raw() {
                    map.serialize_entry("signed", &raw)?;
                }
                map.serialize_entry("tx_id", &self.0.signed.tx_id())?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("deposit", &Members(self))?;
        map.end()
    }
}
