//! Fixtures, mutations and the test suites that every family shares. Not published.
//!
//! A family's tests call each suite with the family's type: `accept::fixtures_give_their_artefacts::<Evm>(103)`. Cases go through
//! the JSON contract of `countersign-json`, because their expected values have that form.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic in a test is a failed test"
)]
#![allow(missing_docs, missing_debug_implementations, reason = "only the project's own tests use this crate")]

pub mod abi;
pub mod accept;
pub mod cairo;
pub mod chain;
pub mod fate;
pub mod fixed;
pub mod hostile;
pub mod lines;
pub mod promises;
pub mod properties;
pub mod received;
pub mod recover;
pub mod restart;
pub mod telling;
pub mod tree;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use countersign_core::json::{self, Cursor, Value};
use countersign_core::{Family, Generation, Policy, Refusal, Registry, UnsignedOrder, VerifiedOrder};
use countersign_json::{JsonArtefacts, JsonFamily, attach_json, prepare_json, sign_text};

use countersign_json::line::Case as JsonCase;
use serde_json::{Value as Json, json};
pub use tree::Tree;

/// What a test returns.
pub type TestResult = Result<(), Box<dyn Error>>;

/// A case of a fixture file.
#[derive(Debug, Clone)]
pub struct Case {
    pub id: String,
    /// The input line, byte for byte.
    pub input: String,
    /// The whole line, with the expected result.
    pub line: String,
    pub registry: &'static Registry,
}

impl Case {
    /// Parses the whole line.
    pub fn whole(&self) -> Result<Json, serde_json::Error> {
        serde_json::from_str(&self.line)
    }

    /// Returns the case with `to` in place of every `from` in the input. `from` must occur.
    pub fn replaced(&self, from: &str, to: &str) -> Self {
        assert!(self.input.contains(from), "{}: no {from}", self.id);
        self.with_input(self.input.replace(from, to))
    }

    /// Returns the case with another input.
    pub fn with_input(&self, input: String) -> Self {
        Self { id: self.id.clone(), input, line: self.line.clone(), registry: self.registry }
    }

    /// Parses the input.
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.input).expect("an input line is JSON")
    }

    /// Returns the input as unread tokens.
    pub fn tree(&self) -> Tree {
        Tree::parse(&self.input)
    }

    /// Returns the result that external tools computed.
    pub fn expect(&self) -> Json {
        self.whole().expect("a line is JSON")["expect"].take()
    }

    /// Returns the secret key of the wallet, as the case writes it; `None` without one.
    pub fn secret_key(&self) -> Option<String> {
        self.tree().scalar("/wallet/secret_key")
    }
}

/// The cases of a file beside the project, or why there are none.
pub enum Beside {
    Cases(Vec<Case>),
    Absent(String),
}

/// Returns the root of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads the file of this name in `../shared`, if it is there.
pub fn shared(name: &str) -> Result<Vec<u8>, String> {
    let path = project().join("../shared").join(name);
    fs::read(&path).map_err(|error| format!("../shared/{name}: {error}"))
}

/// Reports that a test was skipped, and passes.
#[expect(clippy::print_stderr, reason = "a skipped test must be visible")]
pub fn skipped(reason: &str) -> TestResult {
    eprintln!("skipped: {reason}");
    Ok(())
}

/// Returns the fixtures' registry.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let text = fs::read(project().join("fixtures/registry.json")).expect("fixtures/registry.json");
        Registry::from_json(&text).expect("fixtures/registry.json is a registry")
    })
}

/// Returns the registry of the shared vectors, if it is there.
pub fn shared_registry() -> Result<&'static Registry, String> {
    static REGISTRY: OnceLock<Result<Registry, String>> = OnceLock::new();
    let read = || Registry::from_json(&shared("vectors/registry.json")?).map_err(|refusal| refusal.to_string());
    REGISTRY.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// Splits a file into cases. The input is the text before `,"note":` with a closing brace. It is not parsed and written again,
/// because that could change its spelling.
fn cases(text: &str, registry: &'static Registry) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (input, _) = line.split_once(",\"note\":").ok_or("a line without a note")?;
        let id = line.split('"').nth(3).ok_or("a line without an id")?;
        cases.push(Case { id: id.to_owned(), input: format!("{input}}}"), line: line.to_owned(), registry });
    }
    Ok(cases)
}

