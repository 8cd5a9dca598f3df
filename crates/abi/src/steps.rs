//! What an order of the swap contract asks its owner for, step by step, from the payloads to the artefacts.

use std::fmt;

use alloy_primitives::{B256, Signature};
use countersign_core::json::At;
use countersign_core::{Code, Hex, Refusal, SigningRequest};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::signature::{self, Key, ExternalSignature};
use crate::typed_data::{Hashes, Message, preimage};

/// The request that sets the allowance to zero.
pub const APPROVAL_RESET: &str = "approval_reset";
/// The request of the token approval.
pub const APPROVAL: &str = "approval";
/// The request of the call that locks the funds.
pub const INITIATE: &str = "initiate";
/// The request of the gasless message.
pub const TYPED_DATA: &str = "typed_data";

/// One thing for each step of an order, in the order in which calls are sent: payloads, or what came of signing them.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every step")]
pub struct Steps<C, M> {
    /// Sets the allowance to zero first, where the wallet asked for it.
    pub approval_reset: Option<C>,
    /// The token approval.
    pub approval: Option<C>,
    /// The call that locks the funds.
    pub initiate: C,
    /// The gasless message.
    pub typed_data: Option<M>,
}

/// Bytes that a key signs by their hash.
pub trait Payload {
    /// The bytes that the hash is taken of.
    fn preimage(&self) -> Vec<u8>;
    /// What is signed.
    fn digest(&self) -> B256;
}

impl<C, M> Steps<C, M> {
    /// The calls by their names, in the order in which they are sent.
    pub fn calls(&self) -> impl Iterator<Item = (&'static str, &C)> {
        let calls = [(APPROVAL_RESET, self.approval_reset.as_ref()), (APPROVAL, self.approval.as_ref()), (INITIATE, Some(&self.initiate))];
        calls.into_iter().filter_map(|(name, call)| call.map(|call| (name, call)))
    }
}

impl<C: Payload, A: fmt::Display> Steps<C, UnsignedMessage<A>> {
    /// What is to be signed, by request name.
    #[must_use]
    pub fn digests(&self) -> Vec<(&'static str, B256)> {
        let calls = self.calls().map(|(name, payload)| (name, payload.digest()));
        calls.chain(self.typed_data.iter().map(|message| (TYPED_DATA, message.digest()))).collect()
    }

    /// What a signer outside is asked for: `sender` signs the calls.
    #[must_use]
    pub fn requests(&self, sender: &A) -> Vec<SigningRequest> {
        fn request(name: &'static str, signer: &impl fmt::Display, payload: &impl Payload) -> SigningRequest {
            SigningRequest::new(name, signer.to_string(), payload.preimage(), payload.digest().to_vec())
        }
        let calls = self.calls().map(|(name, payload)| request(name, sender, payload));
        calls.chain(self.typed_data.iter().map(|message| request(TYPED_DATA, &message.signer, message))).collect()
    }

    /// Signs every step; `signed` puts a call and its signature together.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] in practice never: the curve would have to fail.
    pub fn sign<S>(self, key: &Key, signed: impl Fn(C, Option<Signature>) -> S) -> Result<Steps<S, SignedMessage<A>>, Refusal> {
        let call = |payload: C| key.sign(&payload.digest(), "/wallet").map(|signature| signed(payload, Some(signature)));
        let message = |message: UnsignedMessage<A>| {
            let signature = key.sign(&message.digest(), "/wallet")?;
            Ok(SignedMessage { message, signature: Some(signature::bytes(&signature)) })
        };
        Ok(Steps {
            approval_reset: self.approval_reset.map(call).transpose()?,
            approval: self.approval.map(call).transpose()?,
            initiate: call(self.initiate)?,
            typed_data: self.typed_data.map(message).transpose()?,
        })
    }

