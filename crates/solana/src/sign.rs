//! Signing requests, proofs of signatures from outside, and the local signer.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::digits;
use countersign_core::json::{At, Node};
use countersign_core::{Code, Refusal, SigningRequest};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use zeroize::Zeroizing;

use crate::address::Address;
use crate::encoding;
use crate::transaction::{Payload, Unsigned, serialize_payload};

const TRANSACTION: &str = "transaction";
const GASLESS: &str = "gasless";

/// An Ed25519 key. Wiped on drop, never printed.
pub struct Key(SigningKey);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Reads base58 of a 64-byte keypair, whose halves must belong together, or of a 32-byte seed.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`].
    pub fn parse(text: &str) -> Result<Self, Code> {
        // Longer than a keypair: decoding takes quadratic time.
        if text.len() > 90 {
            return Err(Code::KeyMalformed);
        }
        let mut bytes = Zeroizing::new([0; 64]);
        let len = bs58::decode(text).onto(bytes.as_mut_slice()).map_err(|_| Code::KeyMalformed)?;
        match (len, bytes.first_chunk()) {
            (64, _) => SigningKey::from_keypair_bytes(&bytes).map(Self).map_err(|_| Code::KeyMalformed),
            (32, Some(seed)) => Ok(Self(SigningKey::from_bytes(seed))),
            _ => Err(Code::KeyMalformed),
        }
    }

    /// The account that this key controls.
    #[must_use]
    pub fn address(&self) -> Address {
        self.0.verifying_key().to_bytes().into()
    }

    fn sign(&self, message: &[u8]) -> Signature {
        self.0.sign(message).to_bytes().into()
    }
}

/// Whether an account signed a message, by the strict rules of Solana's nodes: no small-order points, no second spelling.
pub(crate) fn is_signed_by(signature: &Signature, account: &Address, message: &[u8]) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(signature.as_array());
    VerifyingKey::from_bytes(account.as_array()).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}

/// A signature from outside: 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalSignature(pub Signature);

impl ExternalSignature {
    /// Reads base58, base64 (88 characters with padding) or hex (128 digits, `0x` optional).
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`].
    pub fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let text = node.text()?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut bytes = [0; 64];
        let read = match text.len() {
            128 | 130 => digits::into(digits, &mut bytes).is_ok(),
            // No base58 text ends like this.
            88 if text.ends_with("==") => STANDARD.decode_slice(text, &mut bytes).is_ok_and(|len| len == 64),
            64..=88 => bs58::decode(text).onto(&mut bytes).is_ok_and(|len| len == 64),
            _ => false,
        };
        if read {
            return Ok(Self(Signature::from(bytes)));
        }
        Err(node
            .at()
            .refuse(Code::SignatureMalformed)
            .with_expected("64 bytes in base58, base64 or hex")
            .with_actual(format!("{} characters", text.len())))
    }
}

/// The owner's transaction, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedTransaction {
    /// What was signed.
    pub payload: Payload,
    /// The transaction with the owner's signature, ready to be sent.
    pub signed: Option<VersionedTransaction>,
}

/// The gasless transaction, signed by the owner where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedGasless {
    /// What was signed.
    pub payload: Payload,
    /// The transaction with the owner's signature; the sponsor's slot is as it came.
    pub signed: Option<VersionedTransaction>,
}

/// Everything that goes to the chain, or to the service.
#[derive(Debug)]
#[non_exhaustive]
pub struct Artefacts {
    /// The transaction that the owner sends.
    pub transaction: SignedTransaction,
    /// The transaction that the service sends.
    pub gasless: Option<SignedGasless>,
}

/// Body of the gasless `PATCH /v2/orders/{id}?action=initiate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Submission {
    /// Base64 of the whole transaction.
    pub signature: String,
}

/// Bytes as nodes take them. Every transaction that was read serializes.
fn wire_bytes(transaction: &VersionedTransaction) -> Option<Vec<u8>> {
    encoding::write(transaction)
}

impl SignedTransaction {
    /// Base64 for `sendTransaction`; `None` if it is not signed.
    #[must_use]
    pub fn base64(&self) -> Option<String> {
        self.signed.as_ref().and_then(wire_bytes).map(|bytes| STANDARD.encode(bytes))
    }

    /// Base58 for older nodes; `None` if it is not signed.
    #[must_use]
    pub fn base58(&self) -> Option<String> {
        self.signed.as_ref().and_then(wire_bytes).map(|bytes| bs58::encode(bytes).into_string())
    }

    /// The transaction's id: its first signature.
    #[must_use]
    pub fn id(&self) -> Option<Signature> {
        self.signed.as_ref().and_then(|signed| signed.signatures.first()).copied()
    }
}

