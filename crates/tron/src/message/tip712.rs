//! TIP-712 for any typed data: EIP-712 with Tron's addresses, token type and chain ids.
//!
//! Three things differ from EIP-712. Addresses may have any of Tron's forms, and hash as their 20 bytes. `trcToken` keeps its own
//! name in the type string, and its values hash as `uint256`. The domain contains the low 32 bits of the chain id. Typed data that
//! uses none of these has the same hash under both.
//!
//! General hashers coerce their input: `""` becomes zero, and surplus members are ignored. Two wallets can therefore hash the same
//! JSON differently. Here each form of a value has exactly one spelling, every declared type and member must be used, and anything
//! left over is refused.
//!
//! Specification: <https://github.com/tronprotocol/tips/blob/master/tip-712.md>

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use alloy_primitives::{B256, U256, keccak256};
use countersign_core::json::{Cursor, MAX_BYTES, Value};
use countersign_core::{Code, Refusal, number};
use countersign_evm_core::alloy_sol_types::Eip712Domain;
use countersign_evm_core::typed_data::Hashes;

use crate::address;

/// The most types that one message may declare. The limit bounds the work, because the hash of each type covers all types that it
/// contains.
const MAX_TYPES: usize = 256;
/// The longest name of a type or member in bytes, array brackets included.
const MAX_NAME: usize = 128;
/// Mask of the bits of the chain id that the domain contains.
const CHAIN_ID_BITS: u64 = 0xffff_ffff;
/// The members that a domain may have, in their order.
const DOMAIN: [DomainMember; 5] =
    [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address"), ("salt", "bytes32")];
/// The name of the domain's own type.
const DOMAIN_TYPE: &str = "EIP712Domain";

/// Hashes typed data: `{"types", "domain", "primaryType", "message"}`.
///
/// `types` may omit `EIP712Domain`. If it is present, it must list exactly the members of `domain`. Numbers are JSON integers,
/// decimal strings or `0x` hex strings; negative numbers cannot be in hex.
///
/// ```
/// use countersign::json::{self, Cursor};
///
/// let typed_data = json::parse(
///     br#"{
///         "types": { "Payment": [
///             { "name": "to", "type": "address" },
///             { "name": "token", "type": "trcToken" }
///         ] },
///         "primaryType": "Payment",
///         "domain": { "chainId": 728126428 },
///         "message": { "to": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "token": 1002000 }
///     }"#,
/// )?;
/// let hashes = countersign::tron::message::hash(Cursor::root(&typed_data, ""))?;
/// println!("sign {}", hashes.digest);
/// # Ok::<(), countersign::Refusal>(())
/// ```
///
/// # Errors
///
/// [`Code::TypedDataTypes`] for types that are unknown, unused, declared twice or not valid type names;
/// [`Code::TypedDataPrimaryType`]; [`Code::TypedDataDomain`] for an unknown member of the domain; [`Code::UnexpectedField`] or
/// [`Code::MissingField`] if message and types have different members; [`Code::NumberTooLarge`] for a number outside its type's
/// range; or the code of a malformed value.
pub fn hash(typed_data: Cursor<'_, '_>) -> Result<Hashes, Refusal> {
    let members = typed_data.object()?;
    members.only(&["domain", "message", "primaryType", "types"])?;
    let types_node = members.need("types")?;
    let types = Types::read(&types_node)?;
    let (domain, domain_members) = read_domain(members.need("domain")?)?;
    types.check_domain(&domain_members, &types_node)?;
    let primary = members.need("primaryType")?;
    let (primary_name, _) = types
        .structs
        .get_key_value(primary.text()?)
        .filter(|(name, _)| **name != DOMAIN_TYPE)
        .ok_or_else(|| primary.refuse(Code::TypedDataPrimaryType).with_expected("one of the declared types"))?;
    let hashes = types.hashes(primary_name);
    if let Some(unused) = types.structs.keys().find(|name| **name != DOMAIN_TYPE && !hashes.contains_key(*name)) {
        return Err(types_node.at().key(unused).refuse(Code::TypedDataTypes).with_reason("the type is never used"));
    }
    let struct_hash = Hasher { types: &types, hashes }.structure(primary_name, &members.need("message")?)?;
    Ok(Hashes::new(domain.separator(), struct_hash))
}

/// Name and type of a member of the domain.
type DomainMember = (&'static str, &'static str);

/// Reads the domain. Also returns the members that it has.
fn read_domain(cursor: Cursor<'_, '_>) -> Result<(Eip712Domain, Vec<DomainMember>), Refusal> {
    let members = cursor.object()?;
    members
        .only(&DOMAIN.map(|(name, _)| name))
        .map_err(|refusal| refusal.with_code(Code::TypedDataDomain).with_reason("not a member of any domain"))?;
    let text = |key: &'static str| members.get(key).map(|cursor| cursor.text().map(|text| Cow::Owned(text.to_owned()))).transpose();
    let chain_id = members.get("chainId").map(|cursor| cursor.any_number().map(|id| id & U256::from(CHAIN_ID_BITS)));
    let contract = members.get("verifyingContract").map(|cursor| address::read_any(cursor).map(address::Address::bytes));
    let salt = members.get("salt").map(|cursor| cursor.hex_array::<32>().map(B256::from));
    let domain = Eip712Domain::new(text("name")?, text("version")?, chain_id.transpose()?, contract.transpose()?, salt.transpose()?);
    Ok((domain, DOMAIN.into_iter().filter(|(name, _)| members.get(name).is_some()).collect()))
}

/// A type without members or items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Address,
    Bool,
    Text,
    Bytes,
    /// `bytesN`, with the number of bytes.
    Fixed(usize),
    /// `uintN` or `trcToken`, with the number of bits.
    Unsigned(usize),
    /// `intN`, with the number of bits.
    Signed(usize),
}

