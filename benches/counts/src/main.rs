//! Counts what parsing, verifying and preparing an order costs: instructions, allocations and allocated bytes. Unlike times,
//! they are the same on every machine of one architecture, so that a test can compare them with a file.
//!
//! | arguments | what happens |
//! |---|---|
//! | none | counts, and compares with `counts.json` |
//! | `--write` | counts, and writes `counts.json` |
//! | `run ROW TIMES` | takes the steps of a row once, and then as often as told: what valgrind counts |

mod steps;
mod table;
mod valgrind;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::{env, fs};

use steps::{ROWS, TIMES};
use table::{Counts, Table};

const COMPILER: &str = env!("COMPILER");
const TARGET: &str = env!("TARGET");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.json");

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["run", row, times] => times.parse().map_err(|error| format!("{times}: {error}")).and_then(|times| steps::run(row, times)),
        ["--write"] if cfg!(debug_assertions) => Err("only a release build counts: add --release".to_owned()),
        ["--write"] => count().and_then(|table| fs::write(PATH, table.to_json()).map_err(|error| format!("{PATH}: {error}"))),
        [] => compare(),
        _ => Err("usage: countersign-counts [--write | run ROW TIMES]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Counts with the compiler that made this program.
fn count() -> Result<Table, String> {
    let mut rows = BTreeMap::new();
    for row in ROWS {
        // What comes before the steps is part of both runs.
        let once = |few: u64, many: u64| many.saturating_sub(few) / u64::from(TIMES);
        let instructions = once(valgrind::instructions(row, 0)?, valgrind::instructions(row, TIMES)?);
        let ([few_bytes, few], [many_bytes, many]) = (valgrind::allocations(row, 0)?, valgrind::allocations(row, TIMES)?);
        let counts = Counts { instructions, allocations: once(few, many), bytes: once(few_bytes, many_bytes) };
        println!("{row}: {} instructions, {} allocations, {} bytes", counts.instructions, counts.allocations, counts.bytes);
        rows.insert(row.to_owned(), counts);
    }
    Ok(Table { compiler: COMPILER.to_owned(), target: TARGET.to_owned(), rows })
}

/// Compares with the file; where nothing can be counted, says so and does not fail.
fn compare() -> Result<(), String> {
    let kept = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let kept = Table::from_json(&kept).map_err(|error| format!("{PATH}: {error}"))?;
    if cfg!(debug_assertions) {
        println!("skipped: the counts are those of a release build, and this is none");
    } else if kept.target != TARGET {
        println!("skipped: the counts are those of {}, and this is {TARGET}", kept.target);
    } else if !valgrind::is_installed() {
        println!("skipped: valgrind is not installed");
    } else {
        if kept.compiler != COMPILER {
            println!("the counts are those of {}, and this is {COMPILER}: they are compared all the same", kept.compiler);
        }
        let differences = kept.differences(&count()?);
        if !differences.is_empty() {
            let reason = "more than 5 % from benches/counts/counts.json; `--write` writes it anew if the change is meant";
            return Err(format!("{}\n{reason}", differences.join("\n")));
        }
    }
    Ok(())
}