    /// Attaches signatures from outside, each named after its request and proven by `call` or `message` over the digest.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] at `/signatures/<request>` for a signature that no step has use for, and what the two
    /// refuse.
    pub fn attach<S>(
        self,
        mut signatures: Vec<(String, ExternalSignature)>,
        call: impl Fn(&At<'_>, &B256, &ExternalSignature) -> Result<Signature, Refusal>,
        message: impl FnOnce(&At<'_>, &B256, &ExternalSignature) -> Result<Vec<u8>, Refusal>,
        signed: impl Fn(C, Option<Signature>) -> S,
    ) -> Result<Steps<S, SignedMessage<A>>, Refusal> {
        let root = At::root("/signatures");
        let mut take = |name| {
            let index = signatures.iter().position(|(given, _)| given == name)?;
            Some(signatures.swap_remove(index).1)
        };
        let mut step = |name, payload: C| {
            let signature = take(name).map(|given| call(&root.key(name), &payload.digest(), &given)).transpose()?;
            Ok(signed(payload, signature))
        };
        let steps = Steps {
            approval_reset: self.approval_reset.map(|payload| step(APPROVAL_RESET, payload)).transpose()?,
            approval: self.approval.map(|payload| step(APPROVAL, payload)).transpose()?,
            initiate: step(INITIATE, self.initiate)?,
            typed_data: match self.typed_data {
                Some(unsigned) => {
                    let given = take(TYPED_DATA).map(|given| message(&root.key(TYPED_DATA), &unsigned.digest(), &given));
                    Some(SignedMessage { message: unsigned, signature: given.transpose()? })
                }
                None => None,
            },
        };
        match signatures.first() {
            Some((name, _)) => Err(root.key(name).refuse(Code::NothingToSign)),
            None => Ok(steps),
        }
    }
}

impl<C, A> Steps<C, SignedMessage<A>> {
    /// The gasless body; `None` if the message is not signed.
    #[must_use]
    pub fn submission(&self) -> Option<Submission> {
        let signature = self.typed_data.as_ref()?.signature.clone()?;
        Some(Submission { signature: Hex(signature).to_string() })
    }
}

impl<C: Serialize, M: Serialize> Serialize for Steps<C, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(reset) = &self.approval_reset {
            map.serialize_entry(APPROVAL_RESET, reset)?;
        }
        map.serialize_entry(APPROVAL, &self.approval)?;
        map.serialize_entry(INITIATE, &self.initiate)?;
        map.serialize_entry(TYPED_DATA, &self.typed_data)?;
        map.end()
    }
}

/// A gasless message with its hashes, ready to be signed by the owner.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnsignedMessage<A> {
    /// The message.
    pub message: Message,
    /// Its hashes.
    pub hashes: Hashes,
    /// The owner.
    pub signer: A,
}

impl<A> UnsignedMessage<A> {
    /// Hashes a message.
    #[must_use]
    pub fn new(message: Message, signer: A) -> Self {
        let hashes = message.hashes();
        Self { message, hashes, signer }
    }

    /// `1901`, domain separator, struct hash.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        preimage(self.hashes.domain_separator, self.hashes.struct_hash).to_vec()
    }
}

impl<A> Payload for UnsignedMessage<A> {
    fn preimage(&self) -> Vec<u8> {
        self.payload()
    }

    fn digest(&self) -> B256 {
        self.hashes.digest
    }
}

impl<A> Serialize for UnsignedMessage<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        serialize_hashes(&mut map, &self.hashes)?;
        map.end()
    }
}

/// A gasless message, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedMessage<A> {
    /// What was signed.
    pub message: UnsignedMessage<A>,
    /// r‖s‖v with v 27 or 28, or what a contract wallet gave.
    pub signature: Option<Vec<u8>>,
}

impl<A> Serialize for SignedMessage<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_hashes(&mut map, &self.message.hashes)?;
        if let Some(signature) = &self.signature {
            map.serialize_entry("signature", &Hex(signature.clone()))?;
        }
        map.end()
    }
}

fn serialize_hashes<M: SerializeMap>(map: &mut M, hashes: &Hashes) -> Result<(), M::Error> {
    let hex = |hash: B256| Hex(hash.to_vec());
    map.serialize_entry("domain_separator", &hex(hashes.domain_separator))?;
    map.serialize_entry("struct_hash", &hex(hashes.struct_hash))?;
    map.serialize_entry("digest", &hex(hashes.digest))
}

/// Body of the gasless `PATCH /v2/orders/{id}?action=initiate`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Submission {
    /// `0x` and the signature's bytes.
    pub signature: String,
}