impl Leaf {
    fn parse(name: &str) -> Option<Self> {
        // `parse` alone would accept `+8` and `08`.
        let width = |digits: &str| digits.parse::<usize>().ok().filter(|width| width.to_string() == digits);
        let bits = |digits: &str| width(digits).filter(|bits| (8..=256).contains(bits) && bits.is_multiple_of(8));
        match name {
            "address" => Some(Self::Address),
            "bool" => Some(Self::Bool),
            "string" => Some(Self::Text),
            "bytes" => Some(Self::Bytes),
            "trcToken" => Some(Self::Unsigned(256)),
            _ => match (name.strip_prefix("bytes"), name.strip_prefix("uint"), name.strip_prefix("int")) {
                (Some(digits), ..) => width(digits).filter(|bytes| (1..=32).contains(bytes)).map(Self::Fixed),
                (_, Some(digits), _) => bits(digits).map(Self::Unsigned),
                (.., Some(digits)) => bits(digits).map(Self::Signed),
                _ => None,
            },
        }
    }

    /// Returns the 32 bytes that encode a value in its struct.
    fn word(self, cursor: &Cursor<'_, '_>) -> Result<B256, Refusal> {
        let right_aligned = |number: U256| B256::from(number.to_be_bytes());
        Ok(match self {
            Self::Address => address::read_any(*cursor)?.bytes().into_word(),
            Self::Bool => right_aligned(U256::from(cursor.bool()?)),
            Self::Text => keccak256(cursor.text()?),
            Self::Bytes => keccak256(cursor.hex_bytes(MAX_BYTES)?),
            Self::Fixed(len) => {
                let bytes = cursor.hex_bytes(len)?;
                if bytes.len() != len {
                    return Err(cursor.refuse(Code::HexLength).with_expected(format!("{len} bytes")));
                }
                B256::right_padding_from(&bytes)
            }
            Self::Unsigned(bits) => {
                let number = cursor.any_number()?;
                right_aligned(if number.bit_len() <= bits { number } else { return Err(cursor.refuse(Code::NumberTooLarge)) })
            }
            Self::Signed(bits) => {
                let (negative, size) = signed(cursor)?;
                // Two's complement: the lowest number is one further from zero than the highest.
                let reach = if negative { size.saturating_sub(U256::ONE) } else { size };
                if reach.bit_len() >= bits {
                    return Err(cursor.refuse(Code::NumberTooLarge));
                }
                right_aligned(if negative { size.wrapping_neg() } else { size })
            }
        })
    }
}

/// Reads whether a number is negative, and its absolute value.
fn signed(cursor: &Cursor<'_, '_>) -> Result<(bool, U256), Refusal> {
    let read = match cursor.value() {
        Value::Number(text) => text.strip_prefix('-').map(number::integer),
        Value::String(text) => text.strip_prefix('-').map(number::decimal),
        _ => None,
    };
    match read {
        Some(Ok(size)) if size.is_zero() => Err(cursor.refuse(Code::IntegerNotExact)),
        Some(Ok(size)) => Ok((true, size)),
        Some(Err(error)) => Err(cursor.refuse(error)),
        None => cursor.any_number().map(|size| (false, size)),
    }
}

