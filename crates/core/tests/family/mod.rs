//! Cases from files, and their way through the type states: one file for the tests of every family, which include it by
//! its path and name their family `Tested`.
#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

pub(crate) mod accept;
mod fixed;
pub(crate) mod hostile;
pub(crate) mod properties;
pub(crate) mod recover;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use countersign_core::json::{self, Node, Value};
use countersign_core::{ChainFamily, Documents, Order, Policy, Proposed, Refusal, Registry, Unsigned, Verified};
use serde_json::{Value as Json, json};

use super::Tested;

pub(crate) type TestResult = Result<(), Box<dyn Error>>;

/// A case as its file has it.
pub(crate) struct Case {
    pub(crate) id: String,
    /// The input line, byte for byte.
    pub(crate) input: String,
    /// The line with what is expected of it.
    pub(crate) line: String,
    pub(crate) registry: &'static Registry,
}

impl Case {
    pub(crate) fn whole(&self) -> Result<Json, serde_json::Error> {
        serde_json::from_str(&self.line)
    }

    /// The input with another text in place of every `from`, which must occur.
    pub(crate) fn replaced(&self, from: &str, to: &str) -> Self {
        assert!(self.input.contains(from), "{}: no {from}", self.id);
        self.with_input(self.input.replace(from, to))
    }

    pub(crate) fn with_input(&self, input: String) -> Self {
        Self { id: self.id.clone(), input, line: self.line.clone(), registry: self.registry }
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.input).expect("an input line is JSON")
    }
}

/// Cases of a file that stands beside the project, or why there are none.
pub(crate) enum Beside {
    Cases(Vec<Case>),
    Absent(String),
}

pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file with the shared material of this name, where it stands beside the project.
pub(crate) fn shared(name: &str) -> Result<Vec<u8>, String> {
    let path = project().join("../shared").join(name);
    fs::read(&path).map_err(|error| format!("../shared/{name}: {error}"))
}

#[expect(clippy::print_stderr, reason = "a test that was left out says so")]
pub(crate) fn skipped(reason: &str) -> TestResult {
    eprintln!("skipped: {reason}");
    Ok(())
}

pub(crate) fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let text = fs::read(project().join("fixtures/registry.json")).expect("fixtures/registry.json");
        Registry::from_json(&text).expect("fixtures/registry.json is a registry")
    })
}

pub(crate) fn shared_registry() -> Result<&'static Registry, String> {
    static REGISTRY: OnceLock<Result<Registry, String>> = OnceLock::new();
    let read = || Registry::from_json(&shared("vectors/registry.json")?).map_err(|refusal| refusal.to_string());
    REGISTRY.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// The input is the text before `,"note":` and a closing brace: another JSON writer could spell it otherwise.
fn cases(text: &str, registry: &'static Registry) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (input, _) = line.split_once(",\"note\":").ok_or("a line without a note")?;
        let id = line.split('"').nth(3).ok_or("a line without an id")?;
        cases.push(Case { id: id.to_owned(), input: format!("{input}}}"), line: line.to_owned(), registry });
    }
    Ok(cases)
}

pub(crate) fn fixtures() -> Result<Vec<Case>, Box<dyn Error>> {
    cases(&fs::read_to_string(project().join(format!("fixtures/accept/{}.jsonl", Tested::FAMILY.name())))?, registry())
}

pub(crate) fn fixture(id: &str) -> Case {
    fixtures().expect("fixtures").into_iter().find(|case| case.id == id).expect(id)
}

pub(crate) fn beside(name: &str) -> Result<Beside, Box<dyn Error>> {
    match (shared(name), shared_registry()) {
        (Ok(text), Ok(registry)) => Ok(Beside::Cases(cases(&String::from_utf8(text)?, registry)?)),
        (Err(reason), _) => Ok(Beside::Absent(reason)),
        (_, Err(reason)) => Err(reason.into()),
    }
}

