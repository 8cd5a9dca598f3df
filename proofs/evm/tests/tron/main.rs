//! Tests on Tron: what the library signs and what it refuses, executed by this crate's engine.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic in a test is a failed test"
)]

mod calls;
mod chain;
mod node;
mod tampered;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use countersign::Registry;
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn registry() -> Result<Registry, Box<dyn Error>> {
    Ok(Registry::from_json(&fs::read(fixtures().join("registry.json"))?)?)
}

/// Returns the accepted orders of the family.
fn lines() -> Vec<Value> {
    let text = fs::read_to_string(fixtures().join("accept/tron.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
