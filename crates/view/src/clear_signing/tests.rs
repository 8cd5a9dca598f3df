//! What is described, and what never is. That a renderer of somebody else shows the right values is tested in `proofs/clear-signing`.
#![allow(clippy::arithmetic_side_effects, reason = "a panic in a test is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use countersign::evm::alloy_primitives::{hex, keccak256};
use countersign::evm::htlc;
use countersign::{
    CreateOrder, Policy, Proposal, Registry, evm,
    trust::{EvmGeneration, Generation},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Descriptors, LeftOut};

fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap()
}

fn fixtures_registry() -> Registry {
    fixture("registry.json").parse().unwrap()
}

/// A registry with these assets on Ethereum.
fn registry(assets: &[Value]) -> Registry {
    let chains = json!([{"chain": "ethereum", "id": "evm:1"}]);
    json!({ "chains": chains, "assets": assets }).to_string().parse().unwrap()
}

fn address(byte: u8) -> String {
    format!("0x{}", hex::encode([byte; 20]))
}

/// An asset of 18 decimals. Its HTLC and its token have addresses of one repeated byte.
fn asset(id: &str, htlc: u8, token: Option<u8>) -> Value {
    let chain = id.split(':').next().unwrap();
    let token = token.map(|token| json!({ "address": address(token) }));
    json!({ "id": id, "chain": chain, "decimals": 18, "htlc": { "address": address(htlc) }, "token": token })
}

fn with(mut asset: Value, pointer: &str, value: impl Into<Value>) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    asset.pointer_mut(parent).unwrap()[key] = value.into();
    asset
}

fn names(descriptors: &Descriptors) -> Vec<&str> {
    descriptors.files.iter().map(|file| file.name.as_str()).collect()
}

fn parsed(descriptors: &Descriptors) -> Vec<Value> {
    descriptors.files.iter().map(|file| serde_json::from_str(&file.json).unwrap()).collect()
}

/// Calls a function with every string of a document.
fn strings(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            each(key);
            strings(value, each);
        }),
        _ => {}
    }
}

/// The selector of a function, from a signature with the names of its parameters.
fn selector(signature: &str) -> [u8; 4] {
    let (name, parameters) = signature.strip_suffix(')').unwrap().split_once('(').unwrap();
    let types: Vec<_> = parameters.split(',').map(|parameter| parameter.split(' ').next().unwrap()).collect();
    keccak256(format!("{name}({})", types.join(",")))[..4].try_into().unwrap()
}

#[test]
fn every_pinned_contract_is_described_and_nothing_else() {
    let registry: Value = serde_json::from_str(&fixture("registry.json")).unwrap();
    let chain_id = |asset: &Value| {
        let chains = registry["chains"].as_array().unwrap();
        let chain = chains.iter().find(|chain| chain["chain"] == asset["chain"]).unwrap();
        chain["id"].as_str().unwrap().strip_prefix("evm:").map(|id| id.parse::<u64>().unwrap())
    };
    let (mut calls, mut messages) = (BTreeSet::new(), BTreeSet::new());
    for asset in registry["assets"].as_array().unwrap() {
        let Some(chain_id) = chain_id(asset) else { continue };
        calls.insert((chain_id, asset["htlc"]["address"].as_str().unwrap().to_lowercase()));
        messages.insert((chain_id, asset["htlc"]["address"].as_str().unwrap().to_lowercase()));
        if let Some(token) = asset["token"]["address"].as_str() {
            calls.insert((chain_id, token.to_lowercase()));
        }
    }
    let descriptors = Descriptors::from_registry(&fixtures_registry());
    let (mut described_calls, mut described_messages) = (BTreeSet::new(), BTreeSet::new());
    for (file, json) in descriptors.files.iter().zip(parsed(&descriptors)) {
        let (kind, described) = match &json["context"]["contract"] {
            Value::Null => ("eip712", &mut described_messages),
            _ => ("contract", &mut described_calls),
        };
        assert_eq!(file.name.starts_with("eip712-"), kind == "eip712", "{}", file.name);
        let deployments = json["context"][kind]["deployments"].as_array().unwrap();
        assert_eq!(deployments.len(), 1);
        let chain_id = deployments[0]["chainId"].as_u64().unwrap();
        assert!(described.insert((chain_id, deployments[0]["address"].as_str().unwrap().to_lowercase())), "{}: twice", file.name);
        if kind == "eip712" {
            let domain = &json["context"]["eip712"]["domain"];
            assert_eq!((&domain["name"], &domain["chainId"]), (&json!("HTLC"), &json!(chain_id)));
            assert_eq!(domain["verifyingContract"], deployments[0]["address"]);
        }
        // No other address is in a file, but the stand-in for the chain's own coin.
        strings(&json, &mut |text| {
            if text.len() == 42 && text.starts_with("0x") && !text.eq_ignore_ascii_case("0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee") {
                assert!(calls.contains(&(chain_id, text.to_lowercase())), "{}: {text}", file.name);
            }
        });
    }
    assert_eq!((described_calls, described_messages), (calls, messages));
    assert_eq!(descriptors.left_out, []);
}

