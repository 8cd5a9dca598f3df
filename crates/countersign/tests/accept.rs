//! Honest orders are accepted, and what comes out is byte for byte what outside libraries make of them.
//!
//! Expected values: `fixtures/accept` (ethers, viem, tronweb, ...) and, where it stands beside the project, the folder of
//! vectors made with the reference SDKs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

#[path = "../../core/tests/family/fixed.rs"]
mod fixed;
mod fixture;

use std::fs;

use countersign::{FAMILIES, Policy};
use fixed::FIXED;
use fixture::{Tree, accepted, built, cut, difference, output, read, registry_at, run, shared, warning_codes};
use serde_json::Value;

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
    assert_eq!(built().count(), FAMILIES.len(), "a family without fixtures/accept/<family>.jsonl");
    for family in built() {
        assert!(accepted(family).len() >= 40, "{family}: too few cases to be a model");
    }
}

#[test]
fn every_fixture_gives_the_artefacts_of_the_outside_tools() {
    let mut wrongs = Vec::new();
    for case in built().flat_map(accepted) {
        let got = run(&case.input);
        wrongs.extend(wrong(&case.id, &case.expect, &got));
        // Optional members aside, nothing may be signed that the tools did not sign.
        let members = |value: &Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
        if members(&got["artefacts"]) != members(&case.expect["artefacts"]) {
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
        let mut expected: Vec<_> = case.expect["warnings"].as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
        expected.sort_unstable();
        assert_eq!(codes, expected, "{}", case.id);
    }
}

#[test]
fn a_key_in_the_wallet_signs_everything_and_none_signs_nothing() {
    for case in built().flat_map(accepted) {
        let mut line = Tree::parse(&case.input);
        if line.at("/wallet/secret_key").is_none() {
            continue;
        }
        line.remove("/wallet/secret_key");
        let got = run(&line.text());
        assert_eq!(got["ok"], Value::Bool(true), "{}: {}", case.id, got["error"]);
        let text = got["artefacts"].to_string();
        for signed in ["\"signed\"", "\"tx_hash\"", "\"signature\"", "\"submission\""] {
            // Starknet's hash is that of the unsigned transaction: it is what is signed.
            if signed == "\"tx_hash\"" && !case.id.starts_with("evm") {
                continue;
            }
            assert!(!text.contains(signed), "{}: {signed} without a key", case.id);
        }
        for digest in ["signing_hash", "digest"] {
            for (name, part) in case.expect["artefacts"].as_object().unwrap() {
                if let Some(expected) = part.get(digest) {
                    assert_eq!(&got["artefacts"][name][digest], expected, "{}: {name}", case.id);
                }
            }
        }
    }
}

/// The last value on the right side of a limit is accepted, and nothing is said about it.
#[cfg(feature = "evm")]
#[test]
fn what_is_just_within_a_limit_is_accepted_in_silence() {
    let transaction = "/response/result/initiate_transaction";
    for (base, at, value, warning) in [
        ("evm-native-typed-data-null", format!("{transaction}/gas_limit"), "\"0x5208\"", ""),
        ("evm-native-typed-data-null", format!("{transaction}/gas_limit"), "\"0x1c9c380\"", ""),
        ("evm-native-typed-data-null", "/wallet/nonce".to_owned(), "18446744073709551614", ""),
        ("evm-token-approval-exact", "/wallet/nonce".to_owned(), "18446744073709551613", ""),
        ("evm-token-approval-exact", "/wallet/max_priority_fee_per_gas".to_owned(), "\"30000000000\"", ""),
        ("evm-token-approval-exact", "/wallet/chain_id".to_owned(), "8453", ""),
        ("evm-token-approval-exact", "/wallet/chain_id".to_owned(), "\"0x2105\"", ""),
        ("evm-token-approval-exact", "/request/slippage".to_owned(), "10000", ""),
        ("evm-token-approval-exact", "/request/destination/amount".to_owned(), "\"18446744073709551615\"", "amount_outside_limits"),
        // 86400 s on the source side, 2 s a block on the destination's: exactly half is not close yet.
        ("evm-record-evm-v1", "/order/destination_swap/timelock".to_owned(), "21600", "destination_timelock_close"),
        ("evm-record-evm-v1", "/order/destination_swap/timelock".to_owned(), "1", "destination_timelock_close"),
    ] {
        let mut line = Tree::parse(&fixture::accepted_case(base).input);
        line.set(&at, Tree::parse(value));
        let got = run(&line.text());
        assert_eq!(got["ok"], Value::Bool(true), "{base}: {at} of {value}: {}", got["error"]);
        assert!(warning.is_empty() || !warning_codes(&got).contains(&warning), "{base}: {at} of {value}");
    }
}

/// The vectors made with the reference SDKs: the same contract, another maker.
#[test]
fn every_shared_vector_gives_the_artefacts_of_the_reference_sdks() {
    let Some(folder) = shared("vectors") else { return };
    let registry = registry_at(&folder.join("registry.json"));
    let mut wrongs = Vec::new();
    let mut seen = 0;
    for family in FAMILIES {
        for line in read(&folder.join(format!("{}.jsonl", family.name()))).lines() {
            let (input, rest) = cut(line);
            let id = Tree::parse(&input).scalar("/id").unwrap();
            let got: Value = serde_json::from_str(&output(input.as_bytes(), &registry, &Policy::default())).unwrap();
            wrongs.extend(wrong(&id, &rest["expected"], &got));
            seen += 1;
        }
    }
    assert!(seen >= 12 * FAMILIES.len(), "only {seen} vectors were found");
    assert!(wrongs.is_empty(), "{} of {seen}:\n{}", wrongs.len(), wrongs.join("\n"));
}

/// Every hostile case is refused with a code that says something; one of a family that this build lacks says just that.
#[test]
fn every_shared_hostile_case_is_refused() {
    let Some(folder) = shared("vectors") else { return };
    let registry = registry_at(&folder.join("registry.json"));
    let mut wrongs = Vec::new();
    let mut seen = 0;
    for line in read(&folder.join("hostile-public.jsonl")).lines() {
        let at = line.rfind(",\"note\":").expect("every line has a note");
        let input = format!("{}}}", &line[..at]);
        // Hostile lines may repeat keys, so the family is told by the id.
        let id = input.split('"').nth(3).unwrap().to_owned();
        let got: Value = serde_json::from_str(&output(input.as_bytes(), &registry, &Policy::default())).unwrap();
        let code = got["error"]["code"].as_str().unwrap_or_default();
        let is_built = FAMILIES.iter().any(|family| id.starts_with(family.name()));
        // Without code for the family only what is common to all of them can be judged before it is told.
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

/// Until a family is built its orders are refused, whatever they say: there is nobody who could judge them.
#[test]
fn a_family_that_is_not_built_is_unsupported() {
    let Some(folder) = shared("vectors") else { return };
    let registry = registry_at(&folder.join("registry.json"));
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_family = path.extension().is_some_and(|extension| extension == "jsonl") && !name.starts_with("hostile");
        if !is_family || FAMILIES.iter().any(|family| family.name() == name) {
            continue;
        }
        for line in read(&path).lines() {
            let (input, _) = cut(line);
            let got: Value = serde_json::from_str(&output(input.as_bytes(), &registry, &Policy::default())).unwrap();
            assert_eq!(got["error"]["code"], "unsupported_family", "{name}: {got}");
            assert_eq!(got["error"]["at"], "/request/source/asset", "{name}: {got}");
        }
    }
}
