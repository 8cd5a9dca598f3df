//! What the benches of all families share: their cases, and the table of ratios that ends a run.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use countersign::family::KeyOf;
use countersign::json::{self, Node};
use countersign::{CreateOrder, Policy, Proposal, Registry, VerifiedOrder};
use countersign_batch::{Case, JsonFamily};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion};
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

/// The steps that every family's path has, in the order of [`whole_path`].
pub const STEPS: [&str; 7] =
    ["parse", "verify", "verify and prepare", "parse, verify and prepare", "summary", "sign every payload", "whole path, signed"];

/// Benches the steps from the answer's text to its signatures, as a wallet that embeds one family takes them: the registry is
/// loaded, the request and the wallet's own nonce, fees and coins are values, the key is read.
///
/// # Panics
///
/// If the case is not accepted: the bench would measure a refusal.
pub fn whole_path<F: JsonFamily>(group: &mut BenchmarkGroup<'_, WallTime>, line: &str, registry: &Registry) {
    let policy = Policy::default();
    let (request, response, wallet) = (member(line, "request"), member(line, "response"), member(line, "wallet"));
    println!("{}: a response of {} bytes", member(line, "id"), response.len());
    let request = CreateOrder::from_json(request.as_bytes()).expect("a request");
    let value = json::parse(response.as_bytes()).expect("JSON");
    let context = json::parse(wallet.as_bytes()).expect("JSON");
    let context = Node::root(&context, "/wallet");
    let wallet = || F::read_wallet(context).expect("a wallet context");
    let secret = context.object().expect("object").need("secret_key").expect("a key").text().expect("text").to_owned();
    let key: KeyOf<F> = secret.parse().expect("a key");
    let verify = |proposal| -> VerifiedOrder<F> { countersign::verify_as(proposal, registry, &policy).expect("verify") };
    let proposal = || Proposal::from_parsed(request.clone(), &value, None);
    let prepare = || verify(proposal()).prepare(wallet()).expect("prepare");
    let [parse, verified, prepared, parsed_prepared, summary, sign, whole] = STEPS;
    group.bench_function(parse, |b| b.iter(|| json::parse(black_box(response.as_bytes())).expect("JSON")));
    // What a step takes by value is made beforehand; that it is dropped is part of the step, as is the drop of the result.
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
    group.bench_function(whole, |b| {
        b.iter(|| {
            let value = json::parse(black_box(line.as_bytes())).expect("JSON");
            Case::from_value(&value).expect("case").run(registry, &policy).expect("run")
        })
    });
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

/// The median of this run's row, nanoseconds.
pub fn median(group: &str, name: &str) -> Option<f64> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/target").to_owned());
    let path = Path::new(&target).join("criterion").join(group).join(name).join("new/estimates.json");
    let estimates: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    estimates.pointer("/median/point_estimate")?.as_f64()
}
