//! Signing requests, proofs of signatures from outside, and the local signer.

use alloy_consensus::{SignableTransaction, TxEnvelope, TypedTransaction};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, Signature};
use countersign_abi::signature::{self, Key, Outside};
use countersign_core::json::At;
use countersign_core::{Code, Hex, Refusal, SigningRequest, Warnings};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::message::UnsignedMessage;
use crate::transaction::{Payload, Unsigned};

const APPROVAL_RESET: &str = "approval_reset";
const APPROVAL: &str = "approval";
const INITIATE: &str = "initiate";
const TYPED_DATA: &str = "typed_data";

/// A transaction, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedCall {
    /// What was signed.
    pub payload: Payload,
    /// The signed transaction; its EIP-2718 bytes are what nodes take.
    pub signed: Option<TxEnvelope>,
}

/// A gasless message, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedMessage {
    /// What was signed.
    pub message: UnsignedMessage,
    /// r‖s‖v with v 27 or 28, or what a contract wallet gave.
    pub signature: Option<Vec<u8>>,
}

/// Everything that goes to the chain, or to the service.
#[derive(Debug)]
#[non_exhaustive]
pub struct Artefacts {
    /// Sets the allowance to zero first.
    pub approval_reset: Option<SignedCall>,
    /// The token approval.
    pub approval: Option<SignedCall>,
    /// The call that locks the funds.
    pub initiate: SignedCall,
    /// The gasless message.
    pub typed_data: Option<SignedMessage>,
}

/// Body of the gasless `PATCH /v2/orders/{id}?action=initiate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Submission {
    /// `0x` and the signature's bytes.
    pub signature: String,
}

impl Artefacts {
    /// The gasless body; `None` if the message is not signed.
    #[must_use]
    pub fn submission(&self) -> Option<Submission> {
        let signature = self.typed_data.as_ref()?.signature.clone()?;
        Some(Submission { signature: Hex(signature).to_string() })
    }
}

impl Payload {
    /// Signs a call that no order stands behind: a recovery, a claim.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] in practice never: the curve would have to fail.
    pub fn sign(self, key: &Key) -> Result<SignedCall, Refusal> {
        key.sign(&self.signing_hash, "/wallet").map(|signature| SignedCall::new(self, signature))
    }
}

impl SignedCall {
    const fn unsigned(payload: Payload) -> Self {
        Self { payload, signed: None }
    }

    fn new(payload: Payload, signature: Signature) -> Self {
        let signed = match payload.transaction.clone() {
            TypedTransaction::Eip1559(tx) => Some(tx.into_signed(signature).into()),
            TypedTransaction::Legacy(tx) => Some(tx.into_signed(signature).into()),
            // Nothing else is ever prepared.
            _ => None,
        };
        Self { payload, signed }
    }

    /// The bytes that nodes take.
    #[must_use]
    pub fn raw(&self) -> Option<Vec<u8>> {
        self.signed.as_ref().map(Encodable2718::encoded_2718)
    }
}

pub(crate) fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
    let signer = unsigned.sender.to_string();
    let call =
        |name, payload: &Payload| SigningRequest::new(name, signer.clone(), payload.signing_payload.clone(), payload.signing_hash.to_vec());
    let mut requests = Vec::new();
    requests.extend(unsigned.approval_reset.as_ref().map(|payload| call(APPROVAL_RESET, payload)));
    requests.extend(unsigned.approval.as_ref().map(|payload| call(APPROVAL, payload)));
    requests.push(call(INITIATE, &unsigned.initiate));
    requests.extend(
        unsigned
            .typed_data
            .as_ref()
            .map(|message| SigningRequest::new(TYPED_DATA, message.signer.to_string(), message.payload(), message.hashes.digest.to_vec())),
    );
    requests
}

pub(crate) fn sign(unsigned: Unsigned, key: &Key) -> Result<Artefacts, Refusal> {
    key.controls(unsigned.sender, |address| address.to_string())?;
    let call = |payload: Payload| key.sign(&payload.signing_hash, "/wallet").map(|signature| SignedCall::new(payload, signature));
    let message = |message: UnsignedMessage| {
        let signature = key.sign(&message.hashes.digest, "/wallet")?;
        Ok(SignedMessage { message, signature: Some(signature::bytes(&signature)) })
    };
    Ok(Artefacts {
        approval_reset: unsigned.approval_reset.map(call).transpose()?,
        approval: unsigned.approval.map(call).transpose()?,
        initiate: call(unsigned.initiate)?,
        typed_data: unsigned.typed_data.map(message).transpose()?,
    })
}

pub(crate) fn attach(unsigned: Unsigned, signatures: Vec<(String, Outside)>, warnings: &mut Warnings) -> Result<Artefacts, Refusal> {
    let mut given = Given { signatures, sender: unsigned.sender };
    let artefacts = Artefacts {
        approval_reset: unsigned.approval_reset.map(|payload| given.call(APPROVAL_RESET, payload)).transpose()?,
        approval: unsigned.approval.map(|payload| given.call(APPROVAL, payload)).transpose()?,
        initiate: given.call(INITIATE, unsigned.initiate)?,
        typed_data: unsigned.typed_data.map(|message| given.message(message, warnings)).transpose()?,
    };
    match given.signatures.first() {
        Some((name, _)) => Err(At::root("/signatures").key(name).refuse(Code::NothingToSign)),
        None => Ok(artefacts),
    }
}

