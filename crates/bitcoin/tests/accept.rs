//! Cases whose artefacts were made by bitcoinjs-lib (`fixtures/README.md`): each must be accepted and give the
//! same bytes.

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
            const FIXED: [&str; 4] = ["unpinned_solver", "address_on_trust", "refund_key_not_yours", "amount_below_dust"];
            let mut got: Vec<_> = got["warnings"].as_array().into_iter().flatten().map(|warning| warning["code"].clone()).collect();
            got.retain(|code| code.as_str().is_some_and(|code| FIXED.contains(&code)));
            let sorted = |mut codes: Vec<Json>| {
                codes.sort_by_key(ToString::to_string);
                codes
            };
            assert_eq!(sorted(got), sorted(codes.clone()), "{}", case.id);
        }
    }
    Ok(())
}

#[test]
fn fixtures_give_their_artefacts() -> Result<(), Box<dyn Error>> {
    let cases = support::fixtures()?;
    assert!(cases.len() >= 70, "{}", cases.len());
    check(&cases, "expect")
}

#[test]
fn shared_vectors_give_their_artefacts() -> Result<(), Box<dyn Error>> {
    match support::beside("vectors/bitcoin.jsonl")? {
        Beside::Cases(cases) => check(&cases, "expected"),
        Beside::Absent(reason) => support::skipped(&reason),
    }
}