/// The fixtures' registry file.
pub(crate) fn registry_json() -> Json {
    let text = fs::read(project().join("fixtures/registry.json")).expect("fixtures/registry.json");
    serde_json::from_slice(&text).expect("JSON")
}

/// The fixtures' registry with changes, each a pointer and a new value.
pub(crate) fn registry_with(changes: &[(&str, Json)]) -> Registry {
    let mut value = registry_json();
    for (pointer, change) in changes {
        set(&mut value, pointer, change.clone());
    }
    Registry::from_json(value.to_string().as_bytes()).expect("a registry")
}

/// Index of an asset in the fixtures' registry.
pub(crate) fn asset_index(id: &str) -> usize {
    registry_json()["assets"].as_array().into_iter().flatten().position(|asset| asset["id"] == id).expect(id)
}

/// Sets a member, which may be new, or appends where the pointer ends in `-`.
pub(crate) fn set(line: &mut Json, pointer: &str, value: Json) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer below the root");
    match line.pointer_mut(parent).expect(pointer) {
        Json::Object(members) => drop(members.insert(key.replace("~1", "/").replace("~0", "~"), value)),
        Json::Array(items) if key == "-" => items.push(value),
        Json::Array(items) => items[key.parse::<usize>().expect("an index")] = value,
        _ => panic!("{pointer}: no container"),
    }
}

fn documents<'v>(value: &'v Value<'v>) -> Result<(Documents<'v>, Option<&'v Value<'v>>), Refusal> {
    let root = Node::root(value, "");
    let members = root.object()?;
    let documents = Documents {
        request: members.need("request")?.value(),
        response: members.need("response")?.value(),
        order: members.get("order").map(|node| node.value()),
    };
    Ok((documents, members.get("wallet").map(|node| node.value())))
}

/// Verifies the order of an input line.
pub(crate) fn with_verified<T>(
    input: &[u8],
    registry: &Registry,
    policy: &Policy,
    then: impl FnOnce(Verified<Tested>, Option<&Value<'_>>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let value = json::parse(input)?;
    let (documents, wallet) = documents(&value)?;
    let order = Order::open(documents, registry, policy)?;
    then(Proposed::<Tested>::new(order)?.verify()?, wallet)
}

/// Takes a case to the unsigned state and hands it on with the key that the wallet's context has.
pub(crate) fn with_unsigned<T>(
    case: &Case,
    policy: &Policy,
    then: impl FnOnce(Unsigned<Tested>, Option<&str>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    with_prepared(case.input.as_bytes(), case.registry, policy, then)
}

fn with_prepared<T>(
    input: &[u8],
    registry: &Registry,
    policy: &Policy,
    then: impl FnOnce(Unsigned<Tested>, Option<&str>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    with_verified(input, registry, policy, |verified, wallet| {
        let wallet = Node::root(wallet.unwrap_or(&Value::Null), "/wallet");
        let unsigned = verified.prepare_json(wallet)?;
        let members = wallet.object()?;
        let key = members.get("secret_key");
        let key = key.as_ref().map(Node::secret).transpose()?;
        then(unsigned, key)
    })
}

/// What the batch would print.
pub(crate) fn outcome(case: &Case) -> Result<Json, Refusal> {
    outcome_under(case, case.registry, &Policy::default())
}

pub(crate) fn outcome_under(case: &Case, registry: &Registry, policy: &Policy) -> Result<Json, Refusal> {
    with_prepared(case.input.as_bytes(), registry, policy, |unsigned, key| {
        Ok(match key {
            None => json!({
                "order_id": unsigned.order_id(),
                "artefacts": unsigned.payloads(),
                "summary": unsigned.summary(),
                "warnings": unsigned.warnings(),
            }),
            Some(key) => {
                let key = Tested::read_key(key).map_err(|code| Refusal::new(code, "/wallet/secret_key"))?;
                let signed = unsigned.sign(&key)?;
                json!({
                    "order_id": signed.order_id(),
                    "artefacts": signed.artefacts(),
                    "summary": signed.summary(),
                    "warnings": signed.warnings(),
                })
            }
        })
    })
}