/// The signatures that have not been used yet.
struct Given {
    signatures: Vec<(String, Outside)>,
    sender: Address,
}

impl Given {
    fn take(&mut self, name: &str) -> Option<Outside> {
        let index = self.signatures.iter().position(|(given, _)| given == name)?;
        Some(self.signatures.swap_remove(index).1)
    }

    fn call(&mut self, name: &'static str, payload: Payload) -> Result<SignedCall, Refusal> {
        let root = At::root("/signatures");
        let at = root.key(name);
        match self.take(name) {
            None => Ok(SignedCall::unsigned(payload)),
            Some(Outside::Ecdsa(found)) => {
                signature::prove(&found, &payload.signing_hash, self.sender, &at, |address| address.to_string())?;
                Ok(SignedCall::new(payload, found))
            }
            Some(_) => Err(at.refuse(Code::SignatureMalformed).because("a transaction is signed by a key, not by a contract")),
        }
    }

    fn message(&mut self, message: UnsignedMessage, warnings: &mut Warnings) -> Result<SignedMessage, Refusal> {
        let root = At::root("/signatures");
        let at = root.key(TYPED_DATA);
        let signature = match self.take(TYPED_DATA) {
            None => None,
            Some(Outside::Ecdsa(found)) => {
                signature::prove(&found, &message.hashes.digest, message.signer, &at, |address| address.to_string())?;
                Some(signature::bytes(&found))
            }
            Some(Outside::Contract(bytes)) => {
                warnings.warn(Code::ContractSignatureUnverified);
                Some(bytes.to_vec())
            }
            Some(_) => return Err(at.refuse(Code::SignatureMalformed)),
        };
        Ok(SignedMessage { message, signature })
    }
}

#[cfg(feature = "alloy-signer")]
mod alloy_signer_adapter {
    use alloy_signer::{Signer, SignerSync};
    use countersign_abi::signature::Outside;

    use super::{APPROVAL, APPROVAL_RESET, INITIATE, TYPED_DATA};
    use crate::transaction::Unsigned;

    impl Unsigned {
        fn digests(&self) -> Vec<(&'static str, alloy_primitives::B256)> {
            let mut digests = Vec::new();
            digests.extend(self.approval_reset.as_ref().map(|payload| (APPROVAL_RESET, payload.signing_hash)));
            digests.extend(self.approval.as_ref().map(|payload| (APPROVAL, payload.signing_hash)));
            digests.push((INITIATE, self.initiate.signing_hash));
            digests.extend(self.typed_data.as_ref().map(|message| (TYPED_DATA, message.hashes.digest)));
            digests
        }

        /// Has any alloy signer sign everything; hand the answer to `Unsigned::attach`, which proves each signature.
        ///
        /// # Errors
        ///
        /// Whatever the signer refuses.
        pub fn sign_with_sync(&self, signer: &impl SignerSync) -> alloy_signer::Result<Vec<(String, Outside)>> {
            self.digests()
                .into_iter()
                .map(|(name, digest)| Ok((name.to_owned(), Outside::Ecdsa(signer.sign_hash_sync(&digest)?))))
                .collect()
        }

        /// As [`Unsigned::sign_with_sync`], for signers that wait: hardware, remote, browser.
        ///
        /// # Errors
        ///
        /// Whatever the signer refuses.
        pub async fn sign_with(&self, signer: &(impl Signer + Sync)) -> alloy_signer::Result<Vec<(String, Outside)>> {
            let mut signatures = Vec::new();
            for (name, digest) in self.digests() {
                signatures.push((name.to_owned(), Outside::Ecdsa(signer.sign_hash(&digest).await?)));
            }
            Ok(signatures)
        }
    }
}

impl Serialize for SignedCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("signing_payload", &Hex(self.payload.signing_payload.clone()))?;
        map.serialize_entry("signing_hash", &Hex(self.payload.signing_hash.to_vec()))?;
        if let Some(signed) = &self.signed {
            map.serialize_entry("signed", &Hex(signed.encoded_2718()))?;
            map.serialize_entry("tx_hash", &Hex(signed.tx_hash().to_vec()))?;
        }
        map.end()
    }
}

impl Serialize for SignedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("domain_separator", &Hex(self.message.hashes.domain_separator.to_vec()))?;
        map.serialize_entry("struct_hash", &Hex(self.message.hashes.struct_hash.to_vec()))?;
        map.serialize_entry("digest", &Hex(self.message.hashes.digest.to_vec()))?;
        if let Some(signature) = &self.signature {
            map.serialize_entry("signature", &Hex(signature.clone()))?;
        }
        map.end()
    }
}

impl Serialize for Artefacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(reset) = &self.approval_reset {
            map.serialize_entry("approval_reset", reset)?;
        }
        map.serialize_entry("approval", &self.approval)?;
        map.serialize_entry("initiate", &self.initiate)?;
        map.serialize_entry("typed_data", &self.typed_data)?;
        map.end()
    }
}
