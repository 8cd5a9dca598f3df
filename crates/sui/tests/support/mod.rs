//! Shared code of this crate's tests.
#![allow(dead_code, reason = "each test file takes what it needs")]

use countersign_sui::Coin;
use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference};
use countersign_testkit::{Case, registry};
use serde_json::Value as Json;

/// Cases that `fixtures/generate/families/sui.mjs` made only for these tests: other coins, and signatures of other signers.
pub(crate) fn outside() -> Json {
    serde_json::from_str(include_str!("../outside.json")).expect("outside.json")
}

/// Returns a case of `outside.json` with the fixtures' registry.
pub(crate) fn outside_case(case: &Json) -> Case {
    let id = case["line"]["id"].as_str().expect("an id").to_owned();
    Case { id, input: case["line"].to_string(), line: String::new(), registry: registry() }
}

/// Returns a coin whose id consists of one byte, with a balance in MIST.
pub(crate) fn coin(id: u8, balance: u64) -> Coin {
    Coin::new(ObjectReference::new(Address::new([id; 32]), 1, Digest::new([id; 32])), balance)
}
