//! `fixtures/reject/starknet.json`: accepted cases with one change each, and the refusal or warning that it must meet.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use countersign_core::{Policy, Registry};
use serde_json::Value as Json;
use support::{Case, TestResult, fixtures, outcome_under};

fn edit(document: &mut Json, change: &Json) {
    for pointer in change["remove"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer below the root");
        match document.pointer_mut(parent).expect(pointer) {
            Json::Object(members) => drop(members.remove(key).expect(pointer)),
            Json::Array(items) => drop(items.remove(key.parse::<usize>().expect("an index"))),
            _ => panic!("{pointer}: no container"),
        }
    }
    for (pointer, value) in change["set"].as_object().into_iter().flatten() {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer below the root");
        match document.pointer_mut(parent).expect(pointer) {
            Json::Object(members) => drop(members.insert(key.replace("~1", "/").replace("~0", "~"), value.clone())),
            Json::Array(items) if key == "-" => items.push(value.clone()),
            Json::Array(items) => items[key.parse::<usize>().expect("an index")] = value.clone(),
            _ => panic!("{pointer}: no container"),
        }
    }
}

fn project(path: &str) -> Result<Json, Box<dyn std::error::Error>> {
    Ok(serde_json::from_slice(&std::fs::read(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR")))?)?)
}

#[test]
fn each_change_meets_its_refusal_or_warning() -> TestResult {
    let file = project("fixtures/reject/starknet.json")?;
    let bases = fixtures()?;
    let mut faults = Vec::new();
    for case in file["cases"].as_array().ok_or("no cases")? {
        let id = case["id"].as_str().ok_or("no id")?;
        let base = bases.iter().find(|base| base.id == case["base"]).ok_or_else(|| format!("{id}: no base"))?;
        let mut line = base.json();
        edit(&mut line, case);
        let mut text = line.to_string();
        for pair in case["raw"].as_array().into_iter().flatten() {
            let (from, to) = (pair[0].as_str().ok_or("no text")?, pair[1].as_str().ok_or("no text")?);
            assert!(text.contains(from), "{id}: no {from}");
            text = text.replace(from, to);
        }
        let mut changed = base.with_input(text);
        if !case["registry"].is_null() {
            let mut registry = project("fixtures/registry.json")?;
            edit(&mut registry, &case["registry"]);
            // A test may leak.
            changed = Case { registry: Box::leak(Box::new(Registry::from_json(registry.to_string().as_bytes())?)), ..changed };
        }
        let policy = match &case["policy"] {
            Json::Null => Policy::default(),
            policy => Policy::from_json(policy.to_string().as_bytes())?,
        };
        match (outcome_under(&changed, &policy), case["warning"].as_str()) {
            (Ok(outcome), Some(warning)) => {
                let codes: Vec<_> = outcome["warnings"].as_array().into_iter().flatten().map(|warning| warning["code"].clone()).collect();
                if !codes.iter().any(|code| code == warning) {
                    faults.push(format!("{id}: accepted with {codes:?}"));
                }
            }
            (Ok(_), None) => faults.push(format!("{id}: accepted")),
            (Err(refusal), None) if case["code"] == refusal.code().name() && case["at"] == refusal.at() => {}
            (Err(refusal), _) => faults.push(format!("{id}: wanted {} at {}, got {refusal}", case["code"], case["at"])),
        }
    }
    assert!(faults.is_empty(), "{} cases:\n{}", faults.len(), faults.join("\n"));
    Ok(())
}
