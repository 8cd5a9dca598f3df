//! Load tests of the sandbox: kills, garbage, many concurrent users, and reproducibility from a seed.
#![cfg(test)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    reason = "a test ends by panicking"
)]

mod garbage;
mod kills;
mod program;
mod same;
mod swaps;
mod wire;

use std::path::{Path, PathBuf};

/// Returns the program under test.
fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_countersign-sandbox"))
}

/// Returns an empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("countersign-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// A deterministic source of pseudo-random numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Needs the program: `cargo build -p countersign-cli` in the checkout, or `COUNTERSIGN_PROGRAM`.
#[test]
#[ignore = "needs the program, and a minute; `check` runs it"]
fn twenty_users_swap_over_a_network_that_fails() {
    let directory = directory("twenty");
    let outcome = swaps::run(&countersign_sandbox::trial::program().unwrap(), &directory, 20, 10).unwrap();
    assert_eq!(outcome, (20, Vec::new()));
    std::fs::remove_dir_all(&directory).unwrap();
}
