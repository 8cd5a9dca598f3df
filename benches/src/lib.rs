//! The parts that the benches of all families share: their cases, the steps of an order, the paths in [`orders`], and
//! the rows of the tables.

pub mod families;
pub mod orders;
pub mod rows;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use countersign::Family;
use countersign::json::{self, Cursor};
use countersign::{CreateOrder, Policy, Proposal, Registry, VerifiedOrder};
use countersign_json::JsonFamily;
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion};
use serde_json::Value;

/// The registry for all fixtures.
pub const REGISTRY: &str = include_str!("../../fixtures/registry.json");

/// Returns a family by its name.
///
/// # Panics
///
/// Panics if no family has this name.
pub fn family(name: &str) -> Family {
    let found = countersign::FAMILIES.iter().find(|family| family.name() == name);
    *found.unwrap_or_else(|| panic!("no family {name}"))
}

/// Reads a file of cases, one per line.
///
/// # Panics
///
/// Panics if the file cannot be read.
pub fn read_cases(file: &str) -> Vec<String> {
    fs::read_to_string(file).expect("a file of cases").lines().map(str::to_owned).collect()
}

/// Returns the input part of a fixture line, as text.
///
/// # Panics
///
/// Panics if the fixtures have no such case, because the bench would measure nothing.
pub fn case(lines: &str, id: &str) -> String {
    let start = format!("{{\"id\":\"{id}\"");
    let line = lines.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no case {id}"));
    input_of(line)
}

/// Returns the input part of a fixture line. The rest states the expected result.
///
/// # Panics
///
/// Panics if the line is not a fixture.
pub fn input_of(line: &str) -> String {
    let (input, _) = line.split_once(",\"note\":").expect("a fixture has a note");
    format!("{input}}}")
}

/// Returns one member of a case as text, as a wallet receives it.
///
/// # Panics
///
/// Panics if the case has no such member.
pub fn member(case: &str, name: &str) -> String {
    let case: Value = serde_json::from_str(case).expect("a fixture is JSON");
    serde_json::to_string(case.get(name).expect(name)).expect("JSON")
}

/// Returns criterion, configured for the benches of one family.
pub fn criterion() -> Criterion {
    Criterion::default().configure_from_args()
}

/// Benches the steps from the response's text to its signatures, as in a wallet that embeds one family. The registry
/// is loaded, the request and the wallet's nonce, fees and coins are values, and the key is parsed.
///
/// # Panics
///
/// Panics if the case is refused, because the bench would measure a refusal.
pub fn steps<F: JsonFamily>(group: &mut BenchmarkGroup<'_, WallTime>, line: &str, registry: &Registry) {
    let policy = Policy::default();
    let (request, response, wallet) = (member(line, "request"), member(line, "response"), member(line, "wallet"));
    println!("{}: a response of {} bytes", member(line, "id"), response.len());
    let request = CreateOrder::from_json(request.as_bytes()).expect("a request");
    let value = json::parse(response.as_bytes()).expect("JSON");
    let context = json::parse(wallet.as_bytes()).expect("JSON");
    let context = Cursor::root(&context, "/wallet");
    let wallet = || F::read_wallet(context).expect("a wallet context");
    let secret = context.object().expect("object").need("secret_key").expect("a key").text().expect("text").to_owned();
    let key: F::Key = secret.parse().expect("a key");
    let verify = |proposal| -> VerifiedOrder<F> { countersign::verify_family(proposal, registry, &policy).expect("verify") };
    let proposal = || Proposal::from_parsed(request.clone(), &value, None);
    let prepare = || verify(proposal()).prepare(wallet()).expect("prepare");
    let [parse, verified, prepared, parsed_prepared, summary, sign] = rows::STEPS;
    group.bench_function(parse, |b| b.iter(|| json::parse(black_box(response.as_bytes())).expect("JSON")));
    // Values that a step consumes are created beforehand. Dropping them, and dropping the result, is part of the
    // step.
    group.bench_function(verified, |b| b.iter_batched(proposal, |proposal| drop(verify(black_box(proposal))), BatchSize::SmallInput));
    group.bench_function(prepared, |b| {
        b.iter_batched(
            || (proposal(), wallet()),
            |(proposal, wallet)| drop(verify(black_box(proposal)).prepare(wallet).expect("prepare")),
            BatchSize::SmallInput,
        )
    });
    group.bench_function(parsed_prepared, |b| {
        b.iter_batched(
            wallet,
            |wallet| {
                let proposal = Proposal::new(&request, black_box(response.as_bytes()));
                drop(verify(proposal).prepare(wallet).expect("prepare"));
            },
            BatchSize::SmallInput,
        )
    });
    let unsigned = prepare();
    group.bench_function(summary, |b| b.iter(|| black_box(&unsigned).summary()));
    group.bench_function(sign, |b| {
        b.iter_batched(
            prepare,
            |mut unsigned| {
                unsigned.sign(&key).expect("sign");
                unsigned.finish().expect("finish")
            },
            BatchSize::SmallInput,
        )
    });
}

/// Returns the directory of builds and measurements.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from)
}

/// Returns the measured rows of a group, each with its median in nanoseconds. The steps come first, in their order,
/// then the other rows, fastest first.
pub fn medians(group: &str) -> Vec<(String, f64)> {
    let folders = fs::read_dir(target().join("criterion").join(group)).into_iter().flatten().flatten();
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let mut rows: Vec<_> = names.filter_map(|name| median(group, &name)).collect();
    rows.sort_by(|(a, a_nanos), (b, b_nanos)| {
        let step = |name: &str| rows::STEPS.iter().position(|step| *step == name).unwrap_or(rows::STEPS.len());
        step(a).cmp(&step(b)).then(a_nanos.total_cmp(b_nanos))
    });
    rows
}

/// Returns the full name of a row, which the folder's name may truncate, and its median.
fn median(group: &str, folder: &str) -> Option<(String, f64)> {
    let read = |file: &str| -> Option<Value> {
        let path = target().join("criterion").join(group).join(folder).join("new").join(file);
        serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
    };
    let name = read("benchmark.json")?["function_id"].as_str()?.to_owned();
    Some((name, read("estimates.json")?.pointer("/median/point_estimate")?.as_f64()?))
}
