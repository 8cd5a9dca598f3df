//! Transactions in the encoding of Tron's nodes: the parts of the protobuf message `protocol.Transaction` that
//! payments and contract calls use.

use alloy_primitives::{Address, B256, U256};
use prost::Message;
use prost_types::Any;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::put;

/// The byte in front of an address.
const PREFIX: u8 = 0x41;

/// The operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A payment of TRX.
    Transfer,
    /// A contract call with this calldata.
    Trigger(Vec<u8>),
}

/// The signed part of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) owner: Address,
    /// The receiver or the contract.
    pub(crate) to: Address,
    /// The amount in sun.
    pub(crate) value: u64,
    pub(crate) operation: Operation,
    pub(crate) ref_block_bytes: [u8; 2],
    pub(crate) ref_block_hash: [u8; 8],
    /// The expiration in Unix milliseconds.
    pub(crate) expiration: u64,
    pub(crate) timestamp: u64,
    /// The maximum fee for energy, in sun.
    pub(crate) fee_limit: u64,
}

/// `protocol.Transaction`, without the result that nodes add.
#[derive(Clone, PartialEq, Message)]
struct TransactionMessage {
    #[prost(bytes = "vec", optional, tag = "1")]
    raw_data: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    signature: Vec<Vec<u8>>,
}

/// `protocol.Transaction.raw`.
#[derive(Clone, PartialEq, Message)]
struct RawMessage {
    #[prost(bytes = "vec", tag = "1")]
    ref_block_bytes: Vec<u8>,
    #[prost(uint64, tag = "3")]
    ref_block_num: u64,
    #[prost(bytes = "vec", tag = "4")]
    ref_block_hash: Vec<u8>,
    #[prost(uint64, tag = "8")]
    expiration: u64,
    #[prost(bytes = "vec", tag = "10")]
    data: Vec<u8>,
    #[prost(message, repeated, tag = "11")]
    contract: Vec<ContractMessage>,
    #[prost(uint64, tag = "14")]
    timestamp: u64,
    #[prost(uint64, tag = "18")]
    fee_limit: u64,
}

/// `protocol.Transaction.Contract`.
#[derive(Clone, PartialEq, Message)]
struct ContractMessage {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(message, optional, tag = "2")]
    parameter: Option<Any>,
    #[prost(uint32, tag = "5")]
    permission_id: u32,
}

/// Either `protocol.TransferContract`, which has no data, or `protocol.TriggerSmartContract`.
#[derive(Clone, PartialEq, Message)]
struct CallMessage {
    #[prost(bytes = "vec", tag = "1")]
    owner: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    to: Vec<u8>,
    #[prost(uint64, tag = "3")]
    value: u64,
    #[prost(bytes = "vec", tag = "4")]
    data: Vec<u8>,
}

/// Decodes a message. Unknown fields are refused, because they would not be shown.
fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, String> {
    let message = M::decode(bytes).map_err(|error| error.to_string())?;
    if message.encode_to_vec() == bytes { Ok(message) } else { Err("the message has a field that is not supported here".to_owned()) }
}

/// A signed transaction.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) id: B256,
    pub(crate) bytes: Vec<u8>,
    pub(crate) signatures: Vec<Vec<u8>>,
    pub(crate) raw: Raw,
}

impl Signed {
    /// Decodes `protocol.Transaction`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let message = TransactionMessage::decode(bytes).map_err(|error| error.to_string())?;
        Self::new(message.raw_data.ok_or("the transaction has no raw data")?, message.signature)
    }

    /// Returns a transaction, given its signed bytes and the signatures.
    pub(crate) fn new(bytes: Vec<u8>, signatures: Vec<Vec<u8>>) -> Result<Self, String> {
        Ok(Self { id: B256::from_slice(&Sha256::digest(&bytes)), raw: Raw::read(&bytes)?, bytes, signatures })
    }

    /// Returns the size that is charged as bandwidth.
    pub(crate) fn size(&self) -> u64 {
        let parts =
            self.signatures.iter().fold(self.bytes.len().saturating_add(4), |sum, one| sum.saturating_add(one.len()).saturating_add(2));
        // The result takes up to 64 bytes.
        u64::try_from(parts).unwrap_or(u64::MAX).saturating_add(64)
    }

    /// Returns the transaction in a node's JSON format.
    pub(crate) fn json(&self, visible: bool) -> Value {
        json!({
            "visible": visible,
            "txID": hex::encode(self.id),
            "signature": self.signatures.iter().map(hex::encode).collect::<Vec<_>>(),
            "raw_data": self.raw.json(visible),
            "raw_data_hex": hex::encode(&self.bytes),
        })
    }
}

