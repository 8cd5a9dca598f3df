//! What a wallet pins: a registry that contradicts itself judges no order, and one that is written is read as the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

use countersign::{Code, Registry};
use countersign_testkit::{Tree, registry, registry_json};

/// A registry that contradicts itself is refused before any order is judged by it.
#[test]
fn a_registry_that_contradicts_itself_is_refused() {
    let good = Tree::parse(&registry_json().to_string());
    assert!(Registry::from_json(good.text().as_bytes()).is_ok());
    let Some(Tree::Array(chains)) = good.at("/chains").cloned() else { panic!("chains") };
    let Some(Tree::Array(assets)) = good.at("/assets").cloned() else { panic!("assets") };
    let (chain, asset) = (&chains[0], &assets[1]);
    let set = |at: &str, value: &str| {
        let mut registry = good.clone();
        registry.set(at, Tree::parse(value));
        registry.text()
    };
    for (what, text, code, at) in [
        ("a chain twice", set("/chains/-", &chain.text()), Code::RegistryMalformed, format!("/chains/{}", chains.len())),
        ("an asset twice", set("/assets/-", &asset.text()), Code::RegistryMalformed, format!("/assets/{}", assets.len())),
        ("another chain id", set("/assets/1/chain_id", "2"), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("an asset of another chain", set("/assets/1/chain", "\"base\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("an asset of no chain", set("/assets/1/id", "\"nowhere:usdc\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        (
            "a mistyped HTLC",
            set("/assets/1/htlc/address", "\"0x2A9eA852e504D0d531f83Df5D9EC1938F33D5B9e\""),
            Code::RegistryMalformed,
            "/assets/1".to_owned(),
        ),
        ("a token without address", set("/assets/1/token/address", "\"\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("a limit in coins", set("/assets/1/min_amount", "\"0.5\""), Code::RegistryMalformed, "/assets/1".to_owned()),
        ("a malformed network", set("/chains/0/id", "\"evm:x\""), Code::RegistryMalformed, "/chains/0".to_owned()),
        ("a solver without account", set("/solvers/0/address", "\"0x12\""), Code::RegistryMalformed, "/solvers/0".to_owned()),
        ("a solver of no chain", set("/solvers/0/chain", "\"nowhere\""), Code::RegistryMalformed, "/solvers/0".to_owned()),
        ("chains of another type", set("/chains", "{}"), Code::WrongType, "/chains".to_owned()),
    ] {
        let refusal = Registry::from_json(text.as_bytes()).map(|_| ()).expect_err(what);
        assert_eq!((refusal.code(), refusal.location()), (code, at.as_str()), "{what}: {refusal}");
    }
    for member in ["/chains", "/assets"] {
        let mut registry = good.clone();
        registry.remove(member);
        let refusal = Registry::from_json(registry.text().as_bytes()).map(|_| ()).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::MissingField, member));
    }
}

/// What is pinned is written and read again without a change.
#[test]
fn a_registry_survives_its_own_file() {
    let first = serde_json::to_string(registry()).unwrap();
    let again = Registry::from_json(first.as_bytes()).unwrap();
    assert_eq!(first, serde_json::to_string(&again).unwrap());
    assert_eq!(registry().assets().len(), again.assets().len());
    assert_eq!(registry().solvers(), again.solvers());
}
