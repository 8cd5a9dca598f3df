//! `fixtures/reject/sui.json`: accepted cases with one change each, and the refusal or warning that the change must meet.

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
use support::{TestResult, fixtures, outcome_under, registry_json, set};

/// Removals, then new values.
fn apply(value: &mut Json, change: &Json, id: &str) {
    for pointer in change["remove"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer below the root");
        let parent = value.pointer_mut(parent).and_then(Json::as_object_mut).expect(pointer);
        parent.remove(key).unwrap_or_else(|| panic!("{id}: nothing at {pointer}"));
    }
    for (pointer, new) in change["set"].as_object().into_iter().flatten() {
        set(value, pointer, new.clone());
    }
}

#[test]
fn each_change_meets_its_refusal() -> TestResult {
    let file: Json = serde_json::from_slice(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reject/sui.json"))?)?;
    let bases = fixtures()?;
    let mut faults = Vec::new();
    for case in file["cases"].as_array().ok_or("no cases")? {
        let id = case["id"].as_str().ok_or("no id")?;
        let base = bases.iter().find(|base| base.id == case["base"]).ok_or_else(|| format!("{id}: no base"))?;
        let mut line = base.json();
        apply(&mut line, case, id);
        let mut text = line.to_string();
        for pair in case["raw"].as_array().into_iter().flatten() {
            let (from, to) = (pair[0].as_str().ok_or("no text")?, pair[1].as_str().ok_or("no text")?);
            assert!(text.contains(from), "{id}: no {from}");
            text = text.replace(from, to);
        }
        let mut registry = registry_json();
        apply(&mut registry, &case["registry"], id);
        let registry = Registry::from_json(registry.to_string().as_bytes())?;
        let policy = match &case["policy"] {
            Json::Null => Policy::default(),
            policy => Policy::from_json(policy.to_string().as_bytes())?,
        };
        match (outcome_under(&base.with_input(text), &registry, &policy), case["warning"].as_str()) {
            (Ok(got), Some(wanted)) => {
                let warned = got["warnings"].as_array().into_iter().flatten().any(|warning| warning["code"] == wanted);
                if !warned {
                    faults.push(format!("{id}: no warning {wanted}"));
                }
            }
            (Ok(_), None) => faults.push(format!("{id}: accepted")),
            (Err(refusal), _) if case["code"] == refusal.code().name() && case["at"] == refusal.at() => {}
            (Err(refusal), _) => faults.push(format!("{id}: wanted {} at {}, got {refusal}", case["code"], case["at"])),
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    Ok(())
}
