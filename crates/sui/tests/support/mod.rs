//! What the tests of every family share, for this one.
#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a panic in a test is a failed test")]

#[path = "../../../core/tests/family/mod.rs"]
mod family;

use countersign_sui::Sui as Tested;
#[allow(unused_imports, reason = "each test file takes what it needs")]
pub(crate) use family::*;
use serde_json::Value as Json;

/// What `fixtures/generate/families/sui.mjs` made for these tests alone: other coins, and signatures from outside.
pub(crate) fn outside() -> Json {
    serde_json::from_str(include_str!("../outside.json")).expect("outside.json")
}

/// A case of `outside.json`, judged by the fixtures' registry.
pub(crate) fn outside_case(case: &Json) -> Case {
    let id = case["line"]["id"].as_str().expect("an id").to_owned();
    Case { id, input: case["line"].to_string(), line: String::new(), registry: registry() }
}
