//! Recognizes the generation of a contract from the interface of its class.

use countersign_core::StarknetGeneration;
use countersign_core::generation::{StarknetAccess, StarknetSecret};
use countersign_core::json::{self, Value};

use super::Unclear;

const ADDRESS: &str = "core::starknet::contract_address::ContractAddress";
const FELT: &str = "core::felt252";
const U128: &str = "core::integer::u128";
const U256: &str = "core::integer::u256";
const FELTS: &str = "core::array::Array::<core::felt252>";
const EIGHT_WORDS: &str = "[core::integer::u32; 8]";
const TWO_WORDS: &str = "[core::integer::u128; 2]";
const WORDS: &str = "core::array::Array::<core::integer::u32>";

/// The members of the struct that `get_order` returns.
const ORDER: [(&str, &str); 6] =
    [("fulfilled_at", U128), ("initiator", ADDRESS), ("redeemer", ADDRESS), ("initiated_at", U128), ("timelock", U128), ("amount", U256)];

/// Returns the generation whose interface a class has. `abi` is the JSON text in the member `abi` of the class.
///
/// The interface of July 2025 is not known. A contract of that generation may look like one of February 2025. Before you pin the
/// result, check that the swap id of an order record follows the formula of that generation.
///
/// # Errors
///
/// [`Unclear`] if the interface is not that of a known generation.
pub fn generation_of_abi(abi: &str) -> Result<&'static StarknetGeneration, Unclear> {
    let value = json::parse(abi.as_bytes()).map_err(|_| Unclear("the interface of the class is not JSON"))?;
    let Value::Array(entries) = &value else { return Err(Unclear("the interface of the class is not a list")) };
    let abi = Abi { entries };
    let unknown = Unclear("the interface of the class is not that of a known generation");
    let hash = abi.inputs("initiate").and_then(|inputs| inputs.last().copied()).ok_or(unknown)?;
    let secret = abi.inputs("redeem").and_then(|inputs| inputs.last().copied()).ok_or(unknown)?;
    let has_getter = abi.inputs("get_order").is_some();
    let access = if has_getter { StarknetAccess::Getter } else { StarknetAccess::Storage };
    let has_types = |generation: &StarknetGeneration| {
        let own_hash = if generation.hash_words == 2 { TWO_WORDS } else { EIGHT_WORDS };
        let own_secret = generation.secret.map(|form| if form == StarknetSecret::Array { WORDS } else { EIGHT_WORDS });
        (own_hash, own_secret, generation.access) == (hash, Some(secret), Some(access))
    };
    let generation = StarknetGeneration::ALL.iter().copied().find(|generation| has_types(generation)).ok_or(unknown)?;
    let terms = [ADDRESS, U128, U256, hash];
    let on_behalf = [&[ADDRESS], &terms[..]].concat();
    let mut expected = vec![
        ("initiate", terms.to_vec()),
        ("initiate_on_behalf", on_behalf.clone()),
        ("initiate_with_signature", [&on_behalf[..], &[FELTS]].concat()),
        ("redeem", vec![FELT, secret]),
        ("refund", vec![FELT]),
        ("instant_refund", vec![FELT, FELTS]),
        ("token", Vec::new()),
    ];
    let with_data = [
        ("initiate_with_destination_data", [&terms[..], &[FELTS]].concat()),
        ("initiate_on_behalf_with_destination_data", [&on_behalf[..], &[FELTS]].concat()),
    ];
    if has_getter {
        expected.push(("get_order", vec![FELT]));
    }
    if generation.takes_destination_data {
        expected.extend(with_data);
    } else if with_data.iter().any(|(name, _)| abi.inputs(name).is_some()) {
        return Err(unknown);
    }
    if expected.iter().any(|(name, inputs)| abi.inputs(name).as_ref() != Some(inputs)) {
        return Err(unknown);
    }
    if has_getter && !abi.returns_order() {
        return Err(Unclear("the class stores orders in an unknown layout"));
    }
    Ok(generation)
}

/// The entries of an ABI. Functions are listed on their own, or inside the interfaces that the contract implements.
struct Abi<'v> {
    entries: &'v [Value<'v>],
}

impl<'v> Abi<'v> {
    /// Returns the function or struct with this name; `None` unless there is exactly one.
    fn entry(&self, kind: &str, name: &str) -> Option<&'v Value<'v>> {
        let nested = self.entries.iter().filter(|entry| is(entry, "interface")).flat_map(|entry| list(entry, "items"));
        let mut found = self.entries.iter().chain(nested).filter(|entry| is(entry, kind) && text(entry, "name") == Some(name));
        let entry = found.next()?;
        found.next().is_none().then_some(entry)
    }

    /// Returns the types of a function's arguments.
    fn inputs(&self, name: &str) -> Option<Vec<&'v str>> {
        list(self.entry("function", name)?, "inputs").iter().map(|input| text(input, "type")).collect()
    }

    /// Returns whether `get_order` returns the known struct of seven felts.
    fn returns_order(&self) -> bool {
        let Some([output]) = self.entry("function", "get_order").map(|function| list(function, "outputs")) else { return false };
        let members = text(output, "type").and_then(|name| self.entry("struct", name)).map(|order| list(order, "members"));
        members.unwrap_or_default().iter().map(|member| text(member, "name").zip(text(member, "type"))).eq(ORDER.map(Some))
    }
}

fn is(entry: &Value<'_>, kind: &str) -> bool {
    text(entry, "type") == Some(kind)
}

fn member<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    let Value::Object(members) = value else { return None };
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn text<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v str> {
    match member(value, name) {
        Some(Value::String(text)) => Some(text.as_ref()),
        _ => None,
    }
}

fn list<'v>(value: &'v Value<'v>, name: &str) -> &'v [Value<'v>] {
    match member(value, name) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}
