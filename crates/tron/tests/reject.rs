//! `fixtures/reject/tron.json`: accepted cases with one change each, and the refusal that the change must meet.

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
    match line.pointer_mut(parent).expect(pointer) {
        Json::Object(members) => drop(members.insert(key.replace("~1", "/").replace("~0", "~"), value)),
        Json::Array(items) if key == "-" => items.push(value),
        Json::Array(items) => items[key.parse::<usize>().expect("an index")] = value,
        _ => panic!("{pointer}: no container"),
    }
}

#[test]
fn each_change_meets_its_refusal() -> TestResult {
    let file: Json = serde_json::from_slice(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reject/tron.json"))?)?;
    let bases = fixtures()?;
    let cases = file["cases"].as_array().ok_or("no cases")?;
    let mut faults = Vec::new();
    for case in cases {
        let id = case["id"].as_str().ok_or("no id")?;
        let base = bases.iter().find(|base| base.id == case["base"]).ok_or_else(|| format!("{id}: no base"))?;
        let mut line = base.json();
        for pointer in case["remove"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            let (parent, key) = pointer.rsplit_once('/').ok_or("the root")?;
            let parent = line.pointer_mut(parent).and_then(Json::as_object_mut).ok_or(pointer)?;
            parent.remove(key).ok_or_else(|| format!("{id}: nothing at {pointer}"))?;
        }
        for (pointer, value) in case["set"].as_object().into_iter().flatten() {
            set(&mut line, pointer, value.clone());
        }
        let mut text = line.to_string();
        for pair in case["raw"].as_array().into_iter().flatten() {
            let (from, to) = (pair[0].as_str().ok_or("no text")?, pair[1].as_str().ok_or("no text")?);
            assert!(text.contains(from), "{id}: no {from}");
            text = text.replace(from, to);
        }
        match outcome(&base.with_input(text)) {
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
