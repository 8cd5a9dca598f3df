//! Measures and writes the whole table. `benches/run` builds and starts this program.
//!
//! ```text
//! benches/run          measures everything and writes results.json, ratios.svg and the tables of README.md
//! benches/run --quick  measures the whole path and the steps for one or two minutes, and prints the tables
//! benches/run --paths  measures the whole path, and keeps the rest of the files
//! benches/run --check  only compares what all contenders sign
//! ```
//!
//! Whole paths run in a separate process for each contender, in turn and round after round, so that other load on the
//! machine affects all of them. Criterion measures the steps.

mod cases;
mod chart;
mod compare;
mod measure;
mod results;
mod tables;
#[path = "../../../counts/src/valgrind.rs"]
mod valgrind;

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::results::Results;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The folder of this package.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> Outcome<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    if !matches!(args[..], [] | ["--quick" | "--paths" | "--check"]) {
        return Err("usage: benches/run [--quick | --paths | --check]".into());
    }
    let [quick, only_paths, check] = ["--quick", "--paths", "--check"].map(|option| args.contains(&option));
    let families = cases::select()?;
    let javascript = measure::javascript()?;
    compare::all(&families, javascript)?;
    if check {
        return Ok(());
    }
    let mut results = Results::new(quick);
    measure::allocations(&families, &mut results)?;
    if !quick {
        measure::instructions(&families, &mut results)?;
    }
    measure::paths(&families, javascript, &mut results)?;
    if only_paths {
        results.keep(&fs::read_to_string(Path::new(HERE).join("results.json"))?)?;
    } else {
        measure::steps(&mut results)?;
        if quick {
            println!("\n{}", tables::all(&results).into_iter().map(|(_, table)| table).collect::<Vec<_>>().join("\n"));
            return Ok(());
        }
        measure::sizes(&mut results)?;
        measure::cold_start(&families, javascript, &mut results)?;
    }
    write("results.json", &format!("{}\n", serde_json::to_string_pretty(&results)?))?;
    write("ratios.svg", &chart::draw(&results))?;
    let mut readme = fs::read_to_string(Path::new(HERE).join("README.md"))?;
    for (name, table) in tables::all(&results) {
        readme = tables::replace(&readme, name, &table)?;
    }
    write("README.md", &readme)
}

fn write(name: &str, text: &str) -> Outcome<()> {
    fs::write(Path::new(HERE).join(name), text)?;
    say(&format!("written: benches/{name}"));
    Ok(())
}

/// Prints progress to standard error, so that the tables of `--quick` can be piped.
fn say(text: &str) {
    eprintln!("{text}");
}
