//! Properties of every family over many inputs. Any change of a response is refused, is shown, or has no effect on what is signed.

use std::collections::BTreeSet;

use countersign_core::Code;
use countersign_json::JsonFamily;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::{Case, all_fixtures, fixture, outcome, verified};

/// Returns what a person sees, without the digests. Those show every change, but nobody can read them.
fn seen(outcome: &Json) -> (Vec<&str>, &Json) {
    let lines = outcome["summary"].as_array().into_iter().flatten().filter_map(Json::as_str);
    (lines.filter(|line| !line.starts_with("to sign:")).collect(), &outcome["warnings"])
}

/// Requires that a changed response is refused, is visibly different, or gives the same artefacts.
pub fn account_for<F: JsonFamily>(case: &Case, base: &Json, changed: &Json, what: &str) -> Result<(), String> {
    match outcome::<F>(&case.with_input(changed.to_string())) {
        Err(refusal) if refusal.code() == Code::Internal => Err(format!("{what}: {refusal}")),
        Err(_) => Ok(()),
        Ok(other) if seen(&other) != seen(base) || other["artefacts"] == base["artefacts"] => Ok(()),
        Ok(_) => Err(format!("{what}: accepted, and nothing shows it")),
    }
}

/// Returns pointers to every scalar at or below a pointer; none if the line has nothing there.
pub fn scalars(line: &Json, at: &str) -> Vec<String> {
    match line.pointer(at) {
        Some(Json::Object(members)) => members.keys().flat_map(|key| scalars(line, &format!("{at}/{key}"))).collect(),
        Some(Json::Array(items)) => (0..items.len()).flat_map(|index| scalars(line, &format!("{at}/{index}"))).collect(),
        Some(_) => vec![at.to_owned()],
        None => Vec::new(),
    }
}

/// Returns the value of a line at a pointer, to be replaced.
pub fn at<'l>(line: &'l mut Json, pointer: &str) -> &'l mut Json {
    line.pointer_mut(pointer).expect(pointer)
}

/// Returns other values to put in place of a scalar.
fn others(scalar: &Json) -> Vec<Json> {
    let mut others = vec![
        json!(null),
        json!(true),
        json!(false),
        json!(""),
        json!(0),
        json!(-1),
        json!(1),
        json!("0"),
        json!("1"),
        json!([]),
        json!({}),
    ];
    if let Some(text) = scalar.as_str() {
        let (head, last) = text.split_at(text.len().saturating_sub(1));
        let other_last = if last == "1" { "2" } else { "1" };
        let texts = [
            format!("{text}0"),
            format!("{text} "),
            format!("{text}="),
            format!("{head}{other_last}"),
            head.to_owned(),
            text.to_uppercase(),
            text.to_lowercase(),
        ];
        others.extend(texts.map(Json::from));
    }
    if let Some(number) = scalar.as_u64() {
        others.extend([json!(number + 1), json!(number.wrapping_sub(1)), json!(number + 256), json!(number.to_string())]);
    }
    others
}

