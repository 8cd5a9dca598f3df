//! Signing requests, proofs of signatures from outside, and the local signer.

use alloy_primitives::{B256, Signature, hex};
use countersign_abi::signature::{self, Key, Outside};
use countersign_core::json::At;
use countersign_core::{Code, Hex, Refusal, SigningRequest};
use prost::Message as _;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::address::Address;
use crate::message::{UnsignedMessage, serialize_hashes};
use crate::transaction::protocol::{TRIGGER_SMART_CONTRACT_NAME, TRIGGER_SMART_CONTRACT_URL, Transaction};
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
    /// r‖s‖v with v 27 or 28.
    pub signature: Option<Vec<u8>>,
}

/// A gasless message, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedMessage {
    /// What was signed.
    pub message: UnsignedMessage,
    /// r‖s‖v with v 27 or 28.
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

impl SignedCall {
    /// Attaches an owner's signature from outside to a payload that is not an order's, such as a recovery's.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMismatch`] or [`Code::SignatureMalformed`] at `/signatures/initiate`.
    pub fn attach(payload: Payload, signer: Address, signature: &Outside) -> Result<Self, Refusal> {
        let signature = prove(signature, &payload.tx_id, signer, INITIATE)?;
        Ok(Self { payload, signature: Some(signature) })
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
    let signer = unsigned.sender.to_string();
    let call = |name, payload: &Payload| SigningRequest::new(name, signer.clone(), payload.raw_data.clone(), payload.tx_id.to_vec());
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
    key.controls(unsigned.sender.bytes(), shown)?;
    let made = |digest: &B256| key.sign(digest, "/wallet").map(|made: Signature| Some(signature::bytes(&made)));
    let call = |payload: Payload| made(&payload.tx_id).map(|signature| SignedCall { payload, signature });
    let message = |message: UnsignedMessage| made(&message.hashes.digest).map(|signature| SignedMessage { message, signature });
    Ok(Artefacts {
        approval_reset: unsigned.approval_reset.map(call).transpose()?,
        approval: unsigned.approval.map(call).transpose()?,
        initiate: call(unsigned.initiate)?,
        typed_data: unsigned.typed_data.map(message).transpose()?,
    })
}

pub(crate) fn attach(unsigned: Unsigned, signatures: Vec<(String, Outside)>) -> Result<Artefacts, Refusal> {
    let mut given = Given { signatures, signer: unsigned.sender };
    let mut call = |name, payload: Payload| given.prove(name, &payload.tx_id).map(|signature| SignedCall { payload, signature });
    let artefacts = Artefacts {
        approval_reset: unsigned.approval_reset.map(|payload| call(APPROVAL_RESET, payload)).transpose()?,
        approval: unsigned.approval.map(|payload| call(APPROVAL, payload)).transpose()?,
        initiate: call(INITIATE, unsigned.initiate)?,
        typed_data: match unsigned.typed_data {
            Some(message) => {
                let signature = given.prove(TYPED_DATA, &message.hashes.digest)?;
                Some(SignedMessage { message, signature })
            }
            None => None,
        },
    };
    match given.signatures.first() {
        Some((name, _)) => Err(At::root("/signatures").key(name).refuse(Code::NothingToSign)),
        None => Ok(artefacts),
    }
}

/// The signatures that have not been used yet.
struct Given {
    signatures: Vec<(String, Outside)>,
    signer: Address,
}

impl Given {
    /// The signature for this request, if there is one, proven to be the signer's over the digest.
    fn prove(&mut self, name: &'static str, digest: &B256) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(index) = self.signatures.iter().position(|(given, _)| given == name) else { return Ok(None) };
        let (_, signature) = self.signatures.swap_remove(index);
        prove(&signature, digest, self.signer, name).map(Some)
    }
}

fn shown(address: alloy_primitives::Address) -> String {
    Address::from(address).to_string()
}

fn prove(given: &Outside, digest: &B256, signer: Address, name: &'static str) -> Result<Vec<u8>, Refusal> {
    let root = At::root("/signatures");
    let at = root.key(name);
    match given {
        Outside::Ecdsa(found) => {
            signature::prove(found, digest, signer.bytes(), &at, shown)?;
            Ok(signature::bytes(found))
        }
        _ => Err(at.refuse(Code::SignatureMalformed).because("a Tron account signs with a key, not with a contract")),
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

impl Serialize for SignedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_hashes(&mut map, &self.message.hashes)?;
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
