//! What a refused order should have said: each refused place is replaced by what was expected there, until the order is accepted.
//!
//! Nothing is signed with the result. It tells a person every difference in place of the first one, and which line of the summary each
//! byte belongs to. An order that cannot be rebuilt this way is shown without it.

use std::fmt::Write as _;
use std::ops::Range;

use countersign::chains::address;
use countersign::json::{self, Value};
use countersign::{Code, Family, Policy, Refusal, Registry, U256, Verified, chains::Network, report::TypedValue, trust::Asset};

use super::place::{Payload, Place, find};
use super::{Documents, verify};

/// The most differences that are looked for.
const MAX_DIFFERENCES: usize = 24;
/// The longest document that is rebuilt, in bytes: each step parses and verifies it several times.
const MAX_DOCUMENT: usize = 256 * 1024;

/// One place where an order differs from its terms.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub(super) refusal: Refusal,
    pub(super) place: Place,
    /// The bytes that were expected at the place, as far as they are known.
    pub(super) expected: Option<Vec<u8>>,
}

impl Difference {
    fn new(refusal: Refusal) -> Self {
        Self { place: Place::new(refusal.location()), refusal, expected: None }
    }
}

/// Every difference that was found, and the order without them; `None` if a place could not be replaced.
#[derive(Debug)]
pub(super) struct Rebuilt {
    pub(super) differences: Vec<Difference>,
    pub(super) order: Option<Verified>,
}

pub(super) fn rebuild(documents: Documents<'_>, first: &Refusal, registry: &Registry, policy: &Policy) -> Rebuilt {
    let mut differences = vec![Difference::new(first.clone())];
    let mut texts = [None, documents.record].map(|record| record.map(|value| to_json(value, &[], "").unwrap_or_default()));
    texts[0] = to_json(documents.response, &[], "");
    let [Some(response), record] = texts else { return Rebuilt { differences, order: None } };
    let mut current = (response, record);
    if current.0.len() > MAX_DOCUMENT || current.1.as_ref().is_some_and(|record| record.len() > MAX_DOCUMENT) {
        return Rebuilt { differences, order: None };
    }
    while differences.len() <= MAX_DIFFERENCES {
        let Some(last) = differences.last_mut() else { break };
        match step(documents, &current, last, registry, policy) {
            Some((_, Ok(order))) => return Rebuilt { differences, order: Some(order) },
            Some((next, Err(refusal))) => {
                current = next;
                differences.push(Difference::new(refusal));
            }
            None => break,
        }
    }
    Rebuilt { differences, order: None }
}

type Texts = (String, Option<String>);

/// Replaces one place. Returns the new documents and their verdict, which must not be the same refusal again.
fn step(
    documents: Documents<'_>,
    (response, record): &Texts,
    difference: &mut Difference,
    registry: &Registry,
    policy: &Policy,
) -> Option<(Texts, Result<Verified, Refusal>)> {
    let is_record = difference.place.at.starts_with("/order");
    let keys = difference.place.keys_below(if is_record { "/order" } else { "/response" })?;
    let text = if is_record { record.as_ref()? } else { response };
    let document = json::parse(text.as_bytes()).ok()?;
    let found = find(&document, &keys)?;
    for (replacement, expected) in candidates(documents, found, difference, registry) {
        let new = to_json(&document, &keys, &replacement)?;
        let texts = if is_record { (response.clone(), Some(new)) } else { (new, record.clone()) };
        let verdict = verdict(documents, &texts, registry, policy)?;
        if verdict.as_ref().err().is_none_or(|refusal| Place::new(refusal.location()) != difference.place) {
            difference.expected = expected;
            return Some((texts, verdict));
        }
    }
    None
}

fn verdict(
    documents: Documents<'_>,
    (response, record): &Texts,
    registry: &Registry,
    policy: &Policy,
) -> Option<Result<Verified, Refusal>> {
    let response = json::parse(response.as_bytes()).ok()?;
    let record = record.as_ref().and_then(|text| json::parse(text.as_bytes()).ok());
    Some(verify(Documents { request: documents.request, response: &response, record: record.as_ref() }, registry, policy))
}

/// Returns what could be at the place instead, as JSON, with the bytes where the place is a range.
fn candidates(documents: Documents<'_>, found: &Value<'_>, difference: &Difference, registry: &Registry) -> Vec<(String, Option<Vec<u8>>)> {
    let source = source(documents, registry);
    let mut values: Vec<_> = difference.refusal.expected().cloned().into_iter().collect();
    if matches!(difference.refusal.code(), Code::UnknownRedeemer | Code::RedeemerInvalid) {
        // Any pinned solver would do.
        let solver = source.and_then(|source| registry.solvers_of(source.chain_name()).first());
        values.extend(solver.map(|solver| TypedValue::Account(solver.account.clone())));
    }
    let is_stated = difference.refusal.expected().is_some();
    let network = source.map(|source| &source.chain.network);
    values
        .iter()
        .flat_map(|value| texts(value).map(move |text| (value, text)))
        .flat_map(|(value, text)| {
            let replacements = match &difference.place.bytes {
                None => members(found, &text).into_iter().map(|json| (json, None)).collect(),
                Some(range) => ranges(found, range, value, &text, network),
            };
            replacements.into_iter().map(|(json, bytes)| (json, bytes.filter(|_| is_stated)))
        })
        .collect()
}

