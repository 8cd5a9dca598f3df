//! Runs input lines of any family through the entry point of the batch.

use countersign_core::{Family, Origin, Policy, Refusal, Registry};
use countersign_json::line::Outcome;
use serde_json::Value as Json;

use crate::{Case, fixtures_of, project, registry};

/// Returns those of the families that have accept fixtures.
pub fn with_fixtures(families: &[Family]) -> impl Iterator<Item = Family> {
    families.iter().copied().filter(|family| project().join(format!("fixtures/accept/{}.jsonl", family.name())).is_file())
}

/// Returns the accept cases of a family.
pub fn accepted(family: Family) -> Vec<Case> {
    fixtures_of(family).expect("fixtures")
}

/// Returns the accept case with this id, which begins with the name of its family.
pub fn accepted_case(id: &str) -> Case {
    let family = Family::ALL.iter().find(|family| id.starts_with(&format!("{}-", family.name()))).expect(id);
    accepted(*family).into_iter().find(|case| case.id == id).expect(id)
}

/// Returns the output line for an input line, as text.
pub fn output(line: &[u8], registry: &Registry, policy: &Policy) -> String {
    let outcome = Outcome::from_line(line, registry, policy);
    outcome.result.as_ref().err().into_iter().for_each(check_origin);
    serde_json::to_string(&outcome).expect("an outcome is always JSON")
}

/// Requires that a refusal of a line has the origin of the document in which its location is, so that nobody is blamed for what another wrote.
pub fn check_origin(refusal: &Refusal) {
    let document = refusal.location().split(['/', '#']).nth(1).unwrap_or_default();
    let origin = match document {
        "response" | "order" => Origin::Service,
        "request" => Origin::Request,
        _ => Origin::Caller,
    };
    assert_eq!(refusal.origin(), origin, "{refusal}");
}

/// Returns the output line for an input line under the fixtures' registry and the default policy.
pub fn run(line: &str) -> Json {
    serde_json::from_str(&output(line.as_bytes(), registry(), &Policy::default())).expect("one JSON object a line")
}

/// Returns the codes of the warnings of an output line.
pub fn warning_codes(output: &Json) -> Vec<&str> {
    output["warnings"].as_array().into_iter().flatten().filter_map(|warning| warning["code"].as_str()).collect()
}

/// Returns the first difference between the expected and the actual JSON. Hex is compared without regard to letter case, an expected
/// null may be absent, and members that are not expected are ignored.
pub fn difference(expected: &Json, got: &Json, at: &str) -> Option<String> {
    match (expected, got) {
        (Json::Object(expected), Json::Object(got)) => expected.iter().find_map(|(key, value)| match got.get(key) {
            None if value.is_null() => None,
            None => Some(format!("{at}/{key}: missing")),
            Some(got) => difference(value, got, &format!("{at}/{key}")),
        }),
        (Json::Array(expected), Json::Array(got)) if expected.len() == got.len() => {
            expected.iter().zip(got).enumerate().find_map(|(index, (expected, got))| difference(expected, got, &format!("{at}/{index}")))
        }
        (Json::String(expected), Json::String(got)) if is_hex(expected) && is_hex(got) && expected.eq_ignore_ascii_case(got) => None,
        _ if expected == got => None,
        _ => Some(format!("{at}: expected {expected}, got {got}")),
    }
}

fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
