//! The tables in Markdown.

use std::fmt::Write;

use countersign_benches::families::{self, Compared, Group};
use countersign_benches::family;

use crate::Outcome;
use crate::results::{FamilyResult, Ratio, Results};

/// Returns every table with the name of its marker in the README.
pub(crate) fn all(results: &Results) -> Vec<(&'static str, String)> {
    vec![
        ("machine", format!("{}\n", results.machine.describe())),
        ("overview", overview(results)),
        ("paths", paths(results)),
        ("aims", aims(results)),
        ("steps", steps(results)),
        ("start", cold_start(results)),
    ]
}

/// Inserts a table between the two comments that mark its place.
pub(crate) fn replace(readme: &str, name: &str, table: &str) -> Outcome<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let place = readme.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = place.ok_or_else(|| format!("README.md has no place for {name}"))?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

fn compared(result: &FamilyResult) -> &'static Compared {
    families::of(family(result.family))
}

fn times(ratio: Option<Ratio>) -> String {
    ratio.map_or("-".to_owned(), |Ratio { best, median }| format!("{} ({})", in_digits(best), in_digits(median)))
}

/// Formats a ratio. A ratio near one gets more than one digit.
pub(crate) fn in_digits(ratio: f64) -> String {
    if ratio < 2.0 { format!("{ratio:.2}") } else { format!("{ratio:.1}") }
}

fn overview(results: &Results) -> String {
    let mut text = "| family | orders | signatures an order | against JavaScript | aim | against Rust | instructions, SDK / batch | SDK / facade | program |\n\
                    |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for family in &results.families {
        let Compared { aim, .. } = compared(family);
        let size = family.program_bytes.map_or("-".to_owned(), kibibytes);
        let [js, peer] = ["js", "peer"].map(|name| times(family.ratios.get(name).copied()));
        let [batch, facade] = ["batch", "facade"].map(|to| family.instructions("peer", to).map_or("-".to_owned(), in_digits));
        let FamilyResult { family, orders, signatures, .. } = family;
        let _ = writeln!(text, "| {family} | {orders} | {signatures:.1} | {js} | {aim} | {peer} | {batch} | {facade} | {size} |");
    }
    if let Some(bytes) = results.empty_program_bytes {
        let _ = writeln!(text, "| none | | | | | | | | {} |", kibibytes(bytes));
    }
    text
}

fn kibibytes(bytes: u64) -> String {
    format!("{:.0} KiB", bytes as f64 / 1024.0)
}

fn paths(results: &Results) -> String {
    let mut text = String::new();
    for family in &results.families {
        let compared = compared(family);
        let names = [
            ("batch", "batch"),
            ("facade", "facade"),
            ("peer", compared.rust().unwrap_or_default()),
            ("js", compared.javascript),
            ("signature", "one signature"),
        ];
        let _ = writeln!(
            text,
            "| {} | best, us | median, us | in signatures | instructions, thousands | allocations | batch is faster | facade is faster |",
            family.family
        );
        let _ = writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|");
        for (name, label) in names {
            let Some(measured) = family.contenders.get(name) else { continue };
            let whole = |count: Option<f64>| count.map_or("-".to_owned(), |count| format!("{count:.0}"));
            let (allocations, instructions) = (whole(measured.allocations), whole(measured.instructions.map(|count| count / 1e3)));
            let in_signatures = times(family.ratio(name, "signature"));
            let faster = |than: &str| if ["peer", "js"].contains(&name) { times(family.ratio(name, than)) } else { "-".to_owned() };
            let (best, median) = (measured.best_ns / 1e3, measured.median_ns / 1e3);
            let (batch, facade) = (faster("batch"), faster("facade"));
            let _ = writeln!(
                text,
                "| {label} | {best:.1} | {median:.1} | {in_signatures} | {instructions} | {allocations} | {batch} | {facade} |"
            );
        }
        text.push('\n');
    }
    text
}

/// Returns the aims for parsing, verifying and preparing, each as a fraction of one row in its group.
fn aims(results: &Results) -> String {
    let mut text = "| family | step | of | aim | measured | |\n|---|---|---|---:|---:|---|\n".to_owned();
    for Group { name, step, less, of, aim, .. } in families::ALL.iter().flat_map(|family| family.groups) {
        let Some(steps) = results.steps_of(name) else { continue };
        let (Some(nanos), Some(base)) = (steps.median(step), steps.median(of)) else { continue };
        let share = (nanos - less.and_then(|row| steps.median(row)).unwrap_or_default()) / base * 100.0;
        let beyond = less.map_or(String::new(), |row| format!(", beyond: {row}"));
        let met = if share <= *aim { "met" } else { "missed" };
        let _ = writeln!(text, "| {name} | {step}{beyond} | {of} | {aim} % | {share:.0} % | {met} |");
    }
    text
}

fn steps(results: &Results) -> String {
    let mut text = String::new();
    for steps in &results.steps {
        let Some(base) = steps.median(&steps.baseline) else { continue };
        let _ = writeln!(text, "| {} | median, us | against {} |\n|---|---:|---:|", steps.group, steps.baseline);
        for (row, nanos) in &steps.median_ns {
            let _ = writeln!(text, "| {row} | {:.2} | {:.0} % |", nanos / 1e3, nanos / base * 100.0);
        }
        text.push('\n');
    }
    text
}

fn cold_start(results: &Results) -> String {
    if results.cold_start.is_empty() {
        return "not measured\n".to_owned();
    }
    let mut text = "| start to end | best, ms | median, ms |\n|---|---:|---:|\n".to_owned();
    for start in &results.cold_start {
        let _ = writeln!(text, "| {} | {:.1} | {:.1} |", start.program, start.best_ms, start.median_ms);
    }
    text
}
