//! The floor of an order: the cryptography that it cannot avoid, done with the families' libraries, and nothing else.
//! [`families`](crate::families) has the list.
//!
//! The signed data and the results are read from the fixtures. A floor whose signatures differ from the expected ones
//! is refused. Parsing, comparing, explaining and writing an order are not part of the floor. They are what is
//! measured against it.

mod record;

use std::hint::black_box;

use countersign::{Policy, Registry};
use countersign_json::line::Outcome;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::families::Counted;
use crate::steps::REGISTRY;

/// A cryptographic operation with its input.
pub(crate) type Work = Box<dyn Fn()>;

/// A family's fixture, as `batch` reads it, with its floor.
pub(crate) struct Order {
    line: String,
    floor: Vec<Work>,
}

/// Returns the orders of a family: every accepted fixture that is signed, for a secret hash in the request. Orders
/// whose address has to be searched among possible timelocks and keys are left out, because each of them counts like
/// a hundred others.
pub(crate) fn orders(family: &Counted) -> Vec<Order> {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    let cases = family.lines.lines().map(|line| (line, serde_json::from_str::<Value>(line).expect("a fixture is JSON")));
    let is_whole = |case: &Value| !case["wallet"]["secret_key"].is_null() && !case["request"]["secret_hash"].is_null();
    // With a permission, keys other than the case's own sign.
    let is_own = |case: &Value| case["wallet"]["permission"].is_null();
    let whole = cases.filter(|(_, case)| is_whole(case) && is_own(case) && !text(&case["id"]).contains("search"));
    let orders = whole.map(|(line, case)| {
        // The rest of a fixture states the expected result.
        let (input, _) = line.split_once(",\"note\":").expect("a fixture has a note");
        Order { line: format!("{input}}}"), floor: record::floor(&case, &registry).into_iter().chain((family.floor)(&case)).collect() }
    });
    orders.collect()
}

/// Processes each order from its input line to its result line: once while checking the result, then `times` times.
pub(crate) fn take_whole(orders: &[Order], times: u32) {
    let (registry, policy) = (Registry::from_json(REGISTRY.as_bytes()).expect("fixture"), Policy::default());
    let mut output = Vec::new();
    let take = |order: &Order, output: &mut Vec<u8>| {
        output.clear();
        let outcome = Outcome::from_line(black_box(order.line.as_bytes()), &registry, &policy);
        serde_json::to_writer(black_box(output), &outcome).expect("memory");
    };
    for order in orders {
        take(order, &mut output);
        let result: Value = serde_json::from_slice(&output).expect("JSON");
        assert_eq!(result["ok"], true, "{result}");
    }
    (0..times).flat_map(|_| orders).for_each(|order| take(order, &mut output));
}

/// Runs the floor of each order once, then `times` times.
pub(crate) fn take_floor(orders: &[Order], times: u32) {
    (0..=times).flat_map(|_| orders).flat_map(|order| &order.floor).for_each(|work| work());
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("text, not {value}"))
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(text(value)).expect("hex")
}

pub(crate) fn bytes32(value: &Value) -> [u8; 32] {
    bytes(value).try_into().expect("32 bytes")
}

pub(crate) fn sha256(bytes: Vec<u8>) -> Work {
    Box::new(move || _ = black_box(Sha256::digest(black_box(&bytes))))
}

/// Returns the artefacts of an order that are present.
pub(crate) fn artefacts(case: &Value) -> impl Iterator<Item = (&String, &Value)> {
    case["expect"]["artefacts"].as_object().expect("artefacts").iter().filter(|(_, artefact)| !artefact.is_null())
}