/// Returns the accept cases of a family, for contracts without a pinned generation.
pub fn fixtures<F: JsonFamily>() -> Result<Vec<Case>, Box<dyn Error>> {
    fixtures_of(F::FAMILY)
}

/// Returns the accept cases of a family, for contracts without a pinned generation.
pub fn fixtures_of(family: Family) -> Result<Vec<Case>, Box<dyn Error>> {
    cases(&fs::read_to_string(project().join(format!("fixtures/accept/{}.jsonl", family.name())))?, registry())
}

/// Returns the case with this id, whatever the generation of its contract.
pub fn fixture<F: JsonFamily>(id: &str) -> Case {
    all_fixtures::<F>().expect("fixtures").into_iter().find(|case| case.id == id).expect(id)
}

/// Returns the accept cases of a family, including those for each generation of the contract.
pub fn all_fixtures<F: JsonFamily>() -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = fixtures::<F>()?;
    for generation in Generation::all(F::FAMILY) {
        cases.extend(generation_fixtures::<F>(generation.name())?);
    }
    Ok(cases)
}

/// Returns the accept cases of a family for a registry that pins this generation for all of the family's contracts; none if the
/// generation has no file.
pub fn generation_fixtures<F: JsonFamily>(generation: &str) -> Result<Vec<Case>, Box<dyn Error>> {
    let path = project().join(format!("fixtures/accept/{}.{generation}.jsonl", F::FAMILY.name()));
    if !path.exists() {
        return Ok(Vec::new());
    }
    cases(&fs::read_to_string(path)?, registry_of_generation(F::FAMILY, generation))
}

/// Returns the fixtures' registry with this generation pinned for all contracts of the family.
pub fn registry_of_generation(family: Family, generation: &str) -> &'static Registry {
    static REGISTRIES: Mutex<BTreeMap<(&str, String), &'static Registry>> = Mutex::new(BTreeMap::new());
    let mut registries = REGISTRIES.lock().expect("no test panics while it reads a registry");
    registries.entry((family.name(), generation.to_owned())).or_insert_with(|| {
        let all = registry_json();
        let assets = all["assets"].as_array().into_iter().flatten().enumerate();
        let own = assets.filter(|(_, asset)| {
            asset["id"].as_str().is_some_and(|id| registry().asset(id).is_some_and(|asset| asset.chain.family() == family))
        });
        let changes: Vec<_> = own.map(|(index, _)| format!("/assets/{index}/htlc/generation")).collect();
        let changes: Vec<_> = changes.iter().map(|at| (at.as_str(), json!(generation))).collect();
        Box::leak(Box::new(registry_with(&changes)))
    })
}

/// Returns the cases of a file in `../shared`, or why there are none.
pub fn beside(name: &str) -> Result<Beside, Box<dyn Error>> {
    match (shared(name), shared_registry()) {
        (Ok(text), Ok(registry)) => Ok(Beside::Cases(cases(&String::from_utf8(text)?, registry)?)),
        (Err(reason), _) => Ok(Beside::Absent(reason)),
        (_, Err(reason)) => Err(reason.into()),
    }
}

/// Returns the fixtures' registry file as JSON.
pub fn registry_json() -> Json {
    let text = fs::read(project().join("fixtures/registry.json")).expect("fixtures/registry.json");
    serde_json::from_slice(&text).expect("JSON")
}

/// Returns the fixtures' registry with changes, each a pointer and a new value.
pub fn registry_with(changes: &[(&str, Json)]) -> Registry {
    let mut value = registry_json();
    for (pointer, change) in changes {
        set(&mut value, pointer, change.clone());
    }
    Registry::from_json(value.to_string().as_bytes()).expect("a registry")
}

/// Returns the index of an asset in the fixtures' registry file.
pub fn asset_index(id: &str) -> usize {
    registry_json()["assets"].as_array().into_iter().flatten().position(|asset| asset["id"] == id).expect(id)
}

/// Sets a member, which may be new, or appends to an array if the pointer ends in `-`.
pub fn set(line: &mut Json, pointer: &str, value: Json) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer below the root");
    match line.pointer_mut(parent).expect(pointer) {
        Json::Object(members) => drop(members.insert(key.replace("~1", "/").replace("~0", "~"), value)),
        Json::Array(items) if key == "-" => items.push(value),
        Json::Array(items) => items[key.parse::<usize>().expect("an index")] = value,
        _ => panic!("{pointer}: not in an object or array"),
    }
}

