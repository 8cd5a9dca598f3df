//! What the tests of every family share, for this one.
#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::expect_used, reason = "a panic in a test is a failed test")]

#[path = "../../../core/tests/family/mod.rs"]
mod family;

use countersign_bitcoin::Bitcoin as Tested;
use countersign_core::wire::OrderRecord;
#[allow(unused_imports, reason = "each test file takes what it needs")]
pub(crate) use family::*;
use serde_json::Value as Json;

/// Reads an order record from its JSON.
pub(crate) fn record(order: &Json) -> OrderRecord {
    recover::read_record(order).expect("a record")
}

/// Bytes of hex.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex).expect("hex")
}

/// 32 bytes of hex.
pub(crate) fn array(hex: &str) -> [u8; 32] {
    bytes(hex).try_into().expect("32 bytes")
}
