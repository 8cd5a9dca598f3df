//! Published cases with one change that a wallet must refuse.

use crate::{Beside, TestResult, beside, outcome, skipped};
use countersign_core::Code;
use countersign_json::JsonFamily;

/// Requires that the published cases of the family are exactly these mutations, and that each is refused with its code.
pub fn published_cases_are_refused<F: JsonFamily>(published: &[(&str, Code)]) -> TestResult {
    let cases = match beside("vectors/hostile-public.jsonl")? {
        Beside::Cases(cases) => cases,
        Beside::Absent(reason) => return skipped(&reason),
    };
    let family = format!("{}-", F::FAMILY.name());
    let mut left = published.to_vec();
    for case in cases.iter().filter(|case| case.id.starts_with(&family)) {
        let mutation = case.line.split("\"mutation\":\"").nth(1).and_then(|rest| rest.split('"').next()).ok_or("no mutation")?;
        let refusal = outcome::<F>(case).expect_err(mutation);
        let index = left.iter().position(|(known, _)| *known == mutation).ok_or_else(|| format!("{mutation}: not in the list"))?;
        assert_eq!(refusal.code(), left.swap_remove(index).1, "{mutation}: {refusal}");
    }
    assert_eq!(left, [], "not among the published cases");
    Ok(())
}
