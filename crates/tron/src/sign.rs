//! Signing requests, proofs of signatures from outside, and the local signer.

use alloy_primitives::{B256, Signature, hex};
use countersign_abi::signature::{self, Key, ExternalSignature};
pub use countersign_abi::steps::Submission;
use countersign_abi::steps::{self, INITIATE, Steps};
use countersign_core::json::At;
use countersign_core::{Code, Refusal, SigningRequest};
use prost::Message as _;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::address::Address;
use crate::transaction::protocol::{TRIGGER_SMART_CONTRACT_NAME, TRIGGER_SMART_CONTRACT_URL, Transaction};
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
    /// r‖s‖v with v 27 or 28.
    pub signature: Option<Vec<u8>>,
}

impl SignedCall {
    /// Attaches an owner's signature from outside to a payload that is not an order's, such as a recovery's.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMismatch`] or [`Code::SignatureMalformed`] at `/signatures/initiate`.
    pub fn attach(payload: Payload, signer: Address, signature: &ExternalSignature) -> Result<Self, Refusal> {
        let signature = prove(signature, &payload.tx_id, signer, &At::root("/signatures").key(INITIATE))?;
        Ok(Self::new(payload, Some(signature)))
    }

    fn new(payload: Payload, signature: Option<Signature>) -> Self {
        Self { payload, signature: signature.map(|signature| signature::bytes(&signature)) }
    }

    /// The whole transaction in protobuf: what nodes take over gRPC and, as hex, at `/wallet/broadcasthex`.
    #[must_use]
    pub fn broadcast_bytes(&self) -> Option<Vec<u8>> {
        let signature = self.signature.clone()?;
        Some(Transaction { raw_data: Some(self.payload.transaction.clone()), signature: vec![signature] }.encode_to_vec())
    }

    /// The whole transaction in the JSON that nodes take at `/wallet/broadcasttransaction`.
    #[must_use]
    pub fn broadcast_json(&self) -> Option<String> {
        let signature = hex::encode(self.signature.as_ref()?);
        let Payload { transaction: raw, trigger, raw_data, tx_id } = &self.payload;
        let json = NodeTransaction {
            visible: false,
            tx_id: hex::encode(tx_id),
            raw_data: NodeRaw {
                contract: [NodeContract {
                    parameter: NodeParameter {
                        value: NodeTrigger {
                            owner_address: hex::encode(&trigger.owner_address),
                            contract_address: hex::encode(&trigger.contract_address),
                            call_value: trigger.call_value,
                            data: hex::encode(&trigger.data),
                        },
                        type_url: TRIGGER_SMART_CONTRACT_URL,
                    },
                    kind: TRIGGER_SMART_CONTRACT_NAME,
                }],
                ref_block_bytes: hex::encode(&raw.ref_block_bytes),
                ref_block_hash: hex::encode(&raw.ref_block_hash),
                expiration: raw.expiration,
                fee_limit: raw.fee_limit,
                timestamp: raw.timestamp,
            },
            raw_data_hex: hex::encode(raw_data),
            signature: [signature],
        };
        // Text and integers always serialize.
        serde_json::to_string(&json).ok()
    }
}

/// A transaction as the HTTP APIs of nodes spell it: hex without `0x`, addresses with their prefix, zero members left out.
#[derive(Serialize)]
struct NodeTransaction {
    visible: bool,
    #[serde(rename = "txID")]
    tx_id: String,
    raw_data: NodeRaw,
    raw_data_hex: String,
    signature: [String; 1],
}

#[derive(Serialize)]
struct NodeRaw {
    contract: [NodeContract; 1],
    ref_block_bytes: String,
    ref_block_hash: String,
    expiration: i64,
    fee_limit: i64,
    timestamp: i64,
}

#[derive(Serialize)]
struct NodeContract {
    parameter: NodeParameter,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct NodeParameter {
    value: NodeTrigger,
    type_url: &'static str,
}

#[derive(Serialize)]
struct NodeTrigger {
    owner_address: String,
    contract_address: String,
    #[serde(skip_serializing_if = "is_zero")]
    call_value: i64,
    data: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes members by reference")]
const fn is_zero(value: &i64) -> bool {
    *value == 0
}

pub(crate) fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
    unsigned.steps.requests(&unsigned.sender)
}

pub(crate) fn sign(unsigned: Unsigned, key: &Key) -> Result<Artefacts, Refusal> {
    key.controls(unsigned.sender.bytes(), shown)?;
    unsigned.steps.sign(key, SignedCall::new)
}

pub(crate) fn attach(unsigned: Unsigned, signatures: Vec<(String, ExternalSignature)>) -> Result<Artefacts, Refusal> {
    let prove = |at: &At<'_>, digest: &B256, given: &ExternalSignature| prove(given, digest, unsigned.sender, at);
    let message = |at: &At<'_>, digest: &B256, given: &ExternalSignature| prove(at, digest, given).map(|found| signature::bytes(&found));
    unsigned.steps.attach(signatures, prove, message, SignedCall::new)
}

fn shown(address: alloy_primitives::Address) -> String {
    Address::from(address).to_string()
}

fn prove(given: &ExternalSignature, digest: &B256, signer: Address, at: &At<'_>) -> Result<Signature, Refusal> {
    match given {
        ExternalSignature::Ecdsa(found) => signature::prove(found, digest, signer.bytes(), at, shown).map(|()| *found),
        _ => Err(at.refuse(Code::SignatureMalformed).with_reason("a Tron account signs with a key, not with a contract")),
    }
}

impl Serialize for SignedCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("raw_data", &hex::encode(&self.payload.raw_data))?;
        map.serialize_entry("tx_id", &hex::encode(self.payload.tx_id))?;
        if let Some(signature) = &self.signature {
            map.serialize_entry("signature", &hex::encode(signature))?;
        }
        map.end()
    }
}
