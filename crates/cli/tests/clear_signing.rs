//! `countersign clear-signing`: the files that it writes, and the directories that it refuses.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::home::{Home, NOWHERE, machine, out, said};

fn fixtures_registry() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/registry.json")).unwrap()
}

fn files(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_reported_files_are_those_that_are_written() {
    let home = Home::new("clear-signing");
    let registry = home.file("registry.json", &fixtures_registry());
    let directory = home.path.join("new/descriptors");
    let arguments = ["clear-signing", "--registry", &registry, "--out", directory.to_str().unwrap()];
    let people = home.run(NOWHERE, &arguments);
    assert_eq!(people.status.code(), Some(0), "{}", said(&people));
    let first: Vec<_> = files(&directory).into_iter().map(|name| (fs::read(directory.join(&name)).unwrap(), name)).collect();
    let pinned = "written  calldata-htlc-1-0x2a9ea852e504d0d531f83df5d9ec1938f33d5b9e.json for ethereum:usdc\n";
    assert!(out(&people).contains(pinned), "{}", out(&people));

    // A second run writes the same bytes.
    let (report, _) = machine(&home.run(NOWHERE, &[&arguments[..], &["--json"]].concat())).unwrap();
    assert_eq!((&report["ok"], report["left_out"].as_array().unwrap().len()), (&Value::Bool(true), 0));
    let written: BTreeSet<_> = report["written"].as_array().unwrap().iter().map(|file| file["file"].as_str().unwrap().to_owned()).collect();
    assert_eq!(written, files(&directory));
    assert_eq!(first.len(), written.len());
    for (bytes, name) in first {
        assert!(name.starts_with("calldata-") || name.starts_with("eip712-"), "{name}");
        assert_eq!(fs::read(directory.join(&name)).unwrap(), bytes, "{name}");
        assert_eq!(
            serde_json::from_slice::<Value>(&bytes).unwrap()["$schema"],
            "https://eips.ethereum.org/assets/eip-7730/erc7730-v2.schema.json"
        );
    }
}

#[test]
fn descriptors_of_contracts_that_are_not_pinned_any_more_are_refused() {
    let home = Home::new("clear-signing-stale");
    let registry = home.file("registry.json", &fixtures_registry());
    let directory = home.path.join("descriptors");
    home.file("descriptors/notes.json", "{}");
    let stale = home.file("descriptors/eip712-htlc-1-0x0000000000000000000000000000000000000001.json", "{}");
    let arguments = ["clear-signing", "--registry", &registry, "--out", directory.to_str().unwrap()];
    let output = home.run(NOWHERE, &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("remove eip712-htlc-1-0x0000000000000000000000000000000000000001.json, or choose"), "{}", said(&output));
    assert_eq!(files(&directory).len(), 2, "nothing was written");
    fs::remove_file(stale).unwrap();
    assert_eq!(home.run(NOWHERE, &arguments).status.code(), Some(0));
    assert!(files(&directory).contains("notes.json"), "other files are left alone");
}

#[test]
fn a_registry_without_evm_contracts_writes_nothing() {
    let home = Home::new("clear-signing-none");
    let registry = home.file("registry.json", r#"{"chains": [{"chain": "bitcoin", "id": "bitcoin:mainnet"}], "assets": []}"#);
    let directory = home.path.join("descriptors");
    let output = home.run(NOWHERE, &["clear-signing", "--registry", &registry, "--out", directory.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("pins no contract of an EVM chain"), "{}", said(&output));
    assert!(!directory.exists());
}
