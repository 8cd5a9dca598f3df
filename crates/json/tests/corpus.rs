//! Every case of `fixtures/corpus`, which other projects use as it is, has the result that the corpus expects.
//!
//! `fixtures/corpus/run` does the same with the program and through pipes.
use std::collections::BTreeMap;
use std::fs;

use countersign::{FAMILIES, Policy, Registry};
use countersign_testkit::lines::{difference, output, warning_codes};
use countersign_testkit::{project, registry};
use serde_json::Value;

/// Returns how a result differs from the expected one.
fn wrong(case: &Value, got: &Value) -> Option<String> {
    let expect = &case["expect"];
    if case["result"] == "invalid" {
        let same = got["ok"] == Value::Bool(false) && got["error"]["code"] == expect["code"] && got["error"]["at"] == expect["at"];
        return (!same).then(|| format!("expected {} at {}, got {got}", expect["code"], expect["at"]));
    }
    if got["ok"] != Value::Bool(true) {
        return Some(format!("refused: {}", got["error"]));
    }
    let expected = expect["warnings"].as_array().into_iter().flatten().chain(expect.get("warning"));
    let missing = expected.filter_map(Value::as_str).find(|code| !warning_codes(got).contains(code));
    missing.map(|code| format!("no warning {code}")).or_else(|| difference(expect.get("artefacts")?, &got["artefacts"], "/artefacts"))
}

#[test]
fn every_case_of_the_corpus_has_its_result() {
    let folder = project().join("fixtures/corpus");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(Registry::from_json(read("registry.json").as_bytes()).is_ok(), "the corpus has a registry of its own");
    let mut registries = BTreeMap::new();
    let (mut cases, mut faults) = (0, Vec::new());
    for family in FAMILIES {
        for line in read(&format!("{}.jsonl", family.name())).lines() {
            let case: Value = serde_json::from_str(line).expect("a case");
            let own = case["registry"].as_str().map(|name| {
                let parse = || Registry::from_json(read(name).as_bytes()).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                &*registries.entry(name.to_owned()).or_insert_with(parse)
            });
            let policy = case.get("policy").map_or_else(Policy::default, |policy| {
                Policy::from_json(policy.to_string().as_bytes()).unwrap_or_else(|refusal| panic!("{}: {refusal}", case["id"]))
            });
            let input = case["input"].as_str().expect("an input");
            let got: Value = serde_json::from_str(&output(input.as_bytes(), own.unwrap_or(registry()), &policy)).expect("a result");
            faults.extend(wrong(&case, &got).map(|what| format!("{}: {what}", case["id"])));
            cases += 1;
        }
    }
    assert!(cases > 50, "{cases}");
    assert!(faults.is_empty(), "{} of {cases} cases:\n{}", faults.len(), faults.join("\n"));
}
