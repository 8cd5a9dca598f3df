//! Every order gives its expected bytes, and every tampered one is refused as expected.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use countersign::{Context, FAMILIES, Family, Key, Policy, Refusal, RequestId, Unsigned};
use countersign_json::Artefacts;
use countersign_orders::{Order, orders, tampered};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// In these the line of the batch is wrong: there is no response, or there are two.
const WITHOUT_A_RESPONSE: [&str; 2] = ["reject/line-without-response", "reject/duplicate-response"];

/// The number of orders with artefacts and of tampered ones, in the files of the package.
fn in_the_corpus(family: Family) -> (usize, usize) {
    let text = std::fs::read_to_string(format!("{}/corpus/{}.jsonl", env!("CARGO_MANIFEST_DIR"), family.name())).unwrap();
    let cases: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |is_one: &dyn Fn(&Json) -> bool| cases.iter().filter(|case| is_one(case)).count();
    let is_lie = |case: &Json| case["result"] == "invalid" && ["response", "record"].map(Json::from).contains(&case["changed"]);
    let has_own = |case: &Json, name: &str| case.get(name).is_some();
    let is_json = |case: &Json| serde_json::from_str::<&RawValue>(case["input"].as_str().unwrap()).is_ok();
    let is_whole = |case: &Json| is_json(case) && !WITHOUT_A_RESPONSE.contains(&case["id"].as_str().unwrap());
    let tampered = |case: &Json| is_lie(case) && !has_own(case, "policy") && !has_own(case, "registry") && is_whole(case);
    (count(&|case| case["expect"]["artefacts"].is_object()), count(&tampered))
}

fn prepare(order: &Order) -> Result<Unsigned, Refusal> {
    countersign::verify(order.proposal(), &order.registry, &Policy::default())?.prepare(&order.context)
}

/// Checks what was prepared, and signed if there is a key, against every value of the artefacts. Returns how many values were compared.
fn compare(order: &Order, unsigned: Unsigned) -> usize {
    let all = serde_json::to_value(Artefacts(&unsigned)).unwrap();
    let requests = unsigned.requests();
    let mut fresh = prepare(order).unwrap();
    let mut compared = 0;
    for artefact in &order.artefacts {
        let id = &order.id;
        assert_eq!(all[&artefact.name], serde_json::from_str::<Json>(&artefact.json).unwrap(), "{id}");
        if let Ok(name) = artefact.name.parse::<RequestId>() {
            let request = requests.iter().find(|request| request.id == name).expect("a request of this name");
            // On Sui the three bytes of an intent come first.
            let payload = artefact.payload.as_ref().map(|payload| match order.family {
                Family::Sui => [&[0; 3], payload.as_slice()].concat(),
                _ => payload.clone(),
            });
            for (expected, actual) in [(payload, &request.message), (artefact.digest.map(Vec::from), &request.digest)] {
                compared += expected.iter().inspect(|expected| assert_eq!(*expected, actual, "{id}")).count();
            }
            if let Some(signature) = &artefact.signature {
                fresh.attach_text(name, signature).unwrap_or_else(|refusal| panic!("{id}: {refusal}"));
                compared += 1;
            }
        }
    }
    if let Unsigned::Bitcoin(own) = &unsigned {
        let payment = own.payloads().payment.as_ref();
        assert_eq!(order.artefacts[0].payload, payment.map(|payment| payment.unsigned_bytes()), "{}", order.id);
        compared += 1;
    }
    let Ok(signed) = unsigned.finish() else { return compared };
    for transaction in signed.transactions() {
        let expected = order.artefact(transaction.role).unwrap_or_else(|| panic!("{}: {}", order.id, transaction.role));
        compared += expected.id.iter().inspect(|expected| assert_eq!(**expected, transaction.id, "{}", order.id)).count();
        compared += expected.signed.iter().inspect(|expected| assert_eq!(**expected, transaction.bytes, "{}", order.id)).count();
    }
    compared
}

