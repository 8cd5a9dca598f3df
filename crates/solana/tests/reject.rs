//! `fixtures/reject/solana.json`: accepted cases with one change each, and the refusal that the change must meet.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use serde_json::Value as Json;
use support::{TestResult, fixtures, outcome};

fn set(line: &mut Json, pointer: &str, value: Json) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer below the root");
    line.pointer_mut(parent).and_then(Json::as_object_mut).expect(pointer).insert(key.to_owned(), value);
}

#[test]
fn each_change_meets_its_refusal() -> TestResult {
    let file: Json = serde_json::from_slice(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reject/solana.json"))?)?;
    let bases = fixtures()?;
    let mut faults = Vec::new();
    for case in file["cases"].as_array().ok_or("no cases")? {
        let id = case["id"].as_str().ok_or("no id")?;
        let base = bases.iter().find(|base| base.id == case["base"]).ok_or_else(|| format!("{id}: no base"))?;
        let mut line = base.json();
        for pointer in case["remove"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            let (parent, key) = pointer.rsplit_once('/').ok_or("the root")?;
            line.pointer_mut(parent).and_then(Json::as_object_mut).ok_or(pointer)?.remove(key).ok_or("nothing to remove")?;
        }
        for (pointer, value) in case["set"].as_object().into_iter().flatten() {
            set(&mut line, pointer, value.clone());
        }
        let got = outcome(&base.with_input(line.to_string()));
        if let Some(code) = case["warning"].as_str() {
            match got {
                Ok(got) if got["warnings"].as_array().is_some_and(|all| all.iter().any(|warning| warning["code"] == code)) => {}
                other => faults.push(format!("{id}: wanted {code}, got {other:?}")),
            }
            continue;
        }
        match got {
            Ok(_) => faults.push(format!("{id}: accepted")),
            Err(refusal)
                if (refusal.code().name(), refusal.at()) != (case["code"].as_str().unwrap_or(""), case["at"].as_str().unwrap_or("")) =>
            {
                faults.push(format!("{id}: wanted {} at {}, got {refusal}", case["code"], case["at"]));
            }
            Err(_) => {}
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}
