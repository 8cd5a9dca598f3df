//! Parsers for the parameters of calls, with a node's errors for invalid ones.

use serde_json::{Map, Value, json};
use solana_address::Address;
use solana_signature::Signature;

use crate::chains::rpc::Fault;
use crate::chains::solana::bank::{Bank, Commitment};

/// The parameters of a call.
#[derive(Debug, Default)]
pub(super) struct Params<'a>(pub(super) &'a [Value]);

impl<'a> Params<'a> {
    pub(super) fn get(&self, index: usize) -> Option<&'a Value> {
        self.0.get(index).filter(|value| !value.is_null())
    }

    fn need(&self, index: usize) -> Result<&'a Value, Fault> {
        let missing = || Fault::params(format!("`params` should have at least {} argument(s)", index.saturating_add(1)));
        self.0.get(index).ok_or_else(missing)
    }

    pub(super) fn text(&self, index: usize) -> Result<&'a str, Fault> {
        let value = self.need(index)?;
        value.as_str().ok_or_else(|| wrong_type(value, "a string"))
    }

    pub(super) fn number(&self, index: usize) -> Result<u64, Fault> {
        let value = self.need(index)?;
        value.as_u64().ok_or_else(|| wrong_type(value, "u64"))
    }

    pub(super) fn address(&self, index: usize) -> Result<Address, Fault> {
        parse_address(self.text(index)?)
    }

    pub(super) fn signature(&self, index: usize) -> Result<Signature, Fault> {
        parse_signature(self.text(index)?)
    }

    /// Returns the texts in a list of at most `max`.
    pub(super) fn texts(&self, index: usize, max: usize) -> Result<Vec<&'a str>, Fault> {
        let value = self.need(index)?;
        let list = value.as_array().ok_or_else(|| wrong_type(value, "a sequence"))?;
        if list.len() > max {
            return Err(Fault::params(format!("Too many inputs provided; max {max}")));
        }
        list.iter().map(|text| text.as_str().ok_or_else(|| wrong_type(text, "a string"))).collect()
    }

    /// Returns the members of an optional object.
    pub(super) fn config(&self, index: usize) -> Result<Config<'a>, Fault> {
        match self.get(index) {
            None => Ok(Config(None)),
            Some(Value::Object(members)) => Ok(Config(Some(members))),
            Some(other) => Err(wrong_type(other, "a configuration")),
        }
    }
}

/// The optional members of the last parameter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Config<'a>(Option<&'a Map<String, Value>>);

impl<'a> Config<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| wrong_type(value, "a string"))).transpose()
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Fault> {
        self.get(name).map(|value| value.as_u64().ok_or_else(|| wrong_type(value, "u64"))).transpose()
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        self.get(name).map_or(Ok(false), |value| value.as_bool().ok_or_else(|| wrong_type(value, "a boolean")))
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, Fault> {
        let read = |value: &'a Value| value.as_object().ok_or_else(|| wrong_type(value, "a map"));
        Ok(self.get(name).map(read).transpose()?.map(|members| Self(Some(members))))
    }

    pub(super) fn commitment(&self, name: &str) -> Result<Commitment, Fault> {
        let Some(text) = self.text(name)? else { return Ok(Commitment::Finalized) };
        Commitment::named(text).ok_or_else(|| {
            Fault::params(format!(
                "Invalid params: unknown variant `{}`, expected one of `processed`, `confirmed`, `finalized`.",
                text.chars().take(64).collect::<String>()
            ))
        })
    }

    /// Returns the slot at which a call wants to read.
    pub(super) fn slot(&self, bank: &Bank) -> Result<u64, Fault> {
        let slot = bank.slot(self.commitment("commitment")?);
        self.check_slot(slot)?;
        Ok(slot)
    }

    /// Returns the commitment for a method that reads history, which must be at least `confirmed`.
    pub(super) fn history(&self) -> Result<Commitment, Fault> {
        match self.commitment("commitment")? {
            Commitment::Processed => Err(Fault::params("Method does not support commitment below `confirmed`")),
            other => Ok(other),
        }
    }

    pub(super) fn check_slot(&self, slot: u64) -> Result<(), Fault> {
        if self.number("minContextSlot")?.is_none_or(|min| min <= slot) {
            return Ok(());
        }
        Err(Fault::new(-32_016, "Minimum context slot has not been reached").with_data(json!({"contextSlot": slot})))
    }
}

fn wrong_type(value: &Value, expected: &str) -> Fault {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "sequence",
        Value::Object(_) => "map",
    };
    Fault::params(format!("Invalid params: invalid type: {kind}, expected {expected}."))
}

/// Decodes base58 of a fixed length. Longer text is rejected first, because decoding time grows with the square of
/// the length.
fn base58<const N: usize>(text: &str) -> Result<[u8; N], Fault> {
    let wrong_size = || Fault::params("Invalid param: WrongSize");
    if text.len() > N.saturating_mul(2) {
        return Err(wrong_size());
    }
    let bytes = bs58::decode(text).into_vec().map_err(|_| Fault::params("Invalid param: Invalid"))?;
    bytes.try_into().map_err(|_| wrong_size())
}

pub(super) fn parse_address(text: &str) -> Result<Address, Fault> {
    base58::<32>(text).map(Address::from)
}

pub(super) fn parse_signature(text: &str) -> Result<Signature, Fault> {
    base58::<64>(text).map(Signature::from)
}
