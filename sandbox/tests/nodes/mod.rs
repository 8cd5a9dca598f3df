//! Finds the real nodes that can replace the sandbox's engines: named by a variable, fetched by `nodes/fetch`, or
//! installed. A test whose node is missing prints that and is skipped.
#![allow(dead_code, reason = "each test uses the node that it needs, and says what is skipped")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use countersign_sandbox::chains::Nodes;

pub(crate) fn anvil() -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("nodes/node_modules/@foundry-rs");
    let name = format!("anvil{}", env::consts::EXE_SUFFIX);
    let fetched = fs::read_dir(packages).into_iter().flatten().flatten().map(|entry| entry.path().join("bin").join(&name));
    found("anvil", "COUNTERSIGN_ANVIL", fetched)
}

pub(crate) fn litecoind() -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let places = ["proofs/bitcoin/.engine/usr/lib/litecoin/litecoind", "/usr/lib/litecoin/litecoind"];
    found("litecoind", "COUNTERSIGN_LITECOIND", places.into_iter().map(|place| project.join(place)))
}

pub(crate) fn both() -> Option<Nodes> {
    Some(Nodes { anvil: Some(anvil()?), litecoind: Some(litecoind()?) })
}

fn found(name: &str, variable: &str, mut places: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let found = env::var_os(variable).map(PathBuf::from).or_else(|| places.find(|path| path.is_file()));
    if found.is_none() {
        eprintln!("skipped: no {name}; run nodes/fetch, or name one in {variable}");
    }
    found
}