impl Artefacts {
    /// The gasless body; `None` if there is no gasless way or it is not signed.
    #[must_use]
    pub fn submission(&self) -> Option<Submission> {
        let signed = self.gasless.as_ref()?.signed.as_ref()?;
        wire_bytes(signed).map(|bytes| Submission { signature: STANDARD.encode(bytes) })
    }
}

impl Unsigned {
    fn payloads(&self) -> impl Iterator<Item = (&'static str, &Payload)> {
        [(TRANSACTION, &self.transaction)].into_iter().chain(self.gasless.as_ref().map(|payload| (GASLESS, payload)))
    }

    /// Has any Solana signer sign everything; hand the answer to `Unsigned::attach`, which proves each signature.
    ///
    /// # Errors
    ///
    /// Whatever the signer refuses.
    #[cfg(feature = "solana-signer")]
    pub fn sign_with(&self, signer: &(impl solana_signer::Signer + ?Sized)) -> Result<Vec<(String, ExternalSignature)>, solana_signer::SignerError> {
        self.payloads().map(|(name, payload)| Ok((name.to_owned(), ExternalSignature(signer.try_sign_message(payload.message())?)))).collect()
    }
}

pub(crate) fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
    let signer = unsigned.owner.to_string();
    // Ed25519 takes the message whole: it hashes it twice.
    unsigned
        .payloads()
        .map(|(name, payload)| SigningRequest::new(name, signer.clone(), payload.message().to_vec(), payload.message().to_vec()))
        .collect()
}

pub(crate) fn sign(unsigned: Unsigned, key: &Key) -> Result<Artefacts, Refusal> {
    let address = key.address();
    if address != unsigned.owner {
        return Err(Refusal::new(Code::KeyMismatch, "/wallet/secret_key")
            .with_expected(format!("the key of {}", unsigned.owner))
            .with_actual(format!("the key of {address}")));
    }
    let signatures = unsigned.payloads().map(|(name, payload)| (name.to_owned(), ExternalSignature(key.sign(payload.message())))).collect();
    attach(unsigned, signatures)
}

pub(crate) fn attach(unsigned: Unsigned, mut signatures: Vec<(String, ExternalSignature)>) -> Result<Artefacts, Refusal> {
    let owner = unsigned.owner;
    let mut signed = |name: &str, payload: &Payload| {
        let Some(index) = signatures.iter().position(|(given, _)| given == name) else { return Ok(None) };
        let (_, signature) = signatures.swap_remove(index);
        put(payload, owner, &signature, name).map(Some)
    };
    let transaction = signed(TRANSACTION, &unsigned.transaction)?;
    let gasless = match unsigned.gasless {
        Some(payload) => {
            let signed = signed(GASLESS, &payload)?;
            Some(SignedGasless { payload, signed })
        }
        None => None,
    };
    match signatures.first() {
        Some((name, _)) => Err(At::root("/signatures").key(name).refuse(Code::NothingToSign)),
        None => Ok(Artefacts { transaction: SignedTransaction { payload: unsigned.transaction, signed: transaction }, gasless }),
    }
}

/// Proves a signature over exactly the bytes that were shown, and puts it into the owner's slot.
fn put(payload: &Payload, owner: Address, signature: &ExternalSignature, name: &str) -> Result<VersionedTransaction, Refusal> {
    let root = At::root("/signatures");
    let at = root.key(name);
    if !is_signed_by(&signature.0, &owner, payload.message()) {
        return Err(at.refuse(Code::SignatureMismatch).with_expected(format!("a signature of {owner} over the message")));
    }
    let mut signed = payload.transaction().clone();
    if signed.message.serialize() != payload.message() {
        return Err(at.refuse(Code::Internal).with_reason("the message is not the one that was shown"));
    }
    *signed.signatures.get_mut(payload.owner_slot).ok_or_else(|| at.refuse(Code::Internal))? = signature.0;
    Ok(signed)
}

impl Serialize for SignedTransaction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_payload(&mut map, &self.payload)?;
        if let (Some(signed), Some(id)) = (self.base64(), self.id()) {
            map.serialize_entry("signed", &signed)?;
            map.serialize_entry("signature", &id.to_string())?;
        }
        map.end()
    }
}

impl Serialize for SignedGasless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_payload(&mut map, &self.payload)?;
        if let Some(bytes) = self.signed.as_ref().and_then(wire_bytes) {
            map.serialize_entry("submission", &STANDARD.encode(bytes))?;
        }
        map.end()
    }
}

impl Serialize for Artefacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("transaction", &self.transaction)?;
        map.serialize_entry("gasless", &self.gasless)?;
        map.end()
    }
}
