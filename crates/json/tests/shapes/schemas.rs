//! The JSON Schemas describe what is read and written: fixtures, and what the objects return, follow them.

use std::fs;

use countersign::{FAMILIES, Policy};
use countersign_json::objects::{self, Documents, Quorum, words};
use countersign_testkit::lines::{accepted, accepted_case, run};
use countersign_testkit::{Case, project, registry_json};
use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{OUTPUTS, find};
use crate::schema;

/// Returns the validator of a schema's root, or of one of its definitions.
pub(crate) fn validator(file: &str, definition: Option<&str>) -> Validator {
    let (_, text) = schema::write().into_iter().find(|(name, _)| *name == file).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    if let Some(name) = definition {
        assert!(schema["$defs"][name].is_object(), "{file}: no {name}");
        schema["$ref"] = format!("#/$defs/{name}").into();
    }
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn valid(schema: &Validator, value: &impl Serialize, what: &str) {
    let value = serde_json::to_value(value).unwrap();
    let errors: Vec<_> = schema.iter_errors(&value).map(|error| format!("{error} at {}", error.instance_path)).collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}");
}

/// Returns the value with another value at a pointer.
fn with(value: &Value, pointer: &str, other: Value) -> Value {
    let mut changed = value.clone();
    countersign_testkit::set(&mut changed, pointer, other);
    changed
}

/// Returns the value without one member.
fn without(value: &Value, member: &str) -> Value {
    let mut changed = value.clone();
    changed.as_object_mut().unwrap().remove(member).unwrap();
    changed
}

/// Returns the name of the shape of the family whose name `id` begins with.
pub(crate) fn shape_of(id: &str, suffix: &str) -> String {
    let family = id.split('-').next().unwrap();
    format!("{}{}{suffix}", family[..1].to_uppercase(), &family[1..])
}

