//! Contracts whose generation is pinned: every deposit of the outside tools is verified under each pin.
use countersign_core::{Code, EvmGeneration, Policy, Registry, Role, SecretHash};
use countersign_evm::alloy_primitives::hex;
use countersign_evm::recover::{self, Leg};
use countersign_evm::{Evm, Key, TxContext};
use countersign_testkit::fixed::FIXED;
use countersign_testkit::recover::record;
use countersign_testkit::{Case, TestResult, asset_index, fixtures, outcome_under, registry, registry_json, registry_with};
use serde_json::Value;

/// The fixtures' registry with a generation pinned for an asset.
fn pinned(asset: &str, generation: &'static EvmGeneration) -> Registry {
    registry_with(&[(&format!("/assets/{}/htlc/generation", asset_index(asset)), generation.name.into())])
}

/// Returns the expected outcome of a fixture under a pin of its source.
fn expected(line: &Value, generation: &'static EvmGeneration, is_native: bool) -> Result<bool, Code> {
    let result = &line["response"]["result"];
    let call = [&result["initiate_transaction"], &result["transaction"]].into_iter().find(|call| call.is_object()).unwrap();
    let selector = call["data"].as_str().unwrap()[..10].to_lowercase();
    let is_old = generation == EvmGeneration::OLD;
    match selector.as_str() {
        "0x97ffc7ae" => {}
        "0x13d4a787" if !is_old || is_native => {}
        "0x4ede0ab7" | "0xa66a8641" if !is_old => {}
        _ => return Err(Code::GenerationMismatch),
    }
    if let Some(version) = result["typed_data"]["domain"]["version"].as_str() {
        if is_native {
            return Err(Code::GaslessNative);
        }
        if (version == "3") == is_old {
            return Err(Code::GenerationMismatch);
        }
    }
    match line["order"]["version"].as_str() {
        Some(version) if (version == "v3") == is_old => Err(Code::GenerationMismatch),
        Some(_) => Ok(is_old && is_native),
        None => Ok(false),
    }
}

/// A fixture is either accepted under a pin with the artefacts of the outside tools, or refused for the expected reason.
#[test]
fn every_fixture_fits_exactly_the_generations_whose_form_it_has() -> TestResult {
    let assets = registry_json();
    let mut seen = [0; 4];
    for case in fixtures::<Evm>()? {
        let line = case.json();
        let source = line["request"]["source"]["asset"].as_str().ok_or("no asset")?;
        let asset = &assets["assets"][asset_index(source)];
        for generation in [EvmGeneration::OLD, EvmGeneration::V3] {
            let (registry, name) = (pinned(source, generation), generation.name);
            let got = outcome_under::<Evm>(&case, &registry, &Policy::default());
            match expected(&line, generation, asset["token"].is_null()) {
                Ok(unchecked) => {
                    let got = got.unwrap_or_else(|refusal| panic!("{}, {name}: {refusal}", case.id));
                    assert_eq!(got["artefacts"], case.expect()["artefacts"], "{}", case.id);
                    let warnings: Vec<_> = got["warnings"].as_array().ok_or("no warnings")?.iter().map(|one| &one["code"]).collect();
                    let own = case.expect()["warnings"].as_array().into_iter().flatten().any(|code| code == "swap_id_unchecked");
                    assert_eq!(warnings.iter().any(|code| **code == FIXED[3]), unchecked || own, "{}, {name}: {warnings:?}", case.id);
                    seen[usize::from(unchecked)] += 1;
                }
                Err(code) => {
                    let refusal = got.expect_err(&case.id);
                    assert_eq!(refusal.code(), code, "{}, {name}: {refusal}", case.id);
                    if code == Code::GenerationMismatch {
                        let other = if generation == EvmGeneration::OLD { "v3" } else { "old" };
                        let named = (refusal.expected().unwrap().to_string(), refusal.actual().unwrap().to_string());
                        assert_eq!(named, (name.to_owned(), other.to_owned()), "{}", case.id);
                    }
                    seen[2 + usize::from(code == Code::GaslessNative)] += 1;
                }
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    Ok(())
}

fn fixture(id: &str) -> Case {
    fixtures::<Evm>().unwrap().into_iter().find(|case| case.id == id).expect(id)
}

#[test]
fn recovery_follows_the_pin() -> TestResult {
    let calls = TxContext::legacy(0, 1);
    let key = Key::from_bytes(&[3; 32])?;
    for (id, pin, is_recomputed) in [
        ("evm-v3", None, true),
        ("evm-old-v1", None, true),
        ("evm-old-v2", None, true),
        ("evm-old-source-2024", None, true),
        ("evm-record-evm-v2", None, true),
        ("evm-record-evm-v2", Some(("base:eth", EvmGeneration::OLD)), false),
        ("evm-record-native", Some(("ethereum:eth", EvmGeneration::V3)), true),
    ] {
        let registry = pin.map_or_else(|| pinned("ethereum:usdt", EvmGeneration::V3), |(asset, generation)| pinned(asset, generation));
        let order = record::<Evm>(id, |_| {})?;
        let refund = recover::refund(&order, Leg::Source, &registry)?;
        assert_eq!((hex::encode(refund.swap_id()), refund.terms().role), (order.source_swap.swap_id.clone(), Role::Refund), "{id}");
        assert_eq!(recover::swap_id(&order, Leg::Source, &registry)?, refund.swap_id());
        assert_eq!(refund.swap_id_recomputed(), is_recomputed, "{id}");
        assert_eq!(hex::encode(&refund.call().data), format!("7249fbb6{}", order.source_swap.swap_id));
        let unsigned = refund.prepare(calls.clone().sent_by(key.address()))?;
        let warnings: Vec<_> = unsigned.warnings().list().iter().map(|warning| warning.code()).collect();
        assert_eq!(warnings, if is_recomputed { vec![] } else { vec![Code::SwapIdUnchecked] });
    }

    // The pinned contract cannot have created this id, so a call with it would fail and is not prepared.
    for (id, asset, generation) in [
        ("evm-record-bitcoin-v1", "ethereum:usdc", EvmGeneration::V3),
        ("evm-record-bitcoin-delegate", "ethereum:usdc", EvmGeneration::OLD),
        ("evm-record-native", "ethereum:eth", EvmGeneration::OLD),
    ] {
        let refusal = recover::refund(&record::<Evm>(id, |_| {})?, Leg::Source, &pinned(asset, generation)).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::GenerationMismatch, "/order/version"), "{id}");
    }
    // The same holds for an id by the formula of the other generation.
    let by_v1 = record::<Evm>("evm-v3", |order| {
        order["source_swap"]["swap_id"] = "7ed859b63e573231e4787cd87e9b276d6a85f69d7876af5e65577bcdf085502e".into();
    })?;
    let refusal = recover::refund(&by_v1, Leg::Source, registry()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::GenerationMismatch, "/order/source_swap/swap_id"));
    // If the formula is not known, the id still must have 32 bytes.
    let order = record::<Evm>("evm-record-evm-v2", |order| order["source_swap"]["swap_id"] = "12".into())?;
    let refusal = recover::refund(&order, Leg::Source, &pinned("base:eth", EvmGeneration::OLD)).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    Ok(())
}

