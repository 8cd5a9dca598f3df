//! Transactions as Tron's nodes encode them: the protobuf messages of `protocol.Transaction`, as far as payments and calls of contracts
//! need them.

use alloy_primitives::{Address, B256, U256};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::chains::evm::put;

/// The byte in front of an address.
const PREFIX: u8 = 0x41;

/// What a transaction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A payment of coins.
    Transfer,
    /// A call of a contract, with this data.
    Trigger(Vec<u8>),
}

/// The signed part of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) owner: Address,
    /// The receiver or the contract.
    pub(crate) to: Address,
    /// Sun.
    pub(crate) value: u64,
    pub(crate) operation: Operation,
    pub(crate) ref_block_bytes: [u8; 2],
    pub(crate) ref_block_hash: [u8; 8],
    /// Unix milliseconds.
    pub(crate) expiration: u64,
    pub(crate) timestamp: u64,
    /// The most sun that is burned for energy.
    pub(crate) fee_limit: u64,
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
    /// Reads `protocol.Transaction`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let (mut raw, mut signatures) = (None, Vec::new());
        for field in fields(bytes)? {
            match field {
                (1, Wire::Bytes(bytes)) => raw = Some(bytes.to_vec()),
                (2, Wire::Bytes(signature)) => signatures.push(signature.to_vec()),
                // The result, which nodes write.
                (5, _) => {}
                _ => return Err("the transaction has an unknown field".to_owned()),
            }
        }
        Self::new(raw.ok_or("the transaction has no raw data")?, signatures)
    }

    /// A transaction of its signed bytes.
    pub(crate) fn new(bytes: Vec<u8>, signatures: Vec<Vec<u8>>) -> Result<Self, String> {
        Ok(Self { id: B256::from_slice(&Sha256::digest(&bytes)), raw: Raw::read(&bytes)?, bytes, signatures })
    }

    /// The bytes of the whole, for which bandwidth is paid.
    pub(crate) fn size(&self) -> u64 {
        let parts =
            self.signatures.iter().fold(self.bytes.len().saturating_add(4), |sum, one| sum.saturating_add(one.len()).saturating_add(2));
        // The result takes up to 64 bytes.
        u64::try_from(parts).unwrap_or(u64::MAX).saturating_add(64)
    }

    /// As nodes show it.
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
        let mut raw = Self {
            owner: Address::ZERO,
            to: Address::ZERO,
            value: 0,
            operation: Operation::Transfer,
            ref_block_bytes: [0; 2],
            ref_block_hash: [0; 8],
            expiration: 0,
            timestamp: 0,
            fee_limit: 0,
        };
        let mut contracts = Vec::new();
        for field in fields(bytes)? {
            match field {
                (1, Wire::Bytes(bytes)) => raw.ref_block_bytes = bytes.try_into().map_err(|_| "the reference is not 2 bytes")?,
                (4, Wire::Bytes(bytes)) => raw.ref_block_hash = bytes.try_into().map_err(|_| "the reference is not 8 bytes")?,
                (8, Wire::Number(number)) => raw.expiration = number,
                (11, Wire::Bytes(bytes)) => contracts.push(bytes),
                (14, Wire::Number(number)) => raw.timestamp = number,
                (18, Wire::Number(number)) => raw.fee_limit = number,
                // A reference by number, and a memo.
                (3 | 10, _) => {}
                _ => return Err("the raw data has an unknown field".to_owned()),
            }
        }
        let [contract] = contracts.as_slice() else { return Err("contract size should be exactly 1".to_owned()) };
        let (mut kind, mut value) = (0, Vec::new());
        for field in fields(contract)? {
            match field {
                (1, Wire::Number(number)) => kind = number,
                (2, Wire::Bytes(any)) => {
                    for field in fields(any)? {
                        if let (2, Wire::Bytes(bytes)) = field {
                            value = bytes.to_vec();
                        }
                    }
                }
                _ => {}
            }
        }
        if !matches!(kind, 1 | 31) {
            return Err("this kind of contract is not supported here".to_owned());
        }
        let mut data = Vec::new();
        for field in fields(&value)? {
            match (kind, field) {
                (_, (1, Wire::Bytes(bytes))) => raw.owner = address(bytes)?,
                (_, (2, Wire::Bytes(bytes))) => raw.to = address(bytes)?,
                (_, (3, Wire::Number(number))) => raw.value = number,
                (31, (4, Wire::Bytes(bytes))) => data = bytes.to_vec(),
                _ => return Err("the contract has a field that is not supported here".to_owned()),
            }
        }
        if kind == 31 {
            raw.operation = Operation::Trigger(data);
        }
        Ok(raw)
    }

    /// The bytes that are signed.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut value = Vec::new();
        put_bytes(&mut value, 1, &prefixed(self.owner));
        put_bytes(&mut value, 2, &prefixed(self.to));
        put_number(&mut value, 3, self.value);
        let (kind, name) = self.kind();
        if let Operation::Trigger(data) = &self.operation {
            put_bytes(&mut value, 4, data);
        }
        let mut any = Vec::new();
        put_bytes(&mut any, 1, format!("type.googleapis.com/protocol.{name}").as_bytes());
        put_bytes(&mut any, 2, &value);
        let mut contract = Vec::new();
        put_number(&mut contract, 1, kind);
        put_bytes(&mut contract, 2, &any);
        let mut raw = Vec::new();
        put_bytes(&mut raw, 1, &self.ref_block_bytes);
        put_bytes(&mut raw, 4, &self.ref_block_hash);
        put_number(&mut raw, 8, self.expiration);
        put_bytes(&mut raw, 11, &contract);
        put_number(&mut raw, 14, self.timestamp);
        put_number(&mut raw, 18, self.fee_limit);
        raw
    }

    const fn kind(&self) -> (u64, &'static str) {
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

/// An address with its prefix.
pub(crate) fn prefixed(address: Address) -> Vec<u8> {
    [&[PREFIX], address.as_slice()].concat()
}

/// An address as nodes show it.
pub(crate) fn show(address: Address, visible: bool) -> String {
    if visible { countersign_chains::address::tron_base58(address.into()) } else { hex::encode(prefixed(address)) }
}

fn address(bytes: &[u8]) -> Result<Address, String> {
    match bytes.split_first() {
        Some((&PREFIX, rest)) => Address::try_from(rest).map_err(|_| "Invalid address".to_owned()),
        _ => Err("Invalid address".to_owned()),
    }
}

// ---- protobuf

/// The value of a field.
enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Wire<'_>)>, String> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).unwrap_or(usize::MAX);
                let (value, rest) = bytes.split_at_checked(length).ok_or("a field of the message is truncated")?;
                bytes = rest;
                Wire::Bytes(value)
            }
            _ => return Err("the message has a field of an unknown type".to_owned()),
        };
        all.push((key >> 3, value));
    }
    Ok(all)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for place in 0..10_u32 {
        let (byte, rest) = bytes.split_first().ok_or("a number of the message is truncated")?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        number |= bits.checked_shl(place.saturating_mul(7)).unwrap_or_default();
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number of the message is too long".to_owned())
}

fn put_varint(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    to.push(u8::try_from(number).unwrap_or_default());
}

/// Fields that are zero are left out.
pub(crate) fn put_number(to: &mut Vec<u8>, tag: u64, number: u64) {
    if number > 0 {
        put_varint(to, tag << 3);
        put_varint(to, number);
    }
}

/// Fields that are empty are left out.
pub(crate) fn put_bytes(to: &mut Vec<u8>, tag: u64, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_varint(to, tag << 3 | 2);
        put_varint(to, u64::try_from(bytes.len()).unwrap_or_default());
        to.extend_from_slice(bytes);
    }
}