/// Returns the texts in which an expectation may name its value: `at most 5 blocks`, `5, as in the call`.
fn texts(value: &TypedValue) -> impl Iterator<Item = String> + use<> {
    let text = value.to_string();
    let text = ["at least ", "at most "].iter().find_map(|bound| text.strip_prefix(bound)).unwrap_or(&text).to_owned();
    let first = text.split(' ').next().map(|word| word.trim_end_matches(',').to_owned()).filter(|word| *word != text);
    [Some(text), first].into_iter().flatten()
}

/// Returns what a whole member could be: in some members numbers are in hex.
fn members(found: &Value<'_>, text: &str) -> Vec<String> {
    match found {
        Value::Number(_) if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => vec![text.to_owned()],
        Value::String(_) => {
            let hex = format!("0x{}", text.trim_start_matches("0x"));
            let number = text.parse::<U256>().map(|number| format!("{number:#x}")).ok();
            [Some(text.to_owned()), Some(hex), number].into_iter().flatten().filter_map(|text| serde_json::to_string(&text).ok()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns what the bytes of a payload could be, with the payload as JSON.
fn ranges(
    found: &Value<'_>,
    range: &Range<usize>,
    expected: &TypedValue,
    text: &str,
    network: Option<&Network>,
) -> Vec<(String, Option<Vec<u8>>)> {
    let Some((payload, actual)) =
        Payload::new(found).and_then(|payload| Some((payload.clone(), payload.bytes.get(range.clone())?.to_vec())))
    else {
        return Vec::new();
    };
    let family = network.map(Network::family);
    let is_words = matches!(family, Some(Family::Evm | Family::Tron));
    let mut values: Vec<Vec<u8>> = match expected {
        TypedValue::Account(account) => vec![account.bytes().to_vec()],
        TypedValue::Hash(hash) => vec![hash.to_vec()],
        _ => Vec::new(),
    };
    if let Ok(number) = text.parse::<U256>() {
        // Behind the tag and the length that some encodings put in front.
        let lengths = [Some(actual.len()), actual.len().checked_sub(2)];
        values.extend(lengths.into_iter().flatten().filter_map(|len| number_bytes(number, len, is_words)));
    }
    values.extend(network.and_then(|network| address::parse(network, text).ok()).map(|account| account.bytes().to_vec()));
    values.extend(hex::decode(text.trim_start_matches("0x")).ok());
    let filled = values.into_iter().filter_map(|value| {
        // The value is at the end of the range: words of an ABI have zeros in front, other encodings a tag and a length.
        let before = actual.len().checked_sub(value.len())?;
        let prefix = if is_words { vec![0; before] } else { actual.get(..before)?.to_vec() };
        let bytes = [prefix, value].concat();
        let mut all = payload.bytes.clone();
        all.get_mut(range.clone())?.copy_from_slice(&bytes);
        Some((payload.to_json(&all), Some(bytes)))
    });
    filled.collect()
}

/// Writes a number in `len` bytes, big-endian in the words of an ABI; `None` if it does not fit.
fn number_bytes(number: U256, len: usize, is_words: bool) -> Option<Vec<u8>> {
    let bytes = number.to_le_bytes::<32>();
    let (low, high) = bytes.split_at_checked(len)?;
    if high.iter().any(|byte| *byte != 0) {
        return None;
    }
    let mut low = low.to_vec();
    if is_words {
        low.reverse();
    }
    Some(low)
}

fn source<'r>(documents: Documents<'_>, registry: &'r Registry) -> Option<&'r Asset> {
    let keys = ["source", "asset"].map(str::to_owned);
    let Some(Value::String(asset)) = find(documents.request, &keys) else { return None };
    registry.asset(asset.as_ref()).map(AsRef::as_ref)
}

/// Writes a value as JSON, with the member at `keys` replaced.
pub(super) fn to_json(value: &Value<'_>, keys: &[String], replacement: &str) -> Option<String> {
    fn write(out: &mut String, value: &Value<'_>, keys: Option<&[String]>, replacement: &str) -> Option<()> {
        let below = |key: &str| keys.and_then(|keys| keys.split_first()).filter(|(first, _)| *first == key).map(|(_, rest)| rest);
        if keys.is_some_and(<[_]>::is_empty) && !replacement.is_empty() {
            out.push_str(replacement);
            return Some(());
        }
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
            Value::Number(text) => out.push_str(text),
            Value::String(text) => out.push_str(&serde_json::to_string(text.as_ref()).ok()?),
            Value::Bytes(bytes) => write!(out, "{bytes:?}").ok()?,
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    write(out, item, below(&index.to_string()), replacement)?;
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                for (index, (name, member)) in members.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    out.push_str(&serde_json::to_string(name.as_ref()).ok()?);
                    out.push(':');
                    write(out, member, below(name), replacement)?;
                }
                out.push('}');
            }
            _ => return None,
        }
        Some(())
    }
    let mut out = String::new();
    write(&mut out, value, Some(keys), replacement)?;
    Some(out)
}
