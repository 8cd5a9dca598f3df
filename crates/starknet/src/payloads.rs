//! What an order asks its owner to sign: one transaction with all calls, and the gasless message.

use countersign_core::family::{Signable, Signed};
use countersign_core::{Code, GaslessSubmission, Refusal, RequestId, Role, Scheme, SignedTransaction, SigningRequest, Summary, Warnings};
use serde_json::Value as Json;
use starknet_types_core::felt::Felt;

use crate::felt;
use crate::key::Key;
use crate::message::{Hashes, Message};
use crate::signature::{self, ExternalSignature};
use crate::transaction::{Invoke, InvokeTransaction};

/// What a signer is given.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Payload {
    /// The account's transaction, with its calls for signers that build it themselves.
    Invoke(Box<Invoke>),
    /// The gasless message: SNIP-12 JSON of revision 1, for `account.signMessage` and `wallet_signTypedData`.
    TypedData(Json),
}

/// The account's transaction, signed or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InvokePayload {
    /// What its calls do.
    pub role: Role,
    /// The transaction.
    pub invoke: Invoke,
    /// All felts of the account's signature array, once they are there.
    pub signature: Option<Vec<Felt>>,
}

/// The gasless message with its hashes, signed or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessagePayload {
    /// The message.
    pub message: Message,
    /// Its hashes.
    pub hashes: Hashes,
    /// All felts of the account's signature array, once they are there.
    pub signature: Option<Vec<Felt>>,
}

/// Everything that the sender is asked to sign.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// Who sends and pays; of a gasless message the owner.
    pub sender: Felt,
    /// The account's public key, where the wallet knows it.
    pub public_key: Option<Felt>,
    /// Approval, where there is one, and initiate in one transaction; or the call of a recovery.
    pub invoke: Option<InvokePayload>,
    /// The gasless message.
    pub message: Option<MessagePayload>,
}

/// Returns the request that a transaction's signature is asked for under.
const fn request_id(role: Role) -> RequestId {
    match role {
        Role::Redeem => RequestId::Redeem,
        Role::Refund => RequestId::Refund,
        _ => RequestId::Invoke,
    }
}

impl Unsigned {
    pub(crate) fn new(sender: Felt, public_key: Option<Felt>, invoke: Option<(Role, Invoke)>, message: Option<Message>) -> Self {
        Self {
            sender,
            public_key,
            invoke: invoke.map(|(role, invoke)| InvokePayload { role, invoke, signature: None }),
            message: message.map(|message| MessagePayload { hashes: message.hashes(sender), message, signature: None }),
        }
    }

    /// Returns each request with the hash that is signed and the place of its signature.
    pub(crate) fn slots(&mut self) -> impl Iterator<Item = (RequestId, Felt, &mut Option<Vec<Felt>>)> {
        let invoke = self.invoke.as_mut().map(|payload| (request_id(payload.role), payload.invoke.hashes.tx_hash, &mut payload.signature));
        let message = self.message.as_mut().map(|payload| (RequestId::TypedData, payload.hashes.message_hash, &mut payload.signature));
        invoke.into_iter().chain(message)
    }
}

impl Signable for Unsigned {
    type Payload = Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe_unsigned(self, summary);
    }

    fn requests(&self) -> Vec<SigningRequest<Payload>> {
        let request = |id, payload, preimage: &[Felt], hash: &Felt| {
            let (message, digest) = (felt::to_bytes(preimage), hash.to_bytes_be().to_vec());
            SigningRequest::new(id, format!("{:#066x}", self.sender), Scheme::Stark, payload, message, digest)
        };
        let invoke = self.invoke.iter().map(|InvokePayload { role, invoke, .. }| {
            request(request_id(*role), Payload::Invoke(Box::new(invoke.clone())), &invoke.preimage(), &invoke.hashes.tx_hash)
        });
        let message = self.message.iter().map(|MessagePayload { message, hashes, .. }| {
            request(RequestId::TypedData, Payload::TypedData(message.to_json()), &hashes.preimage(), &hashes.message_hash)
        });
        invoke.chain(message).collect()
    }

    fn missing(&self) -> Vec<RequestId> {
        let invoke = self.invoke.iter().filter(|payload| payload.signature.is_none()).map(|payload| request_id(payload.role));
        invoke.chain(self.message.iter().filter(|payload| payload.signature.is_none()).map(|_| RequestId::TypedData)).collect()
    }

    fn sign(&mut self, key: &Key, warnings: &mut Warnings) -> Result<(), Refusal> {
        check_public_key(self.public_key, || key.public_key(), warnings)?;
        let signatures: Vec<_> = self.slots().map(|(_, hash, _)| key.sign(&hash)).collect::<Result<_, _>>()?;
        for ((_, _, slot), signature) in self.slots().zip(signatures) {
            *slot = Some(signature.to_vec());
        }
        Ok(())
    }

    /// Two felts are proven where the public key is known; what else an account accepts, only the account knows.
    fn attach(&mut self, id: RequestId, signature: ExternalSignature, warnings: &mut Warnings) -> Result<(), Refusal> {
        let public_key = self.public_key;
        let slot = self.slots().find(|(slot, ..)| *slot == id);
        let (_, hash, slot) = slot.ok_or_else(|| Refusal::new(Code::NothingToSign, ""))?;
        match (signature.felts(), public_key) {
            ([r, s], Some(public_key)) => signature::prove(&public_key, &hash, [r, s])?,
            _ => warnings.warn(Code::ContractSignatureUnverified),
        }
        *slot = Some(signature.into_felts());
        Ok(())
    }

    fn finish(self) -> Result<SignedPayloads, Self> {
        if self.missing().is_empty() { Ok(SignedPayloads(self)) } else { Err(self) }
    }
}

/// Requires that a signer's public key is the account's, which only the wallet can know; computed only where it does.
pub(crate) fn check_public_key(known: Option<Felt>, of_signer: impl FnOnce() -> Felt, warnings: &mut Warnings) -> Result<(), Refusal> {
    let Some(expected) = known else {
        warnings.warn(Code::KeyNotChecked);
        return Ok(());
    };
    let actual = of_signer();
    if actual == expected {
        return Ok(());
    }
    let format = |key: Felt| format!("the key of public key {key:#x}");
    Err(Refusal::new(Code::KeyMismatch, "").with_expected(format(expected)).with_actual(format(actual)))
}

/// Everything that the sender was asked to sign, signed. Only [`Signable::finish`] makes one.
#[derive(Debug, Clone)]
pub struct SignedPayloads(Unsigned);

impl SignedPayloads {
    /// Returns the payloads; every signature is there.
    #[must_use]
    pub const fn payloads(&self) -> &Unsigned {
        &self.0
    }
}

impl Signed for SignedPayloads {
    type Transaction = InvokeTransaction;

    /// The id is the transaction hash. The bytes are empty: nodes take the native type as JSON, which it serializes as.
    fn transactions(&self) -> Vec<SignedTransaction<InvokeTransaction>> {
        let signed = self.0.invoke.iter().filter_map(|InvokePayload { role, invoke, signature }| {
            let native = invoke.transaction.clone().with_signature(signature.clone()?);
            Some(SignedTransaction::new(*role, format!("{:#x}", invoke.hashes.tx_hash), Vec::new(), native))
        });
        signed.collect()
    }

    /// The signature is in decimal felts joined by commas.
    fn gasless(&self) -> Option<GaslessSubmission> {
        let signature = self.0.message.as_ref()?.signature.as_ref()?;
        Some(GaslessSubmission::new(signature.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")))
    }
}