/// Verifies the order of an input line, and calls `then` with it and the wallet context.
pub fn with_verified<F: JsonFamily, T>(
    input: &[u8],
    registry: &Registry,
    policy: &Policy,
    then: impl FnOnce(VerifiedOrder<F>, Option<&Value<'_>>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let value = json::parse_case(input)?;
    let case = JsonCase::from_value(&value)?;
    then(countersign_core::verify::<F>(case.proposal()?, registry, policy)?, case.wallet)
}

/// Verifies the order of a fixture.
pub fn verified<F: JsonFamily>(case: &Case) -> VerifiedOrder<F> {
    verified_under(case, case.registry, &Policy::default()).expect(&case.id)
}

/// Verifies the order of a case with another registry or policy.
pub fn verified_under<F: JsonFamily>(case: &Case, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder<F>, Refusal> {
    with_verified(case.input.as_bytes(), registry, policy, |verified, _| Ok(verified))
}

/// Returns the wallet context of a case.
pub fn wallet<F: JsonFamily>(case: &Case) -> F::Context {
    let value = json::parse(case.input.as_bytes()).expect("an input line is JSON");
    let wallet = JsonCase::from_value(&value).and_then(|case| F::read_wallet(case.wallet()?));
    wallet.expect(&case.id)
}

/// Returns the local key of a case that has one.
pub fn key<F: JsonFamily>(case: &Case) -> F::Key {
    case.secret_key().expect("a key").parse().expect("a valid key")
}

/// Returns the artefacts that the batch would print.
pub fn artefacts<F: JsonFamily>(order: &UnsignedOrder<F>) -> Json {
    serde_json::to_value(JsonArtefacts::<F>(order.payloads())).expect("artefacts are always JSON")
}

/// Attaches signatures: an object from request name to signature.
pub fn attach<F: JsonFamily>(order: &mut UnsignedOrder<F>, signatures: &Json) -> Result<(), Refusal> {
    let text = signatures.to_string();
    attach_json(order, Cursor::root(&json::parse(text.as_bytes())?, "/signatures"))
}

/// Verifies and prepares a case, and calls `then` with the unsigned order and the key of its wallet context.
pub fn with_unsigned<F: JsonFamily, T>(
    case: &Case,
    policy: &Policy,
    then: impl FnOnce(UnsignedOrder<F>, Option<&str>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    with_prepared(case.input.as_bytes(), case.registry, policy, then)
}

fn with_prepared<F: JsonFamily, T>(
    input: &[u8],
    registry: &Registry,
    policy: &Policy,
    then: impl FnOnce(UnsignedOrder<F>, Option<&str>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    with_verified::<F, T>(input, registry, policy, |verified, wallet| {
        let wallet = Cursor::root(wallet.unwrap_or(&Value::Null), "/wallet");
        let unsigned = prepare_json(&verified, wallet)?;
        let members = wallet.object()?;
        let key = members.get("secret_key");
        let key = key.as_ref().map(Cursor::secret).transpose()?;
        then(unsigned, key)
    })
}

/// Returns the result that the batch would print, without id and verdict.
pub fn outcome<F: JsonFamily>(case: &Case) -> Result<Json, Refusal> {
    outcome_under::<F>(case, case.registry, &Policy::default())
}

/// Returns the result that the batch would print with another registry or policy, without id and verdict.
pub fn outcome_under<F: JsonFamily>(case: &Case, registry: &Registry, policy: &Policy) -> Result<Json, Refusal> {
    let outcome = with_prepared::<F, Json>(case.input.as_bytes(), registry, policy, |mut unsigned, key| {
        if let Some(key) = key {
            sign_text(&mut unsigned, key)?;
        }
        Ok(json!({
            "order_id": unsigned.order_id(),
            "artefacts": JsonArtefacts::<F>(unsigned.payloads()),
            "summary": unsigned.summary(),
            "warnings": unsigned.warnings(),
        }))
    });
    outcome.as_ref().err().into_iter().for_each(lines::check_origin);
    outcome
}
