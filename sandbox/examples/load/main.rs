//! What the sandbox does under load: `cargo run --example load -- orders` measures memory and requests per second,
//! `... -- swaps 200 25` has users swap over a network that fails.
#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    reason = "a command of this repository, which no caller depends on"
)]

mod orders;
mod swaps;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("orders") => {
            built().and_then(|program| orders::run(&program, if numbers.is_empty() { &[1_000, 10_000, 100_000] } else { &numbers }))
        }
        Some("swaps") => swap(numbers.first().copied().unwrap_or(200), numbers.get(1).copied().unwrap_or(25)),
        _ => Err("orders [NUMBER...], or swaps [COUNT [AT ONCE]]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn swap(count: u64, at_once: u64) -> Result<(), String> {
    let directory = std::env::temp_dir().join(format!("countersign-swaps-{}", std::process::id()));
    let number = |number: u64| usize::try_from(number).map_err(|error| error.to_string());
    let report = swaps::run(&countersign_sandbox::trial::program()?, &directory, number(count)?, number(at_once)?)?;
    let median = report.took.get(report.took.len() / 2).copied().unwrap_or_default();
    println!(
        "{} of {count} swaps, {at_once} at once, ended right in {:.0} s; {} orders, {} runs of the program; a swap took {median:.1} s in the middle and {:.1} s at most",
        report.took.len(),
        report.all,
        report.orders,
        report.runs,
        report.took.last().copied().unwrap_or_default(),
    );
    if !report.wrong.is_empty() {
        return Err(format!("{}\nsee {}", report.wrong.join("\n"), directory.display()));
    }
    std::fs::remove_dir_all(&directory).map_err(|error| error.to_string())
}

/// The sandbox's program, which cargo builds beside the examples.
fn built() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let name = format!("countersign-sandbox{}", std::env::consts::EXE_SUFFIX);
    let found = own.ancestors().skip(1).map(|folder| folder.join(&name)).find(|path| path.is_file());
    found.ok_or_else(|| "run `cargo build` first".to_owned())
}
