//! Signing: the requests, external signatures and their proofs, and the signed transaction for nodes.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::family::{Seal, Signable, Signed, not_a_payload};
use countersign_core::json::{self, Cursor};
use countersign_core::{
    Code, Refusal, RequestId, Role, Scheme, SignedTransaction as BroadcastTransaction, SigningRequest, Summary, Warnings,
};
use ed25519_dalek::VerifyingKey;
use serde::Serialize;
use sui_crypto::Verifier as _;
use sui_crypto::simple::SimpleVerifier;
use sui_sdk_types::{Address, SignedTransaction, SimpleSignature, Transaction, UserSignature};

use crate::address::{format_address, format_digest};
use crate::key::{Key, is_high_s};
use crate::kind;
use crate::received;
use crate::transaction::Unsigned;

/// The longest text of a signature that is parsed, in bytes. Even a multisig of zkLogin signatures is much shorter.
const MAX_SIGNATURE: usize = 64 * 1024;
/// The same limit for the signature's bytes, of which three are four characters.
pub(crate) const MAX_SIGNATURE_BYTES: usize = MAX_SIGNATURE / 4 * 3;
/// The most signatures of a transaction: the sender's and the sponsor's.
pub(crate) const MAX_SIGNATURES: usize = 2;

/// A signature of an external signer, of any of Sui's schemes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalSignature(UserSignature);

impl ExternalSignature {
    /// Returns the signature as Mysten's own type.
    #[must_use]
    pub const fn inner(&self) -> &UserSignature {
        &self.0
    }
}

impl From<UserSignature> for ExternalSignature {
    fn from(signature: UserSignature) -> Self {
        Self(signature)
    }
}

impl fmt::Display for ExternalSignature {
    /// Writes base64.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_base64())
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses base64 of flag, signature and public key, or of a multisig, zkLogin or passkey signature.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] for any other text, or [`Code::SignatureHighS`].
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let malformed = || Refusal::new(Code::SignatureMalformed, "").with_expected("base64 of flag, signature and public key");
        if text.len() > MAX_SIGNATURE {
            return Err(malformed());
        }
        let signature = UserSignature::from_base64(text).map_err(|_| malformed())?;
        check_low_s(&signature)?;
        Ok(Self(signature))
    }
}

pub(crate) fn check_low_s(signature: &UserSignature) -> Result<(), Refusal> {
    match signature {
        UserSignature::Simple(simple) if is_high_s(simple) => Err(Refusal::new(Code::SignatureHighS, "")),
        _ => Ok(()),
    }
}

/// Returns whether a simple signature of this digest is valid. Returns `true` for any other scheme, which only the network can verify.
pub(crate) fn is_sound(signature: &UserSignature, digest: &[u8; 32]) -> bool {
    match signature {
        UserSignature::Simple(SimpleSignature::Ed25519 { signature, public_key }) => {
            let signature = ed25519_dalek::Signature::from_bytes(signature.inner());
            VerifyingKey::from_bytes(public_key.inner()).is_ok_and(|key| key.verify_strict(digest, &signature).is_ok())
        }
        UserSignature::Simple(simple) => SimpleVerifier.verify(digest, simple).is_ok(),
        _ => true,
    }
}

impl Unsigned {
    /// Returns the id of this account's signing request; `None` if the transaction does not need its signature.
    pub(crate) fn request_of(&self, signer: Address) -> Option<RequestId> {
        match signer {
            _ if signer == self.sender => Some(self.request_id()),
            _ if self.sponsor() == Some(signer) => Some(RequestId::Sponsor),
            _ => None,
        }
    }

    /// Returns the account that must sign a request.
    fn signer_of(&self, id: RequestId) -> Result<Address, Refusal> {
        let nothing = || Refusal::new(Code::NothingToSign, "");
        match id {
            _ if id == self.request_id() => Ok(self.sender),
            RequestId::Sponsor => self.sponsor().ok_or_else(|| nothing().with_reason("no sponsor pays for this transaction")),
            RequestId::TypedData | RequestId::Gasless => {
                Err(nothing().with_reason("Sui has no gasless funding path: send the signed transaction, or let a sponsor pay for it"))
            }
            _ => Err(nothing()),
        }
    }

