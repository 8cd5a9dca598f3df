//! Signing requests, proofs of signatures from outside, and the local signer.

use alloy_consensus::{SignableTransaction, TxEnvelope, TypedTransaction};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Signature};
use countersign_abi::signature::{self, Key, ExternalSignature};
pub use countersign_abi::steps::Submission;
use countersign_abi::steps::{self, Steps};
use countersign_core::json::At;
use countersign_core::{Code, Hex, Refusal, SigningRequest, Warnings};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::transaction::{Payload, Unsigned};

/// A gasless message, signed where a signature was given.
pub type SignedMessage = steps::SignedMessage<Address>;

/// Everything that goes to the chain, or to the service.
pub type Artefacts = Steps<SignedCall, SignedMessage>;

/// A transaction, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedCall {
    /// What was signed.
    pub payload: Payload,
    /// The signed transaction; its EIP-2718 bytes are what nodes take.
    pub signed: Option<TxEnvelope>,
}

impl Payload {
    /// Signs a call that no order stands behind: a recovery, a claim.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] in practice never: the curve would have to fail.
    pub fn sign(self, key: &Key) -> Result<SignedCall, Refusal> {
        key.sign(&self.signing_hash, "/wallet").map(|signature| SignedCall::new(self, Some(signature)))
    }
}

impl SignedCall {
    fn new(payload: Payload, signature: Option<Signature>) -> Self {
        let signed = signature.and_then(|signature| match payload.transaction.clone() {
            TypedTransaction::Eip1559(tx) => Some(tx.into_signed(signature).into()),
            TypedTransaction::Legacy(tx) => Some(tx.into_signed(signature).into()),
            // Nothing else is ever prepared.
            _ => None,
        });
        Self { payload, signed }
    }

    /// The bytes that nodes take.
    #[must_use]
    pub fn raw(&self) -> Option<Vec<u8>> {
        self.signed.as_ref().map(Encodable2718::encoded_2718)
    }
}

pub(crate) fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
    unsigned.steps.requests(&unsigned.sender)
}

pub(crate) fn sign(unsigned: Unsigned, key: &Key) -> Result<Artefacts, Refusal> {
    key.controls(unsigned.sender, |address| address.to_string())?;
    unsigned.steps.sign(key, SignedCall::new)
}

pub(crate) fn attach(unsigned: Unsigned, signatures: Vec<(String, ExternalSignature)>, warnings: &mut Warnings) -> Result<Artefacts, Refusal> {
    let sender = unsigned.sender;
    let prove = |at: &At<'_>, digest: &B256, found: &Signature| {
        signature::prove(found, digest, sender, at, |address| address.to_string()).map(|()| *found)
    };
    let call = |at: &At<'_>, digest: &B256, given: &ExternalSignature| match given {
        ExternalSignature::Ecdsa(found) => prove(at, digest, found),
        _ => Err(at.refuse(Code::SignatureMalformed).with_reason("a transaction is signed by a key, not by a contract")),
    };
    let message = |at: &At<'_>, digest: &B256, given: &ExternalSignature| match given {
        ExternalSignature::Ecdsa(found) => prove(at, digest, found).map(|found| signature::bytes(&found)),
        ExternalSignature::Contract(bytes) => {
            warnings.warn(Code::ContractSignatureUnverified);
            Ok(bytes.to_vec())
        }
        _ => Err(at.refuse(Code::SignatureMalformed)),
    };
    unsigned.steps.attach(signatures, call, message, SignedCall::new)
}

#[cfg(feature = "alloy-signer")]
mod alloy_signer_adapter {
    use alloy_signer::{Signer, SignerSync};
    use countersign_abi::signature::ExternalSignature;

    use crate::transaction::Unsigned;

    impl Unsigned {
        /// Has any alloy signer sign everything; hand the answer to `Unsigned::attach`, which proves each signature.
        ///
        /// # Errors
        ///
        /// Whatever the signer refuses.
        pub fn sign_with_sync(&self, signer: &impl SignerSync) -> alloy_signer::Result<Vec<(String, ExternalSignature)>> {
            self.steps
                .digests()
                .into_iter()
                .map(|(name, digest)| Ok((name.to_owned(), ExternalSignature::Ecdsa(signer.sign_hash_sync(&digest)?))))
                .collect()
        }

        /// As [`Unsigned::sign_with_sync`], for signers that wait: hardware, remote, browser.
        ///
        /// # Errors
        ///
        /// Whatever the signer refuses.
        pub async fn sign_with(&self, signer: &(impl Signer + Sync)) -> alloy_signer::Result<Vec<(String, ExternalSignature)>> {
            let mut signatures = Vec::new();
            for (name, digest) in self.steps.digests() {
                signatures.push((name.to_owned(), ExternalSignature::Ecdsa(signer.sign_hash(&digest).await?)));
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
