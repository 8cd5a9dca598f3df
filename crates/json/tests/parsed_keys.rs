//! Keys that are parsed once sign as their text does, and show nothing.
#![cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "bitcoin", feature = "sui"))]
use crate::documents;

use std::fs;

use countersign::{FAMILIES, Family, Policy, Unsigned};
use countersign_json::objects::{self, Key};
use countersign_testkit::project;
use serde_json::Value;

use documents::{Case, fixtures, registry};

/// Returns the cases of a family that a key of their own signs, and the keys.
fn keyed(family: Family) -> Vec<(Case, String)> {
    let key_of = |case: &Case| case.value("wallet")["secret_key"].as_str().map(str::to_owned);
    fixtures(family.name()).into_iter().filter_map(|case| key_of(&case).map(|key| (case, key))).collect()
}

fn prepared(case: &Case) -> Unsigned {
    let order = objects::verify(&case.documents(), &registry(), &Policy::default()).unwrap();
    objects::prepare(&order, case.text("wallet")).unwrap()
}

#[test]
fn a_parsed_key_signs_as_its_text_does_and_as_often_as_wanted() {
    for family in FAMILIES {
        let cases = keyed(*family);
        assert!(cases.len() > 5, "{family}");
        for (case, text) in cases {
            let key = Key::parse(text.as_bytes(), *family).unwrap();
            for _ in 0..2 {
                let [mut by_text, mut by_key] = [prepared(&case), prepared(&case)];
                objects::sign(&mut by_text, &text).unwrap();
                objects::sign_with(&mut by_key, &key).unwrap();
                assert_eq!(objects::artefacts(&by_key), objects::artefacts(&by_text), "{}", case.value("id"));
            }
        }
    }
}

#[test]
fn a_key_shows_its_family_and_its_account_alone() {
    for family in FAMILIES {
        let (case, text) = keyed(*family).swap_remove(0);
        let key = Key::parse_named(text.as_bytes(), family.name()).unwrap();
        let has_account = !matches!(family, Family::Starknet | Family::Bitcoin);
        assert_eq!((key.family(), key.account().is_some()), (*family, has_account), "{}", case.value("id"));
        let account = key.account().map(|account| format!(", {account}")).unwrap_or_default();
        assert_eq!(format!("{key:?}"), format!("Key({family}{account})"));
        if has_account && *family != Family::Tron {
            let owner = &case.value("request")["source"]["owner"];
            assert_eq!(key.account().as_deref().map(str::to_lowercase), owner.as_str().map(str::to_lowercase), "{}", case.value("id"));
        }
    }
}

#[test]
fn a_key_of_32_bytes_is_the_key_itself() {
    let (case, text) = keyed(Family::Evm).swap_remove(0);
    let digits = text.trim_start_matches("0x");
    let raw: Vec<_> = (0..64).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    let mut unsigned = prepared(&case);
    objects::sign_with(&mut unsigned, &Key::parse(&raw, Family::Evm).unwrap()).unwrap();
    assert!(unsigned.missing().is_empty());
}

#[test]
fn a_key_that_does_not_fit_is_refused_without_a_part_of_it() {
    let (case, text) = keyed(Family::Evm).swap_remove(0);
    let malformed = &text[..text.len() - 2];
    let refused = |key: &str, family: &str| {
        let failure = Key::parse_named(key.as_bytes(), family).unwrap_err();
        assert!(!serde_json::to_string(&failure).unwrap().contains(&malformed[2..]), "{failure}");
        (failure.code, failure.at.into_string())
    };
    assert_eq!(refused(malformed, "evm"), ("key_malformed", "/key".to_owned()));
    assert_eq!(refused(&text, "ethereum"), ("usage", "/family".to_owned()));
    // Tron has the curve of EVM chains, and the key of another family signs nothing all the same.
    let other = Key::parse_named(text.as_bytes(), "tron").unwrap();
    let mut unsigned = prepared(&case);
    let failure = objects::sign_with(&mut unsigned, &other).unwrap_err();
    assert_eq!((failure.code, &*failure.at), ("key_mismatch", "/wallet/secret_key"));
    assert!(failure.to_string().contains("another chain family"), "{failure}");
    assert!(!unsigned.missing().is_empty());
    let changed = text.replace(['1', 'a'], "2");
    let failure = objects::sign_with(&mut unsigned, &Key::parse(changed.as_bytes(), Family::Evm).unwrap()).unwrap_err();
    assert_eq!(failure.code, "key_mismatch");
}

#[test]
fn a_newer_registry_is_compared_with_the_pinned_one() {
    let text = fs::read(project().join("fixtures/registry.json")).unwrap();
    let mut newer: Value = serde_json::from_slice(&text).unwrap();
    let asset = &mut newer["assets"][0];
    let id = asset["id"].as_str().unwrap().to_owned();
    asset["min_amount"] = Value::from("12345");
    let newer = objects::registry(newer.to_string().as_bytes()).unwrap();
    let pinned = objects::registry(&text).unwrap();
    assert_eq!(objects::registry_diff(&pinned, &pinned), []);
    let changes = objects::registry_diff(&pinned, &newer);
    let [change] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(
        (change.entry.as_str(), change.field.as_str(), change.new.as_deref()),
        (&*format!("asset {id}"), "smallest amount", Some("12345"))
    );
}
