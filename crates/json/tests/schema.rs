//! The fixtures follow their JSON Schemas, by which other tools read the files.
use std::fs;
use std::path::{Path, PathBuf};

use countersign_testkit::project;
use jsonschema::Validator;
use serde_json::{Value, json};

type Change = fn(&mut Value);

fn fixtures() -> PathBuf {
    project().join("fixtures")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schema(name: &str) -> Validator {
    let schema: Value = serde_json::from_str(&read(&fixtures().join(name))).unwrap();
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name} is not a schema: {error}"))
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

fn errors(schema: &Validator, value: &Value) -> Vec<String> {
    schema.iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path)).collect()
}

#[test]
fn every_accept_line_has_the_form_of_a_case() {
    let schema = schema("case.schema.json");
    let files = files("accept", "jsonl");
    assert!(!files.is_empty());
    for path in files {
        for line in read(&path).lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let errors = errors(&schema, &case);
            assert!(errors.is_empty(), "{}: {}: {errors:#?}", path.display(), case["id"]);
        }
    }
}

#[test]
fn every_reject_file_has_its_form() {
    let schema = schema("reject.schema.json");
    let files = files("reject", "json");
    assert!(!files.is_empty());
    for path in files {
        let file: Value = serde_json::from_str(&read(&path)).unwrap();
        let errors = errors(&schema, &file);
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

#[test]
fn a_broken_accept_line_does_not_pass() {
    let schema = schema("case.schema.json");
    let text = read(&fixtures().join("accept/evm.jsonl"));
    let good: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(schema.is_valid(&good));
    let breaks: [(&str, Change); 9] = [
        ("no source", |case| drop(case.as_object_mut().unwrap().remove("source"))),
        ("no note", |case| drop(case.as_object_mut().unwrap().remove("note"))),
        ("unknown member", |case| case["expected"] = json!({})),
        ("unknown member of the request", |case| case["request"]["amount"] = json!("1")),
        ("amount as a number", |case| case["request"]["source"]["amount"] = json!(1)),
        ("status", |case| case["response"]["status"] = json!("Error")),
        ("warning that no case fixes", |case| case["expect"]["warnings"] = json!(["no_order_record"])),
        ("artefacts of another family", |case| case["expect"]["family"] = json!("tron")),
        ("upper-case hex", |case| case["expect"]["artefacts"]["initiate"]["signing_hash"] = json!(format!("0x{}", "AB".repeat(32)))),
    ];
    for (what, change) in breaks {
        let mut case = good.clone();
        change(&mut case);
        assert!(!schema.is_valid(&case), "{what}");
    }
}

#[test]
fn a_broken_reject_file_does_not_pass() {
    let schema = schema("reject.schema.json");
    let good = json!({ "id": "a", "base": "evm-x", "why": "w", "remove": ["/order"], "code": "missing_field", "at": "/order/x#4-36" });
    let warned = json!({ "id": "a", "base": "evm-x", "why": "w", "registry": { "remove": ["/solvers"] }, "warning": "unpinned_solver" });
    let valid = |case: &Value| schema.is_valid(&json!({ "cases": [case] }));
    assert!(valid(&good) && valid(&warned));
    assert!(!schema.is_valid(&json!({ "cases": [] })));
    let breaks: [(&str, &Value, Change); 11] = [
        ("nothing changes", &good, |case| drop(case.as_object_mut().unwrap().remove("remove"))),
        ("no reason", &good, |case| case["why"] = json!("")),
        ("no code", &good, |case| drop(case.as_object_mut().unwrap().remove("code"))),
        ("no place", &good, |case| drop(case.as_object_mut().unwrap().remove("at"))),
        ("internal is no rule", &good, |case| case["code"] = json!("internal")),
        ("code in another spelling", &good, |case| case["code"] = json!("MissingField")),
        ("place that is no pointer", &good, |case| case["at"] = json!("order")),
        ("base of no family", &good, |case| case["base"] = json!("doge-x")),
        ("refusal and warning", &good, |case| case["warning"] = json!("unpinned_solver")),
        ("warning with a place", &warned, |case| case["at"] = json!("/order")),
        ("empty change of the registry", &warned, |case| case["registry"] = json!({})),
    ];
    for (what, base, change) in breaks {
        let mut case = base.clone();
        change(&mut case);
        assert!(!valid(&case), "{what}");
    }
}
