//! The published captures of live orders, and their known answers.

use countersign_core::{Code, TypedValue};
use countersign_starknet::recover::{self, Leg};
use countersign_starknet::{Felt, Gasless, Starknet, htlc};
use countersign_testkit::recover::read_record;
use countersign_testkit::{Case, TestResult, outcome, shared, shared_registry, skipped, verified};
use serde_json::{Value as Json, json};

/// A capture with request 1, to which both responses belong.
fn capture(number: u8) -> Result<Case, String> {
    let read = |name: String| Ok::<Json, String>(serde_json::from_slice(&shared(&format!("captures/{name}.json"))?).expect("JSON"));
    let bound = json!({ "max_amount": "0x1", "max_price_per_unit": "0x1" });
    let line = json!({
        "id": format!("capture {number}"),
        "request": read("starknet-create-request-1".to_owned())?,
        "response": read(format!("starknet-create-response-{number}"))?,
        "order": read(format!("starknet-order-record-{number}"))?,
        "wallet": { "nonce": "0x1", "resource_bounds": { "l1_gas": bound, "l2_gas": bound, "l1_data_gas": bound } },
    });
    Ok(Case { id: format!("capture {number}"), input: line.to_string(), line: String::new(), registry: shared_registry()? })
}

fn known(list: &str) -> Result<Json, String> {
    let answers: Json = serde_json::from_slice(&shared("known_answers.json")?).expect("JSON");
    Ok(answers[list].clone())
}

fn swap_id(case: &Case) -> Felt {
    let record = read_record(&case.json()["order"]["result"]).expect("a record");
    recover::swap_id(&record, Leg::Source, case.registry).expect("the record's swap id").0
}

#[test]
fn the_first_capture_verifies_with_its_record() -> TestResult {
    let (case, answers, ids) = match (capture(1), known("starknet_typed_data"), known("starknet_swap_id")) {
        (Ok(case), Ok(answers), Ok(ids)) => (case, answers, ids),
        (Err(reason), ..) | (_, Err(reason), _) | (.., Err(reason)) => return skipped(&reason),
    };
    let unsigned = verified::<Starknet>(&case).prepare(Gasless)?;
    let domain = unsigned.payloads().message.as_ref().map(|message| format!("{:#x}", message.hashes.domain_hash));
    assert_eq!(json!(domain), answers[0]["domain_hash"]);
    let outcome = outcome::<Starknet>(&case)?;
    assert_eq!(outcome["artefacts"]["typed_data"]["message_hash"], answers[0]["message_hash"]);
    assert_eq!(format!("{:x}", swap_id(&case)), ids[0]["swap_id"].as_str().ok_or("no id")?);
    Ok(())
}

#[test]
fn the_second_captures_domain_is_not_the_contracts() -> TestResult {
    let (case, answers, ids) = match (capture(2), known("starknet_typed_data"), known("starknet_swap_id")) {
        (Ok(case), Ok(answers), Ok(ids)) => (case, answers, ids),
        (Err(reason), ..) | (_, Err(reason), _) | (.., Err(reason)) => return skipped(&reason),
    };
    let refusal = outcome::<Starknet>(&case).expect_err("version 1 is a number");
    assert_eq!((refusal.code(), refusal.location()), (Code::TypedDataDomain, "/response/result/typed_data/domain/version"));
    let shown = [refusal.expected(), refusal.actual()].map(|value| value.map(TypedValue::to_string));
    assert_eq!(shown, [Some("\"1\" (0x31)".to_owned()), Some("0x1".to_owned())]);
    assert!(refusal.message().contains("would refuse the signature"), "{refusal}");

    // Everything else is valid.
    let mut line = case.json();
    line["response"]["result"]["typed_data"]["domain"]["version"] = json!("0x31");
    let mended = outcome::<Starknet>(&case.with_input(line.to_string()))?;
    assert_eq!(mended["artefacts"]["typed_data"]["message_hash"], answers[1]["message_hash_if_version_felt_is_0x31"]);
    assert_eq!(format!("{:x}", swap_id(&case)), ids[1]["swap_id"].as_str().ok_or("no id")?);
    Ok(())
}

#[test]
fn selectors_are_the_known_ones() -> TestResult {
    let selectors = match known("selectors") {
        Ok(selectors) => selectors["starknet"].clone(),
        Err(reason) => return skipped(&reason),
    };
    for (name, selector) in [
        ("initiate", htlc::INITIATE),
        ("approve", htlc::APPROVE),
        ("initiate_on_behalf", htlc::INITIATE_ON_BEHALF),
        ("initiate_with_signature", htlc::INITIATE_WITH_SIGNATURE),
        ("redeem", htlc::REDEEM),
        ("refund", htlc::REFUND),
        ("instant_refund", htlc::INSTANT_REFUND),
    ] {
        assert_eq!(selectors[name], format!("{selector:#x}"), "{name}");
    }
    Ok(())
}
