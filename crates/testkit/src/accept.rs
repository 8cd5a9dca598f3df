//! Cases whose artefacts were made by external tools. Each must be accepted and give the same bytes.

use crate::fixed::FIXED;
use crate::{Beside, Case, TestResult, beside, fixtures, generation_fixtures, outcome, skipped};
use countersign_json::JsonFamily;
use serde_json::Value as Json;

/// Requires that every case of a file gives its expected artefacts.
fn check<F: JsonFamily>(cases: &[Case], expected: &str) -> TestResult {
    assert!(!cases.is_empty());
    for case in cases {
        let wanted = &case.whole()?[expected];
        let got = outcome::<F>(case).map_err(|refusal| format!("{}: {refusal}", case.id))?;
        assert_eq!(got["artefacts"], wanted["artefacts"], "{}", case.id);
        assert_eq!(got["order_id"], wanted["order_id"], "{}", case.id);
        if let Some(codes) = wanted["warnings"].as_array() {
            let mut got: Vec<_> = got["warnings"].as_array().into_iter().flatten().map(|warning| warning["code"].clone()).collect();
            got.retain(|code| code.as_str().is_some_and(|code| FIXED.contains(&code)));
            assert_eq!(Json::Array(got), Json::Array(codes.clone()), "{}", case.id);
        }
    }
    Ok(())
}

/// Requires that the family has `count` fixtures, and that each gives its artefacts.
pub fn fixtures_give_their_artefacts<F: JsonFamily>(count: usize) -> TestResult {
    let cases = fixtures::<F>()?;
    assert_eq!(cases.len(), count);
    check::<F>(&cases, "expect")
}

/// Requires that the family has `count` fixtures for contracts of a generation, and that each gives its artefacts.
pub fn fixtures_of_a_generation_give_their_artefacts<F: JsonFamily>(generation: &str, count: usize) -> TestResult {
    let cases = generation_fixtures::<F>(generation)?;
    assert_eq!(cases.len(), count);
    check::<F>(&cases, "expect")
}

/// Requires that every shared vector of the family gives its artefacts, if the vectors are there.
pub fn shared_vectors_give_their_artefacts<F: JsonFamily>() -> TestResult {
    match beside(&format!("vectors/{}.jsonl", F::FAMILY.name()))? {
        Beside::Cases(cases) => check::<F>(&cases, "expected"),
        Beside::Absent(reason) => skipped(&reason),
    }
}
