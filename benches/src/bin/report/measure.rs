//! Runs the measurements: the contenders in turn, criterion, the builds whose size is measured, and the program's
//! start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use countersign::FAMILIES;
use countersign_benches::{families, medians, rows, target};
use serde_json::Value;

use crate::cases::Cases;
use crate::results::{ColdStart, FamilyResult, Measured, Results, Steps};
use crate::{HERE, Outcome, say, valgrind};

/// How many seconds each process measures, and the number of rounds.
const FULL: (&str, usize) = ("0.8", 7);
const QUICK: (&str, usize) = ("0.2", 3);

/// How often a program is started to measure its start time.
const STARTS: usize = 21;

/// Returns the names of a family's contenders.
pub(crate) fn contenders(family: &str, javascript: bool) -> Vec<&'static str> {
    let mut names = vec!["batch", "facade"];
    if families::of(countersign_benches::family(family)).rust().is_some() {
        names.push("peer");
    }
    if javascript {
        names.push("js");
    }
    names
}

/// Installs the JavaScript SDKs if they are missing. Returns whether they can be measured.
pub(crate) fn javascript() -> Outcome<bool> {
    let works = |program| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works("node") || !works("npm") {
        say("Node or npm is not installed: the JavaScript SDKs are left out.");
        return Ok(false);
    }
    let folder = Path::new(HERE).join("js");
    let changed = |name: &str| fs::metadata(folder.join(name)).and_then(|file| file.modified()).ok();
    if changed("node_modules/.package-lock.json") < changed("package-lock.json") {
        say("npm ci in benches/js");
        if !Command::new("npm").args(["ci", "--loglevel", "error"]).current_dir(&folder).stdout(Stdio::null()).status()?.success() {
            say("The packages cannot be fetched: the JavaScript SDKs are left out.");
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs one contender and returns its output: with `seconds` its time, otherwise what it signs.
pub(crate) fn run(contender: &str, family: &str, file: &Path, seconds: Option<&str>) -> Outcome<String> {
    let mut command = if contender == "js" {
        let mut node = Command::new("node");
        node.arg(Path::new(HERE).join("js/orders.mjs"));
        node
    } else {
        let mut orders = beside("orders")?;
        orders.arg(contender);
        orders
    };
    output(command.arg(family).arg(file).args(seconds))
}

/// Returns a command for another program of this package.
fn beside(name: &str) -> Outcome<Command> {
    Ok(Command::new(std::env::current_exe()?.with_file_name(name).with_extension(std::env::consts::EXE_EXTENSION)))
}

fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Counts allocations and signatures, which are the same in every run.
pub(crate) fn allocations(families: &[Cases], results: &mut Results) -> Outcome<()> {
    say("allocations");
    for cases in families {
        let counts: Value = serde_json::from_str(&output(beside("allocations")?.arg(cases.family).arg(&cases.file))?)?;
        let measured = ["batch", "facade", "peer"].into_iter().filter_map(|name| {
            let allocations = Some(counts[name].as_f64()?);
            Some((name, Measured { allocations, ..Measured::default() }))
        });
        results.families.push(FamilyResult {
            family: cases.family,
            orders: cases.lines.len(),
            signatures: counts["signatures"].as_f64().unwrap_or_default(),
            contenders: measured.collect(),
            ratios: [].into(),
            program_bytes: None,
        });
    }
    Ok(())
}

/// Counts instructions, which hardly vary with other load on the machine.
pub(crate) fn instructions(families: &[Cases], results: &mut Results) -> Outcome<()> {
    if !valgrind::is_installed() {
        say("valgrind is not installed: instructions are left out.");
        return Ok(());
    }
    say("instructions");
    let program = beside("orders")?;
    for cases in families {
        let family = results.family(cases.family).ok_or("allocations come first")?;
        let file = cases.file.to_str().ok_or("the path of the cases is not UTF-8")?;
        for name in contenders(cases.family, false) {
            let count = |passes| {
                let arguments = [name, cases.family, file, "--passes", passes];
                valgrind::count::<1>(valgrind::INSTRUCTIONS, program.get_program().as_ref(), &arguments)
            };
            // One-time work is in both counts, and cancels out.
            let ([few], [many]) = (count("1")?, count("3")?);
            let orders = 2 * cases.lines.len();
            family.contenders.entry(name).or_default().instructions = Some(many.saturating_sub(few) as f64 / orders as f64);
        }
    }
    Ok(())
}

/// Measures the contenders in turn, round after round.
pub(crate) fn paths(families: &[Cases], javascript: bool, results: &mut Results) -> Outcome<()> {
    let (seconds, rounds) = if results.quick { QUICK } else { FULL };
    for cases in families {
        let mut names = contenders(cases.family, javascript);
        names.push("signature");
        let mut times = vec![Vec::new(); names.len()];
        for round in 1..=rounds {
            say(&format!("{}: whole path, round {round} of {rounds}", cases.family));
            for (name, times) in names.iter().zip(&mut times) {
                times.push(run(name, cases.family, &cases.file, Some(seconds))?.trim().parse::<f64>()?);
            }
        }
        let family = results.family(cases.family).ok_or("allocations come first")?;
        for (name, mut times) in names.into_iter().zip(times) {
            times.sort_by(f64::total_cmp);
            let measured = family.contenders.entry(name).or_default();
            (measured.best_ns, measured.median_ns) = (times[0], times[rounds / 2]);
        }
        family.ratios = ["peer", "js"].into_iter().filter_map(|name| Some((name, family.ratio(name, "batch")?))).collect();
    }
    Ok(())
}

/// Runs criterion and reads its estimates.
pub(crate) fn steps(results: &mut Results) -> Outcome<()> {
    let options: &[&str] = if results.quick {
        &["--warm-up-time", "0.1", "--measurement-time", "0.2", "--sample-size", "10"]
    } else {
        &["--warm-up-time", "0.3", "--measurement-time", "1"]
    };
    say("steps, by criterion");
    // Results of an earlier run would otherwise appear as rows of this one.
    let _ = fs::remove_dir_all(target().join("criterion"));
    let manifest = Path::new(HERE).join("Cargo.toml");
    output(Command::new(cargo()).args(["bench", "--quiet", "--manifest-path"]).arg(manifest).args(["--", "--noplot"]).args(options))?;
    let steps = rows::groups().map(|(group, baseline)| Steps { group: group.into(), baseline: baseline.into(), median_ns: medians(group) });
    results.steps = steps.collect();
    Ok(())
}

fn cargo() -> PathBuf {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
}

/// Builds a program that embeds one family, for each family, and one that embeds none.
pub(crate) fn sizes(results: &mut Results) -> Outcome<()> {
    let manifest = Path::new(HERE).join("Cargo.toml");
    for family in FAMILIES.iter().map(|family| Some(family.name())).chain([None]) {
        say(&format!("size of a program with {}", family.unwrap_or("no family")));
        let mut build = Command::new(cargo());
        build.args(["build", "--quiet", "--profile", "size", "-p", "countersign-size", "--manifest-path"]).arg(&manifest);
        if let Some(family) = family {
            build.arg("--features").arg(format!("batch,countersign-json/{family}"));
        }
        output(&mut build)?;
        let program = target().join("size/countersign-size").with_extension(std::env::consts::EXE_EXTENSION);
        let bytes = Some(fs::metadata(program)?.len());
        match family.and_then(|family| results.family(family)) {
            Some(family) => family.program_bytes = bytes,
            None => results.empty_program_bytes = bytes,
        }
    }
    Ok(())
}

/// Measures the time from the program's start to its end, and the same for Node with an SDK and the same order.
pub(crate) fn cold_start(families: &[Cases], javascript: bool, results: &mut Results) -> Outcome<()> {
    say("cold start: building the program");
    let root = Path::new(HERE).join("..");
    let target = target();
    let mut build = Command::new(cargo());
    build.args(["build", "--quiet", "--release", "--locked", "-p", "countersign-cli"]).current_dir(&root);
    output(build.arg("--target-dir").arg(&target))?;
    let program = target.join("release/countersign");
    let mut starts =
        vec![Start { label: "`countersign --version`".to_owned(), program: program.clone(), args: vec!["--version".into()], input: None }];
    for cases in families {
        let file = cases.file.with_extension("first.jsonl");
        fs::write(&file, format!("{}\n", cases.lines[0]))?;
        let registry = root.join("fixtures/registry.json");
        let label = format!("`countersign batch`, one line, {}", cases.family);
        let args = vec!["batch".into(), "--registry".into(), registry];
        starts.push(Start { label, program: program.clone(), args, input: Some(file.clone()) });
        if javascript {
            let label = format!("Node and the SDK, the same order, {}", cases.family);
            let args = vec![Path::new(HERE).join("js/orders.mjs"), cases.family.into(), file];
            starts.push(Start { label, program: "node".into(), args, input: None });
        }
    }
    let mut times = vec![Vec::new(); starts.len()];
    for round in 1..=STARTS {
        if round % 7 == 1 {
            say(&format!("cold start: round {round} of {STARTS}"));
        }
        for (start, times) in starts.iter().zip(&mut times) {
            let mut command = start.command()?;
            let started = Instant::now();
            output(&mut command)?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (start, mut times) in starts.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        results.cold_start.push(ColdStart { program: start.label, best_ms: times[0], median_ms: times[STARTS / 2] });
    }
    Ok(())
}

/// A program that is started repeatedly.
struct Start {
    label: String,
    program: PathBuf,
    args: Vec<PathBuf>,
    input: Option<PathBuf>,
}

impl Start {
    fn command(&self) -> Outcome<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(match &self.input {
            Some(file) => fs::File::open(file)?.into(),
            None => Stdio::null(),
        });
        Ok(command)
    }
}
