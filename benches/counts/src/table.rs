//! The stored counts, and their comparison with new ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::families::{self, Counted};

const BEGIN: &str = "<!-- begin floor -->\n";
const END: &str = "<!-- end floor -->";

/// A count may differ from the stored one by this fraction: one in `TOLERANCE`.
const TOLERANCE: u64 = 20;

/// The cost of one parse, verify and prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

/// The counts of all rows, with the compiler and target that produced them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) compiler: String,
    pub(crate) target: String,
    pub(crate) rows: BTreeMap<String, Counts>,
}

impl Table {
    pub(crate) fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a table is JSON") + "\n"
    }

    /// Returns the page with this table of the floor in it, or `None` if the page has no place for the table.
    pub(crate) fn in_readme(&self, page: &str) -> Option<String> {
        let (before, rest) = page.split_once(BEGIN)?;
        let (_, after) = rest.split_once(END)?;
        Some([before, BEGIN, &self.floor()?, END, after].concat())
    }

    /// Returns the table of the floor, or `None` if a row is missing.
    fn floor(&self) -> Option<String> {
        let mut table = "| family | whole order | floor | of the floor | aim | |\n|---|---:|---:|---:|---:|---|\n".to_owned();
        for Counted { family, aim, .. } in &families::ALL {
            let family = family.name();
            let [whole, floor] = ["order", "floor"].map(|what| Some(self.rows.get(&format!("{family}, {what}"))?.instructions));
            let (whole, floor) = (whole?, floor?);
            let ratio = (whole as f64 / floor as f64 * 100.0).round() / 100.0;
            let met = if ratio <= *aim { "met" } else { "missed" };
            table += &format!("| {family} | {} k | {} k | {ratio:.2} | {aim:.2} | {met} |\n", whole / 1000, floor / 1000);
        }
        Some(table)
    }

    /// Returns a line for each count that differs from this table's by more than 5 % in either direction.
    pub(crate) fn differences(&self, actual: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for row in self.rows.keys().chain(actual.rows.keys().filter(|row| !self.rows.contains_key(*row))) {
            let (Some(kept), Some(actual)) = (self.rows.get(row), actual.rows.get(row)) else {
                differences.push(format!("{row}: only in one of the tables"));
                continue;
            };
            for (what, kept, actual) in [
                ("instructions", kept.instructions, actual.instructions),
                ("allocations", kept.allocations, actual.allocations),
                ("bytes", kept.bytes, actual.bytes),
            ] {
                if kept.abs_diff(actual).saturating_mul(TOLERANCE) > kept {
                    differences.push(format!("{row}: {actual} {what}, the file has {kept}"));
                }
            }
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(counts: Counts) -> Table {
        Table { compiler: "rustc".to_owned(), target: "here".to_owned(), rows: [("evm".to_owned(), counts)].into() }
    }

    const KEPT: Counts = Counts { instructions: 100_000, allocations: 100, bytes: 10_000 };

    #[test]
    fn up_to_five_per_cent_is_no_difference() {
        for actual in [
            KEPT,
            Counts { instructions: 105_000, allocations: 105, bytes: 10_500 },
            Counts { instructions: 95_000, allocations: 95, bytes: 9_500 },
        ] {
            assert_eq!(table(KEPT).differences(&table(actual)), [""; 0], "{actual:?}");
        }
    }

    #[test]
    fn six_per_cent_is_a_difference() {
        for (actual, line) in [
            (Counts { instructions: 106_000, ..KEPT }, "evm: 106000 instructions, the file has 100000"),
            (Counts { instructions: 94_000, ..KEPT }, "evm: 94000 instructions, the file has 100000"),
            (Counts { allocations: 106, ..KEPT }, "evm: 106 allocations, the file has 100"),
            (Counts { bytes: 10_600, ..KEPT }, "evm: 10600 bytes, the file has 10000"),
        ] {
            assert_eq!(table(KEPT).differences(&table(actual)), [line]);
        }
    }

    #[test]
    fn a_missing_row_is_a_difference() {
        let empty = Table { rows: BTreeMap::new(), ..table(KEPT) };
        assert_eq!(empty.differences(&table(KEPT)).len(), 1);
        assert_eq!(table(KEPT).differences(&empty).len(), 1);
    }

    #[test]
    fn the_page_has_the_floor_of_the_file() {
        let (kept, page) = (include_str!("../counts.json"), include_str!("../../README.md"));
        assert_eq!(Table::from_json(kept).unwrap().in_readme(page).as_deref(), Some(page), "`--write` writes both");
    }

    #[test]
    fn a_table_reads_back() {
        assert_eq!(Table::from_json(&table(KEPT).to_json()), Ok(table(KEPT)));
    }
}
