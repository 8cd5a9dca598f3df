//! Parsers for the parameters of JSON-RPC calls.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256};
use countersign_proofs_evm::{Simulation, UnsignedCall};
use serde_json::{Map, Value};

use super::error;
use crate::chains::rpc::Fault;

/// A reference to a block in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Latest,
    Safe,
    Finalized,
    Number(u64),
    Hash(B256),
}

/// The parameters of a call, by position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params<'v>(pub(crate) &'v [Value]);

impl<'v> Params<'v> {
    pub(crate) fn get(self, index: usize) -> Option<&'v Value> {
        self.0.get(index).filter(|value| !value.is_null())
    }

    pub(crate) fn read<R>(self, index: usize, read: impl FnOnce(&Value) -> Result<R, String>) -> Result<R, Fault> {
        let value = self.get(index).ok_or_else(|| error::missing(index))?;
        read(value).map_err(|why| error::invalid(index, &why))
    }

    pub(crate) fn optional<R>(self, index: usize, read: impl FnOnce(&Value) -> Result<R, String>) -> Result<Option<R>, Fault> {
        self.get(index).map(|_| self.read(index, read)).transpose()
    }

    /// Returns the block at a position. An absent parameter means the newest block.
    pub(crate) fn block(self, index: usize) -> Result<Name, Fault> {
        Ok(self.optional(index, name)?.unwrap_or(Name::Latest))
    }
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "json: cannot unmarshal non-string".to_owned())
}

/// Parses bytes in hex with `0x`.
pub(crate) fn bytes(value: &Value) -> Result<Bytes, String> {
    let digits = text(value)?.strip_prefix("0x").ok_or("hex string without 0x prefix")?;
    hex::decode(digits).map(Bytes::from).map_err(|_| "invalid hex string".to_owned())
}

fn array<const N: usize>(value: &Value) -> Result<[u8; N], String> {
    let bytes = bytes(value)?;
    bytes.as_ref().try_into().map_err(|_| format!("hex string has length {}, want {}", bytes.len().saturating_mul(2), N.saturating_mul(2)))
}

pub(crate) fn address(value: &Value) -> Result<Address, String> {
    array(value).map(Address::from)
}

pub(crate) fn hash(value: &Value) -> Result<B256, String> {
    array(value).map(B256::from)
}

/// Parses a hex number without leading zeros.
pub(crate) fn quantity(value: &Value) -> Result<U256, String> {
    let digits = text(value)?.strip_prefix("0x").ok_or("hex string without 0x prefix")?;
    match digits {
        "" => Err("hex string \"0x\"".to_owned()),
        _ if digits.len() > 1 && digits.starts_with('0') => Err("hex number with leading zero digits".to_owned()),
        _ if digits.len() > 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => Err("invalid hex string".to_owned()),
        _ => U256::from_str_radix(digits, 16).map_err(|_| "invalid hex string".to_owned()),
    }
}

pub(crate) fn small(value: &Value) -> Result<u64, String> {
    // Some calls also accept plain numbers.
    match value.as_u64() {
        Some(number) => Ok(number),
        None => u64::try_from(quantity(value)?).map_err(|_| "hex number > 64 bits".to_owned()),
    }
}

/// Parses a storage slot: a number, or 32 bytes.
pub(crate) fn slot(value: &Value) -> Result<U256, String> {
    let digits = text(value)?.strip_prefix("0x").ok_or("hex string without 0x prefix")?;
    if digits.is_empty() || digits.len() > 64 {
        return Err("unable to decode storage key: hex string too long or empty".to_owned());
    }
    U256::from_str_radix(digits, 16).map_err(|_| "unable to decode storage key: invalid hex string".to_owned())
}

/// Parses a block tag, number or hash (EIP-1898).
pub(crate) fn name(value: &Value) -> Result<Name, String> {
    if let Some(members) = value.as_object() {
        return match (members.get("blockHash"), members.get("blockNumber")) {
            (Some(hash_of), None) => hash(hash_of).map(Name::Hash),
            (None, Some(number)) => name(number),
            (Some(_), Some(_)) => Err("cannot specify both BlockHash and BlockNumber, choose one or the other".to_owned()),
            (None, None) => Err("invalid arguments; neither block nor hash specified".to_owned()),
        };
    }
    match text(value)? {
        // Pending transactions are not executed before their block, so the pending state is that of the newest block.
        "latest" | "pending" => Ok(Name::Latest),
        "safe" => Ok(Name::Safe),
        "finalized" => Ok(Name::Finalized),
        "earliest" => Ok(Name::Number(0)),
        digits if digits.len() == 66 => hash(value).map(Name::Hash),
        _ => small(value).map(Name::Number),
    }
}