impl Raw {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let raw: RawMessage = decode(bytes)?;
        let [contract] = raw.contract.as_slice() else { return Err("contract size should be exactly 1".to_owned()) };
        let call: CallMessage = decode(contract.parameter.as_ref().map(|any| any.value.as_slice()).unwrap_or_default())?;
        Ok(Self {
            owner: address(&call.owner)?,
            to: address(&call.to)?,
            value: call.value,
            operation: match contract.kind {
                1 if call.data.is_empty() => Operation::Transfer,
                31 => Operation::Trigger(call.data),
                _ => return Err("this kind of contract is not supported here".to_owned()),
            },
            ref_block_bytes: raw.ref_block_bytes.try_into().map_err(|_| "the reference is not 2 bytes")?,
            ref_block_hash: raw.ref_block_hash.try_into().map_err(|_| "the reference is not 8 bytes")?,
            expiration: raw.expiration,
            timestamp: raw.timestamp,
            fee_limit: raw.fee_limit,
        })
    }

    /// Returns the bytes that are signed.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (kind, name) = self.kind();
        let data = if let Operation::Trigger(data) = &self.operation { data.clone() } else { Vec::new() };
        let call = CallMessage { owner: prefixed(self.owner), to: prefixed(self.to), value: self.value, data };
        let parameter = Any { type_url: format!("type.googleapis.com/protocol.{name}"), value: call.encode_to_vec() };
        let raw = RawMessage {
            ref_block_bytes: self.ref_block_bytes.to_vec(),
            ref_block_hash: self.ref_block_hash.to_vec(),
            expiration: self.expiration,
            contract: vec![ContractMessage { kind, parameter: Some(parameter), permission_id: 0 }],
            timestamp: self.timestamp,
            fee_limit: self.fee_limit,
            ..RawMessage::default()
        };
        raw.encode_to_vec()
    }

    const fn kind(&self) -> (u32, &'static str) {
        match self.operation {
            Operation::Transfer => (1, "TransferContract"),
            Operation::Trigger(_) => (31, "TriggerSmartContract"),
        }
    }

    pub(crate) fn json(&self, visible: bool) -> Value {
        let (_, name) = self.kind();
        let mut value = json!({"owner_address": show(self.owner, visible)});
        match &self.operation {
            Operation::Transfer => {
                put(&mut value, "to_address", json!(show(self.to, visible)));
                put(&mut value, "amount", json!(self.value));
            }
            Operation::Trigger(data) => {
                put(&mut value, "contract_address", json!(show(self.to, visible)));
                put(&mut value, "data", json!(hex::encode(data)));
                if self.value > 0 {
                    put(&mut value, "call_value", json!(self.value));
                }
            }
        }
        let type_url = format!("type.googleapis.com/protocol.{name}");
        let mut raw = json!({
            "contract": [{"parameter": {"value": value, "type_url": type_url}, "type": name}],
            "ref_block_bytes": hex::encode(self.ref_block_bytes),
            "ref_block_hash": hex::encode(self.ref_block_hash),
            "expiration": self.expiration,
        });
        if self.fee_limit > 0 {
            put(&mut raw, "fee_limit", json!(self.fee_limit));
        }
        if self.timestamp > 0 {
            put(&mut raw, "timestamp", json!(self.timestamp));
        }
        raw
    }

    pub(crate) fn amount(&self) -> U256 {
        U256::from(self.value)
    }
}

/// Returns an address with its prefix.
pub(crate) fn prefixed(address: Address) -> Vec<u8> {
    [&[PREFIX], address.as_slice()].concat()
}

/// Returns an address in a node's format.
pub(crate) fn show(address: Address, visible: bool) -> String {
    if visible { countersign_chains::address::tron_base58(address.into()) } else { hex::encode(prefixed(address)) }
}

fn address(bytes: &[u8]) -> Result<Address, String> {
    match bytes.split_first() {
        Some((&PREFIX, rest)) => Address::try_from(rest).map_err(|_| "Invalid address".to_owned()),
        _ => Err("Invalid address".to_owned()),
    }
}
