//! Tron: the cost of verification compared with the signature that follows it.

use std::hint::black_box;

use countersign::Registry;
use countersign::tron::Tron;
use countersign_benches::{REGISTRY, case, criterion, rows, steps};

const CASES: &str = include_str!("../../fixtures/accept/tron.jsonl");

const GROUP: &str = "tron";

fn main() {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    // The most complete response, with approval, initiate and typed data.
    let line = case(CASES, "tron-token-approval-unlimited");
    let mut criterion = criterion();
    let mut group = criterion.benchmark_group(GROUP);
    steps::<Tron>(&mut group, &line, &registry);
    let key = k256::ecdsa::SigningKey::from_slice(&[7; 32]).expect("key");
    group.bench_function(rows::K256, |b| b.iter(|| key.sign_prehash_recoverable(black_box(&[9; 32])).expect("signature")));
    group.finish();
    criterion.final_summary();
}
