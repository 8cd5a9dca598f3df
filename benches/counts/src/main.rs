//! Counts the instructions, allocations and allocated bytes of an order: for parsing, verifying and preparing, for
//! the whole order from its input line to its result line, and for the order's cryptography alone. Unlike times,
//! these are the same on every machine of one architecture, so a test can compare them with a file.
//!
//! | arguments | what happens |
//! |---|---|
//! | none | counts, and compares with `counts.json` |
//! | `--write` | counts, and writes `counts.json` and the table of the floor in the README of the benches |
//! | `run ROW TIMES` | runs a row once, and then `TIMES` times. Valgrind runs this command |

mod driver;
mod families;
mod floor;
mod rows;
mod steps;
mod table;
mod valgrind;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::{env, fs};

use rows::Row;
use table::{Counts, Table};
use valgrind::Tool;

const COMPILER: &str = env!("COMPILER");
const TARGET: &str = env!("TARGET");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.json");
/// Counts allocated bytes, and allocations.
const ALLOCATIONS: Tool = (["--tool=dhat", "--dhat-out-file=/dev/null"], "Total:");
const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["run", row, times] => times.parse().map_err(|error| format!("{times}: {error}")).and_then(|times| Row::named(row)?.run(times)),
        ["--write"] if cfg!(debug_assertions) => Err("only a release build counts: add --release".to_owned()),
        ["--write"] => count().and_then(|table| write(&table)),
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

/// Counts everything. The result names the compiler that built this program.
fn count() -> Result<Table, String> {
    let mut rows = BTreeMap::new();
    for row in Row::all() {
        let (name, times) = (row.name(), row.times());
        // What precedes the steps is part of both runs, and cancels out.
        let taken = u64::from(times).saturating_mul(row.orders());
        let once = |few: u64, many: u64| many.saturating_sub(few) / taken;
        let [instructions] = run(valgrind::INSTRUCTIONS, &name, 0)?;
        let [more_instructions] = run(valgrind::INSTRUCTIONS, &name, times)?;
        let instructions = once(instructions, more_instructions);
        let ([few_bytes, few], [many_bytes, many]) = (run(ALLOCATIONS, &name, 0)?, run(ALLOCATIONS, &name, times)?);
        let counts = Counts { instructions, allocations: once(few, many), bytes: once(few_bytes, many_bytes) };
        println!("{name}: {} instructions, {} allocations, {} bytes", counts.instructions, counts.allocations, counts.bytes);
        rows.insert(name, counts);
    }
    Ok(Table { compiler: COMPILER.to_owned(), target: TARGET.to_owned(), rows })
}

/// Runs a row `times` times in this program under valgrind.
fn run<const N: usize>(tool: Tool, row: &str, times: u32) -> Result<[u64; N], String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    valgrind::count(tool, &program, &["run", row, &times.to_string()])
}

fn write(table: &Table) -> Result<(), String> {
    let readme = fs::read_to_string(README).map_err(|error| format!("{README}: {error}"))?;
    let readme = table.in_readme(&readme).ok_or_else(|| format!("{README}: no place for the table of the floor"))?;
    for (path, text) in [(PATH, table.to_json()), (README, readme)] {
        fs::write(path, text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

/// Compares with the file. If nothing can be counted here, prints that and succeeds.
fn compare() -> Result<(), String> {
    let kept = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let kept = Table::from_json(&kept).map_err(|error| format!("{PATH}: {error}"))?;
    if cfg!(debug_assertions) {
        println!("skipped: the counts are for a release build, and this is not one");
    } else if kept.target != TARGET {
        println!("skipped: the counts are for {}, and this is {TARGET}", kept.target);
    } else if !valgrind::is_installed() {
        println!("skipped: valgrind is not installed");
    } else {
        if kept.compiler != COMPILER {
            println!("the counts are for {}, and this is {COMPILER}: comparing anyway", kept.compiler);
        }
        let differences = kept.differences(&count()?);
        if !differences.is_empty() {
            let reason = "more than 5 % from benches/counts/counts.json; `--write` writes it anew if the change is meant";
            return Err(format!("{}\n{reason}", differences.join("\n")));
        }
    }
    Ok(())
}