/// Calls `read` with the documents of a case.
pub(crate) fn documents_of<T>(case: &Case, read: impl FnOnce(&Documents<'_>) -> T) -> T {
    let tree = case.tree();
    let text = |member: &str| tree.at(member).map(|part| part.text().into_bytes());
    let (request, response, record) = (text("/request").unwrap(), text("/response").unwrap(), text("/order"));
    read(&Documents::new(&request, &response).with_record(record.as_deref()))
}

#[test]
fn accepted_cases_and_their_results_follow_the_schemas() {
    let (request, result) = (validator("request", None), validator("result", None));
    for family in FAMILIES {
        let wallet = validator("inputs", Some(&shape_of(family.name(), "Wallet")));
        for case in accepted(*family) {
            let line = case.json();
            valid(&request, &line["request"], &case.id);
            valid(&wallet, &line["wallet"], &case.id);
            valid(&result, &run(&case.input), &case.id);
        }
    }
    valid(&result, &run(r#"{"id": "1", "request": {}, "response": {}}"#), "a refused case");
    valid(&result, &run("{"), "a line that is not JSON");
    let accepted = run(&accepted(FAMILIES[0])[0].input);
    for wrong in
        [json!({}), without(&accepted, "warnings"), with(&accepted, "/ok", json!(false)), with(&accepted, "/family", json!("doge"))]
    {
        assert!(!result.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn a_request_of_another_form_does_not_pass() {
    let schema = validator("request", None);
    let good = accepted(FAMILIES[0])[0].json()["request"].take();
    assert!(schema.is_valid(&good));
    for wrong in [
        without(&good, "source"),
        with(&good, "/source/amount", json!(5)),
        with(&good, "/source/amount", json!("05")),
        with(&good, "/destination/asset", json!("btc")),
        with(&good, "/slippage", json!(1.5)),
        with(&good, "/affiliate_fees", json!([{ "asset": "a:b", "fee": 1 }])),
        with(&good, "/secret_hash", json!("abc")),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn the_registry_of_the_fixtures_follows_its_schema() {
    let schema = validator("registry", None);
    let good = registry_json();
    valid(&schema, &good, "fixtures/registry.json");
    for (at, wrong) in [
        ("/chains", Value::Null),
        ("/chains/0/chain", json!(1)),
        ("/assets/0/decimals", json!("8")),
        ("/assets/0/htlc", json!("0x00")),
        ("/solvers/0/address", json!([])),
    ] {
        assert!(!schema.is_valid(&with(&good, at, wrong)), "{at}");
    }
}

#[test]
fn the_schema_of_a_policy_has_exactly_its_members() {
    let schema = validator("policy", None);
    let default = serde_json::to_value(Policy::default()).unwrap();
    valid(&schema, &default, "the default policy");
    let mut listed: Vec<_> = find("Policy").fields.iter().map(|field| field.name).collect();
    let mut members: Vec<_> = default.as_object().unwrap().keys().map(String::as_str).collect();
    listed.sort_unstable();
    members.sort_unstable();
    assert_eq!(listed, members);
    let rule = json!({ "finality": "safe", "settle": 1, "margin": 2 });
    for good in
        [json!({}), json!({ "finality": { "base": rule } }), json!({ "approvals": "exact", "refused_warnings": ["unpinned_solver"] })]
    {
        assert!(schema.is_valid(&good) && objects::policy(good.to_string().as_bytes()).is_ok(), "{good}");
    }
    for wrong in [
        json!({ "evm_timelok": 1 }),
        json!({ "evm_timelock": "1" }),
        json!({ "approvals": "any" }),
        json!({ "refused_warnings": ["no_such_code"] }),
        json!({ "finality": { "base": without(&rule, "margin") } }),
        json!({ "finality": { "base": with(&rule, "/depth", json!(1)) } }),
        json!({ "max_timelock_seconds": { "base": "1" } }),
    ] {
        assert!(!schema.is_valid(&wrong) && objects::policy(wrong.to_string().as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn what_the_objects_return_follows_its_schema() {
    let schemas: Vec<_> = OUTPUTS.iter().map(|shape| (shape.name, validator("objects", Some(shape.name)))).collect();
    let of = |name: &str| &schemas.iter().find(|(known, _)| *known == name).unwrap().1;
    let (mut signed, policy) = (0, Policy::default());
    for family in FAMILIES {
        for case in accepted(*family) {
            let id = &case.id;
            let order = documents_of(&case, |documents| objects::verify(documents, case.registry, &policy).unwrap());
            let mut unsigned = objects::prepare(&order, case.tree().at("/wallet").unwrap().text().as_bytes()).unwrap();
            valid(of("Terms"), &objects::terms(&order.terms()), id);
            objects::summary(&unsigned.summary()).iter().for_each(|line| valid(of("Line"), line, id));
            objects::warnings(unsigned.warnings()).iter().for_each(|notice| valid(of("Notice"), notice, id));
            objects::coverage(order.coverage()).iter().for_each(|coverage| valid(of("Coverage"), coverage, id));
            objects::requests(&unsigned).iter().for_each(|request| valid(of("Request"), request, id));
            if case.json().get("order").is_some() {
                let record = documents_of(&case, |documents| objects::verify_record(documents, case.registry, &policy).unwrap());
                let terms = |leg| objects::htlc_terms(&record, leg).unwrap();
                ["source", "destination"].map(terms).iter().for_each(|terms| valid(of("HtlcTerms"), terms, id));
            }
            // A sponsor's signature may still be missing.
            let is_signed = case.secret_key().is_some_and(|key| objects::sign(&mut unsigned, &key).is_ok());
            if is_signed && let Ok(order) = objects::finish(unsigned) {
                objects::transactions(&order).iter().for_each(|transaction| valid(of("Transaction"), transaction, id));
                signed += 1;
            }
        }
    }
    assert!(signed > 10 * FAMILIES.len(), "{signed}");
}

/// Returns the conversations of readers with their outcomes, which `tests/readers.rs` proves.
fn conversations() -> Vec<Value> {
    let files = FAMILIES.iter().map(|family| project().join(format!("fixtures/readers/{}.jsonl", family.name())));
    let lines = files.flat_map(|path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>());
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

#[test]
fn what_readers_find_follows_its_schema() {
    let state = validator("objects", Some("Htlc"));
    let has = |set: &str, word: &Value| words::of(set).iter().any(|known| word == known);
    let mut seen = 0;
    for line in conversations() {
        let (outcome, case) = (&line["outcome"], &line["case"]);
        if outcome["state"].is_object() {
            valid(&state, &outcome["state"], &case.to_string());
            assert!(
                !state.is_valid(&with(&outcome["state"], "/state", json!("funded")))
                    && !state.is_valid(&without(&outcome["state"], "depth"))
            );
            seen += 1;
        }
        let fault = &outcome["fault"];
        assert!(fault.is_null() || has("FaultCode", fault) || has("Code", fault), "{case}: {fault}");
        let hold = &outcome["verdict"]["code"];
        assert!(hold.is_null() || has("HoldCode", hold), "{case}: {hold}");
    }
    assert!(seen > 3 * FAMILIES.len(), "{seen}");
}

#[test]
fn the_proof_of_funding_follows_its_schema() {
    let Some(line) = conversations().into_iter().find(|line| line["case"] == "funded") else { panic!("no order is funded") };
    let case = accepted_case(line["fixture"].as_str().unwrap());
    let record = documents_of(&case, |documents| objects::verify_record(documents, case.registry, &Policy::default()).unwrap());
    let mut reader = record.reader(line["leg"].as_str().unwrap(), "one", b"", line["protocol"].as_str()).unwrap();
    for round in line["rounds"].as_array().unwrap() {
        reader.answer(objects::answers(round["answers"].to_string().as_bytes()).unwrap()).unwrap();
    }
    let mut quorum = Quorum::new(["one"], 1).unwrap();
    quorum.hear(&reader);
    valid(&validator("objects", Some("Proof")), &record.judge(&quorum, line["now"].as_u64().unwrap()).unwrap(), &case.id);
}
