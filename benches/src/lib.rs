//! What the benches of all families share: their cases, and the table of ratios that ends a run.

use std::fs;
use std::path::Path;

use criterion::Criterion;
use serde_json::Value;

/// The registry that all fixtures are judged by.
pub const REGISTRY: &str = include_str!("../../fixtures/registry.json");

/// The input part of a fixture line, as text.
///
/// # Panics
///
/// If the fixtures hold no such case: the bench would measure nothing.
pub fn case(lines: &str, id: &str) -> String {
    let start = format!("{{\"id\":\"{id}\"");
    let line = lines.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no case {id}"));
    let (input, _) = line.split_once(",\"note\":").expect("a fixture has a note");
    format!("{input}}}")
}

/// One member of a case as its own text, as a wallet receives it.
///
/// # Panics
///
/// If the case has no such member.
pub fn member(case: &str, name: &str) -> String {
    let case: Value = serde_json::from_str(case).expect("a fixture is JSON");
    serde_json::to_string(case.get(name).expect(name)).expect("JSON")
}

/// Benches of one family.
pub fn criterion() -> Criterion {
    Criterion::default().configure_from_args()
}

/// Prints the medians of this run as a table, each beside its ratio to the family's signature.
///
/// # Panics
///
/// If criterion left no estimates, as when only a part was run.
pub fn print_ratios(group: &str, baseline: &str, rows: &[&str]) {
    let Some(base) = median(group, baseline) else {
        println!("no estimates of {group}/{baseline}: run the whole bench for the table");
        return;
    };
    println!("\n| {group} | median, us | against {baseline} |\n|---|---:|---:|");
    for row in rows {
        if let Some(nanos) = median(group, row) {
            println!("| {row} | {:.2} | {:.0} % |", nanos / 1e3, nanos / base * 100.0);
        }
    }
}

fn median(group: &str, name: &str) -> Option<f64> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/target").to_owned());
    let path = Path::new(&target).join("criterion").join(group).join(name).join("new/estimates.json");
    let estimates: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    estimates.pointer("/median/point_estimate")?.as_f64()
}
