//! Cases whose artefacts were made outside: each must be accepted and give the same bytes.

use super::fixed::FIXED;
use super::{Beside, Case, TestResult, Tested, beside, fixtures, outcome, skipped};
use countersign_core::ChainFamily;
use serde_json::Value as Json;

/// Every case of a file gives its expected artefacts.
fn check(cases: &[Case], expected: &str) -> TestResult {
    assert!(!cases.is_empty());
    for case in cases {
        let wanted = &case.whole()?[expected];
        let got = outcome(case).map_err(|refusal| format!("{}: {refusal}", case.id))?;
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

/// The fixtures of the family, of which there are this many, give their artefacts.
pub(crate) fn fixtures_give_their_artefacts(count: usize) -> TestResult {
    let cases = fixtures()?;
    assert_eq!(cases.len(), count);
    check(&cases, "expect")
}

pub(crate) fn shared_vectors_give_their_artefacts() -> TestResult {
    match beside(&format!("vectors/{}.jsonl", Tested::FAMILY.name()))? {
        Beside::Cases(cases) => check(&cases, "expected"),
        Beside::Absent(reason) => skipped(&reason),
    }
}
