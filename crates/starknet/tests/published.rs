//! The hash that is signed is the hash of the response's own typed data: a general SNIP-12 encoder says the same.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use countersign_core::Policy;
use serde_json::Value as Json;
use starknet_core::types::Felt;
use starknet_core::types::typed_data::TypedData;
use support::{Beside, Case, TestResult, with_unsigned};

/// Cases that the encoder cannot read: JSON integers beyond 64 bits reach it as floats.
const UNREADABLE: [&str; 1] = ["starknet-message-integers"];

fn check(cases: &[Case]) -> TestResult {
    let mut hashed = 0;
    for case in cases {
        let line = case.json();
        let (result, owner) = (&line["response"]["result"], &line["request"]["source"]["owner"]);
        if result["typed_data"].is_null() {
            continue;
        }
        let ours = with_unsigned(case, &Policy::default(), |unsigned, _| {
            Ok(unsigned.payloads().typed_data.as_ref().map(|message| message.message_hash))
        })?;
        let owner = Felt::from_hex(owner.as_str().ok_or("no owner")?)?;
        match general(&result["typed_data"], owner) {
            Ok(hash) => assert_eq!(Some(hash), ours, "{}", case.id),
            Err(error) => assert!(UNREADABLE.contains(&case.id.as_str()) && error.contains("floating point"), "{}: {error}", case.id),
        }
        hashed += 1;
    }
    assert!(hashed > 5, "{hashed}");
    Ok(())
}

fn general(typed_data: &Json, owner: Felt) -> Result<Felt, String> {
    let typed_data: TypedData = serde_json::from_value(typed_data.clone()).map_err(|error| error.to_string())?;
    typed_data.message_hash(owner).map_err(|error| error.to_string())
}

#[test]
fn fixtures_hash_alike() -> TestResult {
    check(&support::fixtures()?)
}

#[test]
fn shared_vectors_hash_alike() -> TestResult {
    match support::beside("vectors/starknet.jsonl")? {
        Beside::Cases(cases) => check(&cases),
        Beside::Absent(reason) => support::skipped(&reason),
    }
}