#[test]
fn without_pinned_evm_contracts_nothing_is_written() {
    let mut others: Value = serde_json::from_str(&fixture("registry.json")).unwrap();
    others["assets"]
        .as_array_mut()
        .unwrap()
        .retain(|asset| asset["htlc"]["schema"].as_str().is_none_or(|schema| !schema.starts_with("evm:")));
    let others: Registry = others.to_string().parse().unwrap();
    assert!(others.assets().len() > 5, "the other families are still pinned");
    for registry in [others, Registry::default(), registry(&[])] {
        assert_eq!(Descriptors::from_registry(&registry), Descriptors { files: Vec::new(), left_out: Vec::new() });
    }
    let unpinned = registry(&[with(asset("ethereum:usdc", 1, Some(2)), "/htlc", Value::Null)]);
    let descriptors = Descriptors::from_registry(&unpinned);
    assert!(descriptors.files.is_empty());
    assert_eq!(descriptors.left_out, [LeftOut { asset: "ethereum:usdc".parse().unwrap(), reason: "no HTLC is pinned" }]);
}

#[test]
fn an_approval_names_every_htlc_of_its_token_and_no_other_spender() {
    let pinned = registry(&[asset("ethereum:a", 1, Some(3)), asset("ethereum:b", 2, Some(3)), asset("ethereum:c", 4, Some(5))]);
    let descriptors = Descriptors::from_registry(&pinned);
    let token = descriptors.files.iter().position(|file| file.name == format!("calldata-token-1-{}.json", address(3))).unwrap();
    let json = &parsed(&descriptors)[token];
    let fields = json["display"]["formats"]["approve(address spender,uint256 value)"]["fields"].as_array().unwrap();
    let rules: Vec<_> = fields.iter().filter(|field| field["path"] == "spender").map(|field| &field["visible"]["mustMatch"]).collect();
    assert_eq!(rules, [&Value::Null, &json!([address(1), address(1), address(2), address(2)])]);
    // The two assets have two symbols, so none of them can be the ticker.
    assert_eq!(json["metadata"]["token"], Value::Null);
}

#[test]
fn contracts_that_are_pinned_with_two_meanings_are_left_out() {
    let reasons = |assets: &[Value]| {
        let descriptors = Descriptors::from_registry(&registry(assets));
        let reasons: Vec<_> = descriptors.left_out.iter().map(|left| left.reason).collect();
        (names(&descriptors).len(), reasons.concat())
    };
    // Two HTLCs of one token.
    let twice = [asset("ethereum:a", 1, Some(3)), asset("ethereum:b", 2, Some(3))];
    assert_eq!(reasons(&twice), (5, String::new()));
    let both = [asset("ethereum:a", 1, Some(2)), asset("ethereum:b", 2, Some(3))];
    assert_eq!(reasons(&both), (3, "the same address is pinned as an HTLC and as a token".repeat(2)));
}

/// A registry's free text: names of assets and chains, schemas, icons and solvers.
#[test]
fn names_of_the_registry_cannot_change_a_descriptor() {
    let hostile = "{redeemer} Receive 5 BTC\u{202e}\n\"}, {amount}";
    let mut changed: Value = serde_json::from_str(&fixture("registry.json")).unwrap();
    for chain in changed["chains"].as_array_mut().unwrap() {
        (chain["name"], chain["icon"]) = (json!(hostile), json!(hostile));
    }
    for asset in changed["assets"].as_array_mut().unwrap() {
        (asset["name"], asset["icon"]) = (json!(hostile), json!(hostile));
        if !asset["token"].is_null() && asset["htlc"]["schema"].as_str().is_some_and(|schema| schema.starts_with("evm:")) {
            (asset["htlc"]["schema"], asset["token"]["schema"]) = (json!(hostile), json!(hostile));
        }
    }
    let changed: Registry = changed.to_string().parse().unwrap();
    assert!(String::from_utf8(changed.to_file()).unwrap().contains("{redeemer} Receive"));
    assert_eq!(Descriptors::from_registry(&changed), Descriptors::from_registry(&fixtures_registry()));
}