#[test]
fn redeems_an_order_of_a_contract_whose_formula_is_not_known() -> TestResult {
    let secret = [0x5a; 32];
    let hash = SecretHash::of(&secret);
    let order = record::<Evm>("evm-record-evm-v2", |order| order["source_swap"]["secret_hash"] = hash.to_string().into())?;
    let recovery = recover::redeem(&order, Leg::Source, &secret, &pinned("base:eth", EvmGeneration::OLD))?;
    let id = &order.source_swap.swap_id;
    let words = format!("{:064x}{:064x}{}", 0x40, 0x20, hex::encode(secret));
    assert_eq!(hex::encode(&recovery.call().data), format!("f7ff7207{id}{words}"));
    assert!(!recovery.swap_id_recomputed());
    let refusal = recover::redeem(&order, Leg::Source, &[1; 32], registry()).unwrap_err();
    assert_eq!(refusal.code(), Code::SecretWrong);
    Ok(())
}

/// Without a pin, the version of the record decides which formula and which domain versions are accepted. With a pin, the pin decides.
#[test]
fn a_pin_decides_where_the_version_of_the_record_would() -> TestResult {
    let case = fixture("evm-old-v2");
    let mut assets = registry_json();
    assets["assets"][asset_index("ethereum:dai")]["htlc"].as_object_mut().ok_or("no HTLC")?.remove("generation");
    let unpinned = Registry::from_json(assets.to_string().as_bytes())?;
    assert!(outcome_under::<Evm>(&case, &unpinned, &Policy::default()).is_ok());
    let by_source = fixture("evm-old-source-2024");
    let refusal = outcome_under::<Evm>(&by_source, &unpinned, &Policy::default()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    let domain = case.replaced("\"version\":\"1\"", "\"version\":\"3\"");
    assert!(outcome_under::<Evm>(&domain, &unpinned, &Policy::default()).is_ok());
    let refusal = outcome_under::<Evm>(&domain, registry(), &Policy::default()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::GenerationMismatch, "/response/result/typed_data/domain/version"));
    Ok(())
}

/// A registry is refused at the asset if the name of the generation is unknown, or if the asset is on Tron, whose contract has only one
/// generation.
#[test]
fn a_registry_names_only_generations_of_its_family() {
    for (asset, name) in
        [("ethereum:usdc", "v2"), ("ethereum:usdc", "V3"), ("ethereum:usdc", ""), ("ethereum:usdc", "2025_11"), ("tron:usdt", "v3")]
    {
        let mut assets = registry_json();
        let index = asset_index(asset);
        assets["assets"][index]["htlc"]["generation"] = name.into();
        let refusal = Registry::from_json(assets.to_string().as_bytes()).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::UnknownGeneration, &*format!("/assets/{index}/htlc/generation")), "{name}");
    }
}