#[test]
fn every_order_gives_its_expected_bytes() {
    for &family in FAMILIES {
        let orders: Vec<_> = orders(family).collect();
        assert_eq!(orders.len(), in_the_corpus(family).0, "{}", family.name());
        for order in &orders {
            let mut unsigned = prepare(order).unwrap_or_else(|refusal| panic!("{}: {refusal}", order.id));
            assert_eq!(unsigned.family(), family);
            if let Some(key) = &order.key {
                let key = Key::parse(family, key).unwrap();
                unsigned.sign(&key).unwrap_or_else(|refusal| panic!("{}: {refusal}", order.id));
            }
            assert!(compare(order, unsigned) > 0, "{}: nothing was compared", order.id);
            assert!(!order.note.is_empty() && !order.source.is_empty(), "{}", order.id);
        }
        assert!(orders.iter().any(|order| order.must_sign && order.record.is_some()), "{}", family.name());
    }
}

#[test]
fn every_tampered_order_is_refused_with_its_code() {
    for &family in FAMILIES {
        let honest: BTreeSet<_> = orders(family).map(|order| order.id).collect();
        let all: Vec<_> = tampered(family).collect();
        assert_eq!(all.len(), in_the_corpus(family).1, "{}", family.name());
        for case in &all {
            let id = &case.order.id;
            let refusal = prepare(&case.order).err().unwrap_or_else(|| panic!("{id}: accepted"));
            let (location, _) =
                refusal.location().split_once('#').filter(|_| case.code.starts_with("json_")).unwrap_or((refusal.location(), ""));
            assert_eq!((refusal.code().name(), location), (case.code.as_str(), case.location.as_str()), "{id}");
            assert!(honest.contains(&case.base), "{id}: no {}", case.base);
            assert!(!case.order.must_sign && case.order.artefacts.is_empty(), "{id}");
        }
    }
}

#[test]
fn ids_are_unique() {
    let mut seen = BTreeSet::new();
    let all = FAMILIES.iter().flat_map(|family| orders(*family).chain(tampered(*family).map(|case| case.order)));
    for order in all {
        assert!(seen.insert(order.id.clone()), "{} occurs twice", order.id);
    }
    assert!(seen.len() > 1000, "{}", seen.len());
}

#[test]
fn contexts_and_keys_are_read_back() {
    for order in FAMILIES.iter().flat_map(|family| orders(*family)) {
        let kept = serde_json::to_string(&order.context).unwrap();
        assert_eq!(serde_json::from_str::<Context>(&kept).unwrap(), order.context, "{}", order.id);
        assert_eq!(order.context.family(), order.family);
        let Some(key) = &order.key else { continue };
        Key::parse(order.family, key).unwrap_or_else(|refusal| panic!("{}: {refusal}", order.id));
        assert!(!format!("{order:?} {order:#?}").contains(key.trim_start_matches("0x")), "{} shows its key", order.id);
    }
}

/// The documents are what the service sent, not another text of the same meaning.
#[test]
fn documents_keep_their_spelling() {
    for &family in FAMILIES {
        let text = std::fs::read_to_string(format!("{}/corpus/{}.jsonl", env!("CARGO_MANIFEST_DIR"), family.name())).unwrap();
        let mut inputs = text.lines().map(|line| {
            let case: Json = serde_json::from_str(line).unwrap();
            (case["id"].as_str().unwrap().to_owned(), case["input"].as_str().unwrap().to_owned())
        });
        for order in orders(family) {
            let (_, input) = inputs.find(|(id, _)| *id == order.id).expect("in the order of the file");
            for document in [&order.request_json, &order.response].into_iter().chain(&order.record) {
                assert!(input.contains(document.as_str()), "{}", order.id);
            }
            assert_eq!(
                order.record.is_some(),
                serde_json::from_str::<Json>(&input).unwrap().get("order").is_some_and(|order| *order != json!(null))
            );
        }
    }
}
