//! Checks that all contenders sign the same before anything is timed. Signatures and transactions must be equal byte
//! for byte.

use std::collections::BTreeMap;

use countersign_benches::orders::Artefacts;
use serde_json::Value;

use crate::cases::Cases;
use crate::measure::{contenders, run};
use crate::{Outcome, say};

/// The artefacts that a contender must produce if ours does. Others are optional.
const FINAL: [&str; 3] = ["signed", "signature", "submission"];

/// Compares every contender with the batch path.
pub(crate) fn all(families: &[Cases], javascript: bool) -> Outcome<()> {
    for cases in families {
        let ours = signed("batch", cases)?;
        for contender in contenders(cases.family, javascript).into_iter().filter(|contender| *contender != "batch") {
            let theirs = signed(contender, cases)?;
            if ours.len() != cases.lines.len() || ours.len() != theirs.len() {
                return Err(format!("{}: {contender} did not sign every order", cases.family).into());
            }
            for (id, ours) in &ours {
                same(ours, &theirs[id]).map_err(|at| format!("{id}: {contender} signs something else at {at}"))?;
            }
            say(&format!("{}: {contender} signs the same in all {} orders", cases.family, ours.len()));
        }
    }
    Ok(())
}

fn signed(contender: &str, cases: &Cases) -> Outcome<BTreeMap<String, Artefacts>> {
    let lines = run(contender, cases.family, &cases.file, None)?;
    let signed = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line)?;
        let id = line["id"].as_str().ok_or("a line without an id")?.to_owned();
        Ok((id, serde_json::from_value(line["artefacts"].clone())?))
    });
    signed.collect()
}

/// Checks that everything they produced equals ours, and that they produced every signature.
fn same(ours: &Artefacts, theirs: &Artefacts) -> Result<(), String> {
    let different = theirs.iter().find(|(at, text)| ours.get(*at) != Some(text)).map(|(at, _)| at);
    let is_final = |at: &str| at.split('/').any(|name| FINAL.contains(&name));
    let missing = ours.keys().find(|at| is_final(at) && !theirs.contains_key(*at));
    different.or(missing).map_or(Ok(()), |at| Err(at.clone()))
}
