//! Cases of the fixtures as documents.
#![allow(dead_code, reason = "each test file uses its part")]

use countersign::json::{self, Value};
use countersign::{Family, Registry};
use countersign_testkit::{Case, fixtures_of, project, set};
use countersign_view::Documents;
use serde_json::Value as Json;

pub(crate) const FAMILIES: [Family; 6] = [Family::Evm, Family::Tron, Family::Starknet, Family::Solana, Family::Sui, Family::Bitcoin];

fn member<'v>(root: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    let Value::Object(members) = root else { return None };
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value).filter(|value| !matches!(value, Value::Null))
}

/// Parses a case, and calls `then` with its documents, if it has a request and a response.
pub(crate) fn with_case<T>(input: &str, then: impl FnOnce(Documents<'_>) -> T) -> Option<T> {
    let root = json::parse(input.as_bytes()).ok()?;
    let (request, response) = (member(&root, "request")?, member(&root, "response")?);
    Some(then(Documents { request, response, record: member(&root, "order") }))
}

/// A case that must be refused.
pub(crate) struct Rejected {
    pub(crate) id: String,
    pub(crate) input: String,
    pub(crate) at: String,
    pub(crate) registry: &'static Registry,
}

/// Returns the reject cases of a family that change the documents of an order by `set` and `remove`.
pub(crate) fn rejected(family: Family) -> Vec<Rejected> {
    let text = std::fs::read_to_string(project().join(format!("fixtures/reject/{}.json", family.name()))).expect("reject cases");
    let file: Json = serde_json::from_str(&text).expect("JSON");
    let bases: Vec<Case> = fixtures_of(family).expect("accept cases");
    let cases = file["cases"].as_array().expect("cases").iter().filter_map(|case| {
        let known = ["id", "base", "why", "set", "remove", "code", "at"];
        let only_known = case.as_object()?.keys().all(|key| known.contains(&key.as_str()));
        let base = bases.iter().find(|base| only_known && case["base"] == base.id.as_str())?;
        let mut input = base.json();
        for (pointer, value) in case["set"].as_object().into_iter().flatten() {
            set(&mut input, pointer, value.clone());
        }
        for pointer in case["remove"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            let (parent, key) = pointer.rsplit_once('/')?;
            match input.pointer_mut(parent)? {
                Json::Object(members) => drop(members.remove(key)),
                Json::Array(items) => drop(items.remove(key.parse().ok()?)),
                _ => return None,
            }
        }
        let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
        Some(Rejected { id: text("id"), input: input.to_string(), at: text("at"), registry: base.registry })
    });
    cases.collect()
}