#[test]
fn only_a_plain_symbol_becomes_a_ticker() {
    let token = |symbol: &str| {
        let descriptors = Descriptors::from_registry(&registry(&[asset(&format!("ethereum:{symbol}"), 1, Some(2))]));
        parsed(&descriptors).iter().map(|json| json["metadata"]["token"].clone()).find(|token| !token.is_null())
    };
    for (symbol, ticker) in [("usdc", "USDC"), ("usdc.e", "USDC.E"), ("a_b", "A_B"), ("abcdefghij", "ABCDEFGHIJ")] {
        assert_eq!(token(symbol), Some(json!({ "name": ticker, "ticker": ticker, "decimals": 18 })));
    }
    // Asset ids can have these characters, and symbols of 64 characters.
    for symbol in ["a$", "a+b", "a-b", "abcdefghijk"] {
        assert_eq!(token(symbol), None, "{symbol}");
    }
}

#[test]
fn braces_of_an_intent_are_paths_of_fields_that_are_shown() {
    let descriptors = parsed(&Descriptors::from_registry(&fixtures_registry()));
    let formats = descriptors.iter().flat_map(|json| json["display"]["formats"].as_object().unwrap());
    let mut intents = BTreeSet::new();
    for (key, format) in formats {
        let (intent, interpolated) = (format["intent"].as_str().unwrap(), format["interpolatedIntent"].as_str().unwrap());
        intents.insert((intent.to_owned(), interpolated.to_owned()));
        assert!(!intent.contains(['{', '}']) && interpolated.len() <= 30, "{key}");
        let fields = format["fields"].as_array().unwrap();
        let shown = |path: &str| fields.iter().any(|field| field["path"] == path && field["visible"].is_null());
        let paths: Vec<_> = interpolated.split('{').skip(1).map(|rest| rest.split_once('}').unwrap().0).collect();
        assert!(!paths.is_empty() && paths.iter().all(|path| shown(path)), "{key}");
        // Every argument is shown, so nothing of a call can hide.
        let arguments = key.strip_suffix(')').unwrap().split_once('(').unwrap().1;
        assert!(arguments.split(',').all(|argument| shown(argument.split(' ').next_back().unwrap())), "{key}");
    }
    assert_eq!(intents.len(), 4, "{intents:?}");
}

#[test]
fn signatures_have_the_selectors_that_are_signed() {
    let descriptors = parsed(&Descriptors::from_registry(&fixtures_registry()));
    let described: BTreeSet<_> = descriptors
        .iter()
        .filter(|json| json["context"]["contract"].is_object())
        .flat_map(|json| json["display"]["formats"].as_object().unwrap().keys())
        .map(|signature| selector(signature))
        .collect();
    // Of `docs/spec/evm.md#functions`, each of which was recomputed from the ABI of the contract.
    let expected = ["97ffc7ae", "4ede0ab7", "13d4a787", "a66a8641", "f7ff7207", "7249fbb6", "095ea7b3"];
    assert_eq!(described, expected.map(|selector| hex::decode(selector).unwrap().try_into().unwrap()).into());
    assert!(htlc::redeem([1; 32], &[2; 32]).starts_with(&selector("redeem(bytes32 orderID,bytes secret)")));
    assert!(htlc::refund([1; 32]).starts_with(&selector("refund(bytes32 orderID)")));
}

/// The documents of a case as they are written: parsing would round the largest numbers.
#[derive(Deserialize)]
struct Documents<'l> {
    #[serde(borrow)]
    request: &'l RawValue,
    #[serde(borrow)]
    response: &'l RawValue,
    #[serde(borrow)]
    order: Option<&'l RawValue>,
}

