//! Cases whose artefacts were made by @solana/web3.js (`fixtures/README.md`): each must be accepted and give the same bytes.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use std::error::Error;

use serde_json::Value as Json;
use support::{Beside, Case, outcome};

/// Every case of a file gives its expected artefacts.
fn check(cases: &[Case], expected: &str) -> Result<(), Box<dyn Error>> {
    assert!(!cases.is_empty());
    for case in cases {
        let wanted = &case.whole()?[expected];
        let got = outcome(case).map_err(|refusal| format!("{}: {refusal}", case.id))?;
        assert_eq!(got["artefacts"], wanted["artefacts"], "{}", case.id);
        assert_eq!(got["order_id"], wanted["order_id"], "{}", case.id);
        if let Some(codes) = wanted["warnings"].as_array() {
            const FIXED: [&str; 4] = ["unlimited_approval", "approval_above_amount", "unpinned_solver", "swap_id_unchecked"];
            let mut got: Vec<_> = got["warnings"].as_array().into_iter().flatten().map(|warning| warning["code"].clone()).collect();
            got.retain(|code| code.as_str().is_some_and(|code| FIXED.contains(&code)));
            assert_eq!(Json::Array(got), Json::Array(codes.clone()), "{}", case.id);
        }
    }
    Ok(())
}

#[test]
fn fixtures_give_their_artefacts() -> Result<(), Box<dyn Error>> {
    let cases = support::fixtures()?;
    assert_eq!(cases.len(), 41);
    check(&cases, "expect")
}

#[test]
fn shared_vectors_give_their_artefacts() -> Result<(), Box<dyn Error>> {
    match support::beside("vectors/solana.jsonl")? {
        Beside::Cases(cases) => check(&cases, "expected"),
        Beside::Absent(reason) => support::skipped(&reason),
    }
}