    fn set(&mut self, id: RequestId, signature: UserSignature) {
        if id == RequestId::Sponsor {
            self.sponsor_signature = Some(signature);
        } else {
            self.signature = Some(signature);
        }
    }

    /// Returns the refusal of a signer that is neither the sender nor the sponsor. It names the sender, who always has to sign.
    pub(crate) fn key_mismatch(&self, signer: Address) -> Refusal {
        let refusal = Refusal::new(Code::KeyMismatch, "").with_expected(format!("the key of {}", self.sender));
        refusal.with_actual(format!("the key of {signer}"))
    }
}

impl Signable for Unsigned {
    type Payload = Transaction;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe_unsigned(self, summary);
    }

    fn requests(&self) -> Vec<SigningRequest<Transaction>> {
        let request = |id, signer: Address| {
            let (message, digest) = (self.intent_message(), self.signing_digest.to_vec());
            SigningRequest::new(id, format_address(&signer), Scheme::Sui, self.transaction(), message, digest)
        };
        let sponsor = self.sponsor().map(|sponsor| request(RequestId::Sponsor, sponsor));
        [request(self.request_id(), self.sender)].into_iter().chain(sponsor).collect()
    }

    fn missing(&self) -> Vec<RequestId> {
        let sender = self.signature.is_none().then(|| self.request_id());
        let sponsor = (self.sponsor().is_some() && self.sponsor_signature.is_none()).then_some(RequestId::Sponsor);
        sender.into_iter().chain(sponsor).collect()
    }

    fn signatures(&self) -> Vec<(RequestId, ExternalSignature)> {
        let sender = self.signature.iter().map(|signature| (self.request_id(), signature));
        let sponsor = self.sponsor_signature.iter().map(|signature| (RequestId::Sponsor, signature));
        sender.chain(sponsor).map(|(id, signature)| (id, signature.clone().into())).collect()
    }

    /// Signs for the account that the key controls: the sender or the sponsor.
    fn sign(&mut self, key: &Key, _: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        let id = self.request_of(key.address()).ok_or_else(|| self.key_mismatch(key.address()))?;
        let signature = key.sign(&self.signing_digest)?;
        self.set(id, UserSignature::Simple(signature));
        Ok(())
    }

    /// Proves that a signature is the signer's over exactly this digest. A signature that only the network can prove is accepted with a
    /// warning if its address is the signer's.
    fn attach(
        &mut self,
        id: RequestId,
        ExternalSignature(signature): ExternalSignature,
        warnings: &mut Warnings,
        _: Seal<Self>,
    ) -> Result<(), Refusal> {
        let signer = self.signer_of(id)?;
        check_low_s(&signature)?;
        let is_signers = signature.derive_addresses().any(|address| address == signer);
        if !is_signers || !is_sound(&signature, &self.signing_digest) {
            let expected = format!("a signature of {signer} over {}", hex::encode(self.signing_digest));
            return Err(Refusal::new(Code::SignatureMismatch, "").with_expected(expected));
        }
        if !matches!(signature, UserSignature::Simple(_)) {
            warnings.warn_about(Code::SignatureUnverified, signature.scheme().name());
        }
        self.set(id, signature);
        Ok(())
    }

    fn read_signed(&self, transaction: &[u8]) -> Result<Vec<(RequestId, ExternalSignature)>, Refusal> {
        let received = received::from_bytes(transaction)?;
        if received.transaction != self.transaction() {
            return Err(not_a_payload());
        }
        let signatures = received.signatures.into_iter().map(|signature| {
            let id = signature.derive_addresses().find_map(|address| self.request_of(address));
            Ok((id.unwrap_or_else(|| self.request_id()), ExternalSignature(signature)))
        });
        signatures.collect()
    }

    fn finish(self, _: Seal<Self>) -> Result<SignedPayloads, Self> {
        let sponsored = self.sponsor().is_some();
        let signatures = match (&self.signature, &self.sponsor_signature) {
            (Some(sender), None) if !sponsored => vec![sender.clone()],
            (Some(sender), Some(sponsor)) if sponsored => vec![sender.clone(), sponsor.clone()],
            _ => return Err(self),
        };
        Ok(SignedPayloads { unsigned: self, signatures })
    }
}

