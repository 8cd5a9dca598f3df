//! Honest orders are accepted, and their artefacts equal those of external libraries byte for byte.
//!
//! Expected values: `fixtures/accept` (ethers, viem, tronweb, ...) and, if it is there, the folder of vectors made with the
//! reference SDKs.
use std::fs;
use std::path::PathBuf;

use countersign::{FAMILIES, Family, Policy, Registry};
use countersign_testkit::fixed::FIXED;
use countersign_testkit::lines::{accepted, difference, output, run, warning_codes, with_fixtures};
use countersign_testkit::{Tree, project, shared_registry};
use serde_json::Value;

/// Returns the families of this build that have accept fixtures.
fn built() -> impl Iterator<Item = Family> {
    with_fixtures(FAMILIES)
}

/// Returns the folder of vectors outside the project and their registry, if they are there.
fn vectors() -> Option<(PathBuf, &'static Registry)> {
    let folder = project().join("../shared/vectors");
    if let Err(reason) = countersign_testkit::shared("vectors/registry.json") {
        countersign_testkit::skipped(&reason).unwrap();
        return None;
    }
    Some((folder, shared_registry().unwrap()))
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Splits a line into the input and the rest. The input is not parsed and written again, because some lines use unusual spellings
/// on purpose.
fn cut(line: &str) -> (String, Value) {
    let (input, rest) = line.split_at(line.find(",\"note\":").expect("every line has a note"));
    (format!("{input}}}"), serde_json::from_str(&format!("{{{}", &rest[1..])).expect("note and what follows it are JSON"))
}

fn wrong(id: &str, expect: &Value, got: &Value) -> Option<String> {
    if got["id"].as_str() != Some(id) {
        return Some(format!("{id}: the id came back as {}", got["id"]));
    }
    if got["ok"] != Value::Bool(true) {
        return Some(format!("{id}: refused: {}", got["error"]));
    }
    for member in ["family", "order_id", "artefacts"] {
        if let Some(difference) = difference(&expect[member], &got[member], &format!("/{member}")) {
            return Some(format!("{id}: {difference}"));
        }
    }
    None
}

#[test]
fn every_family_that_is_built_has_fixtures() {
    assert_eq!(built().count(), FAMILIES.len(), "a family has no fixtures/accept/<family>.jsonl");
    for family in built() {
        assert!(accepted(family).len() >= 40, "{family}: too few cases");
    }
}

#[test]
fn every_fixture_gives_the_artefacts_of_the_outside_tools() {
    let mut wrongs = Vec::new();
    for case in built().flat_map(accepted) {
        let got = run(&case.input);
        wrongs.extend(wrong(&case.id, &case.expect(), &got));
        // Optional members aside, nothing may be signed that the tools did not sign.
        let members = |value: &Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
        if members(&got["artefacts"]) != members(&case.expect()["artefacts"]) {
            wrongs.push(format!("{}: other artefacts: {:?}", case.id, members(&got["artefacts"])));
        }
    }
    assert!(wrongs.is_empty(), "{} cases:\n{}", wrongs.len(), wrongs.join("\n"));
}

#[test]
fn every_fixture_carries_exactly_the_warnings_that_it_fixes() {
    for case in built().flat_map(accepted) {
        let got = run(&case.input);
        let mut codes: Vec<_> = warning_codes(&got).into_iter().filter(|code| FIXED.contains(code)).collect();
        codes.sort_unstable();
        let expect = case.expect();
        let mut expected: Vec<_> = expect["warnings"].as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
        expected.sort_unstable();
        assert_eq!(codes, expected, "{}", case.id);
    }
}

#[test]
fn a_key_in_the_wallet_signs_everything_and_none_signs_nothing() {
    for case in built().flat_map(accepted) {
        let mut line: Tree = case.tree();
        if line.at("/wallet/secret_key").is_none() {
            continue;
        }
        line.remove("/wallet/secret_key");
        let got = run(&line.text());
        assert_eq!(got["ok"], Value::Bool(true), "{}: {}", case.id, got["error"]);
        let text = got["artefacts"].to_string();
        for signed in ["\"signed\"", "\"tx_hash\"", "\"signature\"", "\"submission\""] {
            // Only on EVM does the hash depend on the signature. On Starknet it is what is signed.
            if signed == "\"tx_hash\"" && !case.id.starts_with("evm") {
                continue;
            }
            assert!(!text.contains(signed), "{}: {signed} without a key", case.id);
        }
        let expect = case.expect();
        for digest in ["signing_hash", "digest"] {
            for (name, part) in expect["artefacts"].as_object().unwrap() {
                if let Some(expected) = part.get(digest) {
                    assert_eq!(&got["artefacts"][name][digest], expected, "{}: {name}", case.id);
                }
            }
        }
    }
}

/// These vectors follow the same contract, but were made independently with the reference SDKs.
#[test]
fn every_shared_vector_gives_the_artefacts_of_the_reference_sdks() {
    let Some((folder, registry)) = vectors() else { return };
    let mut wrongs = Vec::new();
    let mut seen = 0;
    for family in FAMILIES {
        for line in read(folder.join(format!("{}.jsonl", family.name()))).lines() {
            let (input, rest) = cut(line);
            let id = Tree::parse(&input).scalar("/id").unwrap();
            let got: Value = serde_json::from_str(&output(input.as_bytes(), registry, &Policy::default())).unwrap();
            wrongs.extend(wrong(&id, &rest["expected"], &got));
            seen += 1;
        }
    }
    assert!(seen >= 12 * FAMILIES.len(), "only {seen} vectors were found");
    assert!(wrongs.is_empty(), "{} of {seen}:\n{}", wrongs.len(), wrongs.join("\n"));
}

/// Every hostile case is refused with a specific code. A case of a family that this build lacks is refused for that reason.
#[test]
fn every_shared_hostile_case_is_refused() {
    let Some((folder, registry)) = vectors() else { return };
    let mut wrongs = Vec::new();
    let mut seen = 0;
    for line in read(folder.join("hostile-public.jsonl")).lines() {
        let at = line.rfind(",\"note\":").expect("every line has a note");
        let input = format!("{}}}", &line[..at]);
        // Hostile lines may have duplicate keys, so the id is cut out of the text. It begins with the family.
        let id = input.split('"').nth(3).unwrap().to_owned();
        let got: Value = serde_json::from_str(&output(input.as_bytes(), registry, &Policy::default())).unwrap();
        let code = got["error"]["code"].as_str().unwrap_or_default();
        let is_built = FAMILIES.iter().any(|family| id.starts_with(family.name()));
        // Without the family's code, only the rules that all families share can refuse a case first.
        let known = if is_built {
            !["", "internal", "unsupported_family"].contains(&code)
        } else {
            ["unsupported_family", "missing_field"].contains(&code)
        };
        if got["ok"] != Value::Bool(false) || !known {
            wrongs.push(format!("{id}: {got}"));
        }
        seen += 1;
    }
    assert!(seen > 60, "only {seen} hostile cases were found");
    assert!(wrongs.is_empty(), "{} of {seen}:\n{}", wrongs.len(), wrongs.join("\n"));
}

/// The orders of a family that is not built are refused, whatever they contain, because this build cannot judge them.
#[test]
fn a_family_that_is_not_built_is_unsupported() {
    let Some((folder, registry)) = vectors() else { return };
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_family = path.extension().is_some_and(|extension| extension == "jsonl") && !name.starts_with("hostile");
        if !is_family || FAMILIES.iter().any(|family| family.name() == name) {
            continue;
        }
        for line in read(path.clone()).lines() {
            let (input, _) = cut(line);
            let got: Value = serde_json::from_str(&output(input.as_bytes(), registry, &Policy::default())).unwrap();
            assert_eq!(got["error"]["code"], "unsupported_family", "{name}: {got}");
            assert_eq!(got["error"]["at"], "/request/source/asset", "{name}: {got}");
        }
    }
}