fn member<R>(members: &Map<String, Value>, name: &str, read: impl FnOnce(&Value) -> Result<R, String>) -> Result<Option<R>, String> {
    let value = members.get(name).filter(|value| !value.is_null());
    value.map(|value| read(value).map_err(|why| format!("{name}: {why}"))).transpose()
}

pub(crate) fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| "json: cannot unmarshal non-object".to_owned())
}

/// Parses a transaction in the format of `eth_call`.
pub(crate) fn call(value: &Value) -> Result<UnsignedCall, String> {
    let members = object(value)?;
    let (data, input) = (member(members, "data", bytes)?, member(members, "input", bytes)?);
    if let (Some(data), Some(input)) = (&data, &input)
        && data != input
    {
        return Err("both \"data\" and \"input\" are set and not equal. Please use \"input\" to pass transaction call data".to_owned());
    }
    Ok(UnsignedCall {
        from: member(members, "from", address)?.unwrap_or_default(),
        to: member(members, "to", address)?,
        data: input.or(data).unwrap_or_default(),
        value: member(members, "value", quantity)?.unwrap_or_default(),
        gas: member(members, "gas", small)?,
    })
}

/// Applies state overrides.
pub(crate) fn override_state(simulation: &mut Simulation<'_>, overrides: &Value) -> Result<(), String> {
    for (account, changes) in object(overrides)? {
        let account = address(&Value::String(account.clone()))?;
        let changes = object(changes)?;
        let (balance, nonce) = (member(changes, "balance", quantity)?, member(changes, "nonce", small)?);
        simulation.change(account, |info| {
            info.balance = balance.unwrap_or(info.balance);
            info.nonce = nonce.unwrap_or(info.nonce);
        });
        if let Some(code) = member(changes, "code", bytes)? {
            simulation.set_code(account, code);
        }
        let slots = |value: &Value| -> Result<BTreeMap<U256, U256>, String> {
            let pair = |(key, word): (&String, &Value)| Ok((slot(&Value::String(key.clone()))?, slot(word)?));
            object(value)?.iter().map(pair).collect()
        };
        match (member(changes, "state", slots)?, member(changes, "stateDiff", slots)?) {
            (Some(_), Some(_)) => return Err(format!("account {account} has both 'state' and 'stateDiff'")),
            (Some(all), None) => simulation.set_storage(account, all),
            (None, some) => some.into_iter().flatten().for_each(|(slot, value)| simulation.set_slot(account, slot, value)),
        }
    }
    Ok(())
}

/// A filter for logs.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) block: Option<B256>,
    pub(crate) from: Option<Name>,
    pub(crate) to: Option<Name>,
    addresses: Vec<Address>,
    /// The accepted topics for each position. An empty list accepts any.
    topics: Vec<Vec<B256>>,
}

impl Filter {
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        let members = object(value)?;
        let block = member(members, "blockHash", hash)?;
        let (from, to) = (member(members, "fromBlock", name)?, member(members, "toBlock", name)?);
        if block.is_some() && (from.is_some() || to.is_some()) {
            return Err("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other".to_owned());
        }
        let addresses = member(members, "address", |value| some_of(value, address))?.unwrap_or_default();
        let topics = |value: &Value| {
            let places = value.as_array().filter(|places| places.len() <= 4).ok_or("exceed max topics")?;
            let place = |value: &Value| if value.is_null() { Ok(Vec::new()) } else { some_of(value, hash) };
            places.iter().map(place).collect()
        };
        Ok(Self { block, from, to, addresses, topics: member(members, "topics", topics)?.unwrap_or_default() })
    }

    pub(crate) fn wants(&self, log: &alloy_primitives::Log) -> bool {
        let topics = log.topics();
        let place = |(index, wanted): (usize, &Vec<B256>)| match topics.get(index) {
            Some(topic) => wanted.is_empty() || wanted.contains(topic),
            None => false,
        };
        (self.addresses.is_empty() || self.addresses.contains(&log.address)) && self.topics.iter().enumerate().all(place)
    }
}

fn some_of<R>(value: &Value, read: impl Fn(&Value) -> Result<R, String>) -> Result<Vec<R>, String> {
    match value.as_array() {
        Some(all) if all.len() > 1_000 => Err("exceed max addresses or topics per search position".to_owned()),
        Some(all) => all.iter().map(read).collect(),
        None => Ok(vec![read(value)?]),
    }
}