/// The type of a member.
#[derive(Debug)]
enum Kind<'t> {
    Leaf(Leaf),
    Struct(&'t str),
    /// An array, with its length if it is fixed.
    List(Box<Self>, Option<usize>),
}

impl<'t> Kind<'t> {
    /// Parses a type; `None` for text that is not a type. Does not check whether a struct is declared.
    fn parse(text: &'t str) -> Option<Self> {
        if let Some((items, len)) = text.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
            let len = match len {
                "" => None,
                digits => Some(digits.parse::<usize>().ok().filter(|len| len.to_string() == digits)?),
            };
            return Some(Self::List(Box::new(Self::parse(items)?), len));
        }
        match Leaf::parse(text) {
            Some(leaf) => Some(Self::Leaf(leaf)),
            None => is_name(text).then_some(Self::Struct(text)),
        }
    }

    fn structure(&self) -> Option<&'t str> {
        match self {
            Self::Leaf(_) => None,
            Self::Struct(name) => Some(name),
            Self::List(items, _) => items.structure(),
        }
    }
}

/// Returns whether a text is an identifier.
fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
    text.bytes().next().is_some_and(letter) && text.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
}

#[derive(Debug)]
struct Member<'t> {
    name: &'t str,
    /// The type as it was written, which is how it appears in the type string.
    written: &'t str,
    kind: Kind<'t>,
}

/// The declared types.
struct Types<'t> {
    structs: BTreeMap<&'t str, Vec<Member<'t>>>,
}

impl<'t> Types<'t> {
    fn read(cursor: &Cursor<'_, 't>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let mut structs = BTreeMap::new();
        for (name, fields) in members.keys().zip(members.iter()) {
            let refuse = |detail: &'static str| fields.at().refuse(Code::TypedDataTypes).with_reason(detail);
            if structs.len() == MAX_TYPES {
                return Err(refuse("too many types"));
            }
            if name.len() > MAX_NAME || !is_name(name) || Leaf::parse(name).is_some() {
                return Err(refuse("not a valid name for a type"));
            }
            structs.insert(name, read_members(&fields)?);
        }
        for (name, fields) in &structs {
            if let Some(unknown) = fields.iter().filter_map(|field| field.kind.structure()).find(|kind| !structs.contains_key(kind)) {
                return Err(cursor
                    .at()
                    .key(name)
                    .refuse(Code::TypedDataTypes)
                    .with_reason("a member has an undeclared type")
                    .with_actual(unknown));
            }
        }
        Ok(Self { structs })
    }

    /// Requires that the domain's type, if it is declared, lists exactly the members of the domain.
    fn check_domain(&self, present: &[DomainMember], cursor: &Cursor<'_, '_>) -> Result<(), Refusal> {
        let Some(declared) = self.structs.get(DOMAIN_TYPE) else { return Ok(()) };
        if declared.iter().map(|member| (member.name, member.written)).eq(present.iter().copied()) {
            return Ok(());
        }
        let refusal =
            cursor.at().key(DOMAIN_TYPE).refuse(Code::TypedDataTypes).with_reason("the declared members are not those of the domain");
        Err(refusal.with_expected(present.iter().map(|(name, kind)| format!("{kind} {name}")).collect::<Vec<_>>().join(",")))
    }