/// Replaces every scalar of the response and of the record, in the cases with these ids.
pub fn every_scalar_is_accounted_for<F: JsonFamily>(ids: &[&str]) {
    let mut faults = Vec::new();
    for id in ids {
        let case = fixture::<F>(id);
        let base = outcome::<F>(&case).expect(id);
        let line = case.json();
        for pointer in [scalars(&line, "/response"), scalars(&line, "/order")].concat() {
            for other in others(line.pointer(&pointer).expect("a scalar")) {
                let mut changed = line.clone();
                let what = format!("{id} {pointer} = {other}");
                *at(&mut changed, &pointer) = other;
                faults.extend(account_for::<F>(&case, &base, &changed, &what).err());
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Removes every member and every item below the response's result, in the cases with these ids.
pub fn every_member_is_needed_or_without_effect<F: JsonFamily>(ids: &[&str]) {
    let mut faults = Vec::new();
    for id in ids {
        let case = fixture::<F>(id);
        let base = outcome::<F>(&case).expect(id);
        let line = case.json();
        let scalars = scalars(&line, "/response/result");
        let members: BTreeSet<_> =
            scalars.iter().flat_map(|at| at.match_indices('/').skip(3).map(|(end, _)| &at[..end]).chain([at.as_str()])).collect();
        for pointer in members {
            let (parent, key) = pointer.rsplit_once('/').expect("below the root");
            let mut changed = line.clone();
            match at(&mut changed, parent) {
                Json::Object(members) => drop(members.remove(key)),
                Json::Array(items) => drop(items.remove(key.parse::<usize>().expect("an index"))),
                _ => panic!("{parent}: not an object or array"),
            }
            faults.extend(account_for::<F>(&case, &base, &changed, &format!("{id} without {pointer}")).err());
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Where a family's responses hold bytes, and how the bytes are encoded.
pub struct Payloads {
    pub pointers: &'static [&'static str],
    pub read: fn(&Json) -> Option<Vec<u8>>,
    pub spell: fn(&[u8]) -> Json,
}

impl Payloads {
    /// Changes every byte, removes it, and inserts one before it, in the cases with these ids. A payload that is cut off is refused.
    pub fn every_byte_is_accounted_for<F: JsonFamily>(&self, ids: &[&str]) {
        let mut faults = Vec::new();
        for id in ids {
            let case = fixture::<F>(id);
            let base = outcome::<F>(&case).expect(id);
            assert!(self.pointers.iter().any(|pointer| case.json().pointer(pointer).and_then(self.read).is_some()), "{id}: no bytes");
            for pointer in self.pointers {
                let mut line = case.json();
                let Some(bytes) = line.pointer(pointer).and_then(self.read) else { continue };
                for (index, byte) in bytes.iter().enumerate() {
                    for others in [&[byte ^ 0x01][..], &[byte ^ 0x02], &[byte ^ 0x80], &[byte ^ 0xff], &[], &[0, *byte]] {
                        *at(&mut line, pointer) = (self.spell)(&[&bytes[..index], others, &bytes[index + 1..]].concat());
                        faults
                            .extend(account_for::<F>(&case, &base, &line, &format!("{id} {pointer} byte {index} as {others:02x?}")).err());
                    }
                }
                for end in 0..bytes.len() {
                    *at(&mut line, pointer) = (self.spell)(&bytes[..end]);
                    assert!(outcome::<F>(&case.with_input(line.to_string())).is_err(), "{id} {pointer} cut at {end}");
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

/// Requires for every fixture that each span has a line in the summary, and that the spans cover these members of the result.
///
/// `length` is called with a pointer and its scalar. If it returns a number of bytes, each of these must be covered once; otherwise
/// the scalar must be covered as a whole.
pub fn spans_cover<F: JsonFamily>(members: &[&str], length: impl Fn(&str, &Json) -> Option<usize>) {
    for case in all_fixtures::<F>().expect("fixtures") {
        let verified = verified::<F>(&case);
        let (coverage, summary) = (verified.coverage(), verified.summary());
        for span in &coverage {
            assert!(summary.lines().iter().any(|line| line.topic == span.topic), "{}: no line for {span:?}", case.id);
        }
        let line = case.json();
        let members = members.iter().filter(|member| !line["response"]["result"][**member].is_null());
        for pointer in members.flat_map(|member| scalars(&line, &format!("/response/result/{member}"))) {
            let Some(length) = length(&pointer, line.pointer(&pointer).expect("a scalar")) else {
                let below = |at: &str| pointer.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                let covered = coverage.iter().any(|span| span.bytes.is_none() && below(&span.at));
                assert!(covered, "{}: {pointer}", case.id);
                continue;
            };
            let mut end = 0;
            for (from, to) in coverage.iter().filter(|span| span.at == pointer).filter_map(|span| span.bytes) {
                assert_eq!(from, end, "{}: {pointer}", case.id);
                end = to;
            }
            assert_eq!(end, length, "{}: {pointer}", case.id);
        }
    }
}

/// Requires that a case with another value for a member of the wallet is accepted, or refused at the wallet.
pub fn is_refused_at_the_wallet<F: JsonFamily>(id: &str, member: &str, value: Json) -> Result<(), TestCaseError> {
    let case = fixture::<F>(id);
    let mut line = case.json();
    line["wallet"][member] = value;
    if let Err(refusal) = outcome::<F>(&case.with_input(line.to_string())) {
        prop_assert!(refusal.location().starts_with("/wallet"), "{}", refusal);
    }
    Ok(())
}

/// Generates values for a member of a wallet. Half of them are scalars, because most members refuse an object or array at once.
pub fn wallet_values() -> impl Strategy<Value = Json> {
    prop_oneof![scalar(), values()]
}

/// Generates scalars of every kind, with texts that look like numbers, hex and addresses.
fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
        "-?[0-9]{1,80}".prop_map(Json::from),
        "0x[0-9a-f]{0,70}".prop_map(Json::from),
        "T[1-9A-Za-z]{33}".prop_map(Json::from),
    ]
}

/// Generates JSON of every kind, mostly objects and arrays.
pub fn values() -> impl Strategy<Value = Json> {
    scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from), inner.prop_map(|value| json!({ "x": value })),]
    })
}