/// The payload with all its signatures. Only [`Signable::finish`] creates it.
#[derive(Debug, Clone)]
pub struct SignedPayloads {
    unsigned: Unsigned,
    signatures: Vec<UserSignature>,
}

/// Parameters of the JSON-RPC method `executeTransactionBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Execution {
    /// The BCS bytes of the transaction, in base64.
    pub tx_bytes: String,
    /// The sender's signature, then the sponsor's if there is one, in base64.
    pub signatures: Vec<String>,
}

impl Execution {
    /// Parses these parameters in JSON. Other members are ignored.
    ///
    /// # Errors
    ///
    /// The codes of malformed JSON; [`Code::MissingField`]; [`Code::WrongType`]; [`Code::TransactionMismatch`] if the bytes are not
    /// exactly one transaction or there are more than two signatures; [`Code::SignatureMalformed`] or [`Code::SignatureHighS`].
    pub fn from_json(text: &[u8]) -> Result<SignedTransaction, Refusal> {
        let value = json::parse(text)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        let bytes = members.need("tx_bytes")?;
        let decoded =
            STANDARD.decode(bytes.text()?).map_err(|_| bytes.at().refuse(Code::TransactionEncoding).with_expected("canonical base64"))?;
        let not_one = |_| bytes.at().refuse(Code::TransactionMismatch).with_reason("the bytes are not one transaction");
        let transaction = kind::decode_transaction(&decoded).map_err(not_one)?;
        let signatures = members.need("signatures")?;
        let all = signatures.array()?;
        if all.len() > MAX_SIGNATURES {
            let refusal = signatures.at().refuse(Code::TransactionMismatch);
            return Err(refusal.with_expected(format!("at most {MAX_SIGNATURES} signatures")).with_actual(all.len()));
        }
        let signature = |cursor: Cursor<'_, '_>| {
            cursor
                .text()?
                .parse()
                .map(|ExternalSignature(signature)| signature)
                .map_err(|refusal| refusal.with_prefix(&cursor.at().to_string()))
        };
        Ok(SignedTransaction { transaction, signatures: all.map(signature).collect::<Result<_, Refusal>>()? })
    }
}

impl SignedPayloads {
    /// Returns the payload, which has all its signatures.
    #[must_use]
    pub const fn payloads(&self) -> &Unsigned {
        &self.unsigned
    }

    /// Returns all signatures, the sender's first.
    #[must_use]
    pub fn signatures(&self) -> &[UserSignature] {
        &self.signatures
    }

    /// Returns the parameters of the JSON-RPC method that executes the transaction.
    #[must_use]
    pub fn execution(&self) -> Execution {
        let signatures = self.signatures.iter().map(UserSignature::to_base64).collect();
        Execution { tx_bytes: self.unsigned.base64(), signatures }
    }

    /// Returns the signed transaction as Mysten's own type.
    #[must_use]
    pub fn signed_transaction(&self) -> SignedTransaction {
        SignedTransaction { transaction: self.unsigned.transaction(), signatures: self.signatures.clone() }
    }

    /// Returns what the transaction does.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.unsigned.role
    }
}

impl Signed for SignedPayloads {
    type Transaction = SignedTransaction;

    fn transactions(&self) -> Vec<BroadcastTransaction<SignedTransaction>> {
        let (id, bytes) = (format_digest(&self.unsigned.digest()), self.unsigned.bytes.clone());
        vec![BroadcastTransaction::new(self.unsigned.role, id, bytes, self.signed_transaction())]
    }
}