    /// Returns every struct that `name` contains, directly or not, including itself.
    fn contained(&self, name: &'t str) -> BTreeSet<&'t str> {
        let mut found = BTreeSet::new();
        found.insert(name);
        let mut rest = vec![name];
        while let Some(name) = rest.pop() {
            let fields = self.structs.get(name).into_iter().flatten();
            rest.extend(fields.filter_map(|field| field.kind.structure()).filter(|kind| found.insert(kind)));
        }
        found
    }

    /// Returns the type string: the struct itself, then the structs that it contains, sorted by name.
    fn encode(&self, name: &'t str) -> String {
        let mut text = String::new();
        let mut others = self.contained(name);
        others.remove(name);
        for name in std::iter::once(name).chain(others) {
            let fields = self.structs.get(name).into_iter().flatten();
            let fields: Vec<_> = fields.map(|field| format!("{} {}", field.written, field.name)).collect();
            // Writing to a String cannot fail.
            let _ = write!(text, "{name}({})", fields.join(","));
        }
        text
    }

    /// Returns the type hash of every struct that `primary` contains, including itself.
    fn hashes(&self, primary: &'t str) -> BTreeMap<&'t str, B256> {
        let mut hashes = BTreeMap::new();
        hashes.extend(self.contained(primary).into_iter().map(|name| (name, keccak256(self.encode(name)))));
        hashes
    }
}

fn read_members<'t>(fields: &Cursor<'_, 't>) -> Result<Vec<Member<'t>>, Refusal> {
    let mut seen = BTreeSet::new();
    let member = |cursor: Cursor<'_, 't>| {
        let members = cursor.object()?;
        members.only(&["name", "type"]).map_err(|refusal| refusal.with_code(Code::TypedDataTypes))?;
        let (name, kind) = (members.need("name")?, members.need("type")?);
        let (written, refuse) = (kind.text()?, |cursor: &Cursor<'_, '_>| cursor.refuse(Code::TypedDataTypes));
        if name.text()?.len() > MAX_NAME || !is_name(name.text()?) || !seen.insert(name.text()?) {
            return Err(refuse(&name).with_reason("not a valid name for a member, or a name used twice"));
        }
        let parsed = if written.len() > MAX_NAME { None } else { Kind::parse(written) };
        let parsed = parsed.ok_or_else(|| refuse(&kind).with_reason("not a valid type"))?;
        Ok(Member { name: name.text()?, written, kind: parsed })
    };
    fields.array()?.map(member).collect()
}

struct Hasher<'h, 't> {
    types: &'h Types<'t>,
    hashes: BTreeMap<&'t str, B256>,
}

impl<'t> Hasher<'_, 't> {
    fn structure(&self, name: &'t str, cursor: &Cursor<'_, '_>) -> Result<B256, Refusal> {
        let members = cursor.object()?;
        let fields = self.types.structs.get(name).map(Vec::as_slice).unwrap_or_default();
        members.only(&fields.iter().map(|field| field.name).collect::<Vec<_>>())?;
        let mut words = self.hashes.get(name).copied().unwrap_or_default().to_vec();
        for field in fields {
            words.extend(self.word(&field.kind, &members.need(field.name)?)?);
        }
        Ok(keccak256(words))
    }

    /// Returns the 32 bytes that encode a value in its struct.
    fn word(&self, kind: &Kind<'t>, cursor: &Cursor<'_, '_>) -> Result<B256, Refusal> {
        match kind {
            Kind::Leaf(leaf) => leaf.word(cursor),
            Kind::Struct(name) => self.structure(name, cursor),
            Kind::List(kind, len) => {
                let items = cursor.array()?;
                if len.is_some_and(|len| len != items.len()) {
                    let got = items.len();
                    return Err(cursor
                        .at()
                        .refuse(Code::WrongType)
                        .with_expected(format!("{} items", len.unwrap_or_default()))
                        .with_actual(got));
                }
                let mut words = Vec::new();
                for item in items {
                    words.extend(self.word(kind, &item)?);
                }
                Ok(keccak256(words))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_core::json;

    fn hashed(text: &str) -> Result<Hashes, (Code, String)> {
        let value = json::parse(text.as_bytes()).unwrap();
        hash(Cursor::root(&value, "")).map_err(|refusal| (refusal.code(), refusal.location().to_owned()))
    }

    fn message(types: &str, message: &str) -> String {
        format!(r#"{{"types":{types},"primaryType":"M","domain":{{}},"message":{message}}}"#)
    }

    fn one(kind: &str, value: &str) -> Result<Hashes, (Code, String)> {
        hashed(&message(&format!(r#"{{"M":[{{"name":"x","type":"{kind}"}}]}}"#), &format!(r#"{{"x":{value}}}"#)))
    }

    #[test]
    fn trc_token_keeps_its_name_and_hashes_as_a_number() {
        let token = one("trcToken", "1000001").unwrap();
        let words = [keccak256("M(trcToken x)").as_slice(), &U256::from(1_000_001).to_be_bytes::<32>()].concat();
        assert_eq!(token.struct_hash, keccak256(words));
        assert_ne!(token, one("uint256", "1000001").unwrap());
        assert_eq!(one("trcToken[2]", "[1,\"0x2\"]"), one("trcToken[2]", "[\"1\",2]"));
        assert!(one("trcToken", "-1").is_err());
    }

    #[test]
    fn every_spelling_of_an_address_hashes_alike() {
        let base58 = one("address", "\"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t\"").unwrap();
        for form in [
            "41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
            "0x41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
            "0xa614f803b6fd780986a42c78ec9c7f77e6ded13c",
        ] {
            assert_eq!(one("address", &format!("\"{form}\"")), Ok(base58), "{form}");
        }
    }

    #[test]
    fn the_domain_carries_the_low_half_of_a_chain_id() {
        let with =
            |id: &str| hashed(&format!(r#"{{"types":{{"M":[]}},"primaryType":"M","domain":{{"chainId":{id}}},"message":{{}}}}"#)).unwrap();
        assert_eq!(with("728126428"), with("\"0x2b6653dc\""));
        // The id of the main network's genesis block ends with the same 32 bits.
        assert_eq!(with("\"0x00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc\""), with("728126428"));
        assert_ne!(with("728126428"), with("728126429"));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        for (kind, value) in [
            ("int8", "127"),
            ("int8", "-128"),
            ("int8", "\"-128\""),
            ("uint8", "255"),
            ("int256", "\"-57896044618658097711785492504343953926634992332820282019728792003956564819968\""),
        ] {
            assert!(one(kind, value).is_ok(), "{kind} {value}");
        }
        for (kind, value, code) in [
            ("int8", "128", Code::NumberTooLarge),
            ("int8", "-129", Code::NumberTooLarge),
            ("uint8", "256", Code::NumberTooLarge),
            ("uint8", "-1", Code::IntegerNotExact),
            ("int8", "-0", Code::IntegerNotExact),
            ("int8", "\"-0x1\"", Code::DecimalHex),
            ("uint8", "\"\"", Code::DecimalEmpty),
            ("uint8", "\"0x\"", Code::HexEmpty),
            ("uint8", "1.0", Code::IntegerNotExact),
            ("bytes2", "\"0x01\"", Code::HexLength),
            ("bytes2", "\"0102\"", Code::HexPrefix),
            ("bool", "1", Code::WrongType),
            ("uint8[2]", "[1]", Code::WrongType),
            ("M", "null", Code::MissingField),
        ] {
            assert_eq!(one(kind, value).map_err(|(code, _)| code), Err(code), "{kind} {value}");
        }
    }

    #[test]
    fn types_are_of_the_language_declared_and_used() {
        for kind in [
            "uint",
            "int7",
            "uint264",
            "uint08",
            "bytes0",
            "bytes33",
            "function",
            "uint8[",
            "uint8[01]",
            "uint8]",
            "N",
            "uint8 x",
            "",
            "tuple(bool)",
        ] {
            assert_eq!(one(kind, "1").map_err(|(code, _)| code), Err(Code::TypedDataTypes), "{kind}");
        }
        for types in [
            r#"{"M":[],"N":[]}"#,
            r#"{"M":[],"uint8":[]}"#,
            r#"{"M":[],"trcToken":[]}"#,
            r#"{"M":[{"name":"x","type":"bool"},{"name":"x","type":"bool"}]}"#,
            r#"{"M":[{"name":"x","type":"bool","y":1}]}"#,
            r#"{"M":[],"EIP712Domain":[{"name":"name","type":"string"}]}"#,
        ] {
            assert_eq!(hashed(&message(types, "{}")).map_err(|(code, _)| code), Err(Code::TypedDataTypes), "{types}");
        }
        assert!(hashed(&message(r#"{"M":[],"EIP712Domain":[]}"#, "{}")).is_ok());
        assert_eq!(hashed(&message(r#"{"M":[]}"#, r#"{"x":1}"#)), Err((Code::UnexpectedField, "/message/x".to_owned())));
        assert_eq!(hashed(&message(r#"{"N":[]}"#, "{}")), Err((Code::TypedDataPrimaryType, "/primaryType".to_owned())));
    }

    #[test]
    fn a_type_may_contain_itself() {
        let types = r#"{"M":[{"name":"x","type":"M[]"}]}"#;
        assert!(hashed(&message(types, r#"{"x":[{"x":[]},{"x":[{"x":[]}]}]}"#)).is_ok());
    }

    #[test]
    fn long_types_do_not_overflow() {
        assert_eq!(one(&format!("bool{}", "[]".repeat(1_000_000)), "[]").map_err(|(code, _)| code), Err(Code::TypedDataTypes));
        assert!(one(&format!("bool{}", "[]".repeat(60)), "[[[]]]").is_ok());
    }
}