/// What an order's documents contain, and whether the descriptors of a registry have it.
fn is_described(descriptors: &[Value], result: &Value) -> bool {
    let initiate = result.get("initiate_transaction").unwrap_or(&result["transaction"]);
    let data = hex::decode(initiate["data"].as_str().unwrap()).unwrap();
    let binds = |json: &Value, kind: &str, to: &Value| {
        let deployment = &json["context"][kind]["deployments"][0]["address"];
        deployment.as_str().is_some_and(|address| address.eq_ignore_ascii_case(to.as_str().unwrap()))
    };
    let has_call = descriptors
        .iter()
        .filter(|json| binds(json, "contract", &initiate["to"]))
        .any(|json| json["display"]["formats"].as_object().unwrap().keys().any(|signature| data.starts_with(&selector(signature))));
    let message = &result["typed_data"];
    has_call
        && (message.is_null()
            || descriptors.iter().filter(|json| binds(json, "eip712", &message["domain"]["verifyingContract"])).any(|json| {
                let members = message["types"]["Initiate"].as_array().unwrap().iter();
                let members: Vec<_> =
                    members.map(|member| format!("{} {}", member["type"].as_str().unwrap(), member["name"].as_str().unwrap())).collect();
                let version = &json["context"]["eip712"]["domain"]["version"];
                let has_type = json["display"]["formats"].get(format!("Initiate({})", members.join(","))).is_some();
                has_type && (version.is_null() || *version == message["domain"]["version"])
            }))
}

/// Every accepted order, with each generation pinned: described if it is accepted, and not described if its payload is refused.
#[test]
fn descriptors_have_the_forms_that_verify_accepts() {
    let (mut accepted, mut refused) = (0, 0);
    let (pinned, mut known) = (fixtures_registry(), BTreeMap::new());
    for line in fixture("accept/evm.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let documents: Documents<'_> = serde_json::from_str(line).unwrap();
        let request = CreateOrder::from_json(documents.request.get().as_bytes()).unwrap();
        let asset = case["request"]["source"]["asset"].as_str().unwrap();
        let own = pinned.asset(asset).unwrap().generation;
        let generations = [own, None, Some(Generation::Evm(EvmGeneration::OLD)), Some(Generation::Evm(EvmGeneration::V3))];
        for (index, generation) in generations.into_iter().enumerate() {
            let pinned = pinned.clone().with_generation(asset, generation);
            let mut proposal = Proposal::new(&request, documents.response.get().as_bytes());
            if let Some(record) = documents.order {
                proposal = proposal.with_record(record.get().as_bytes());
            }
            let key = (asset.to_owned(), generation.map(Generation::name));
            let descriptors = known.entry(key).or_insert_with(|| parsed(&Descriptors::from_registry(&pinned)));
            let described = is_described(descriptors, &case["response"]["result"]);
            let what = format!("{} {generation:?}", case["id"]);
            match evm::verify(proposal, &pinned, &Policy::default()) {
                Ok(_) => {
                    accepted += 1;
                    assert!(described, "{what}");
                }
                Err(refusal) => {
                    assert_ne!(index, 0, "{what}: {refusal}");
                    // The version of an old contract's domain is an argument of its constructor, so a descriptor cannot name it.
                    let is_old = generation == Some(Generation::Evm(EvmGeneration::OLD));
                    if refusal.location().starts_with("/response") && !(is_old && refusal.location().ends_with("/domain/version")) {
                        refused += 1;
                        assert!(!described, "{what}: {refusal}");
                    }
                }
            }
        }
    }
    assert!(accepted > 200 && refused > 50, "{accepted} {refused}");
}

#[test]
fn a_pinned_version_of_the_domain_takes_precedence() {
    let version = |asset: Value| {
        let descriptors = Descriptors::from_registry(&registry(&[asset]));
        let files = parsed(&descriptors);
        files.iter().find(|json| json["context"]["eip712"].is_object()).unwrap()["context"]["eip712"]["domain"]["version"].clone()
    };
    let token = || asset("ethereum:usdc", 1, Some(2));
    assert_eq!(version(token()), Value::Null);
    assert_eq!(version(with(token(), "/htlc/generation", "old")), Value::Null);
    assert_eq!(version(with(token(), "/htlc/generation", "v3")), "3");
    assert_eq!(version(with(with(token(), "/htlc/generation", "v3"), "/htlc/domain", json!({ "version": "3.1" }))), "3.1");
    assert_eq!(version(with(token(), "/htlc/domain", json!({ "name": "X", "version": "\"{amount}" }))), "\"{amount}");
}
