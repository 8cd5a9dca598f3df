//! Recoveries with a wallet context in JSON: any context is either prepared, or refused at a location in it or in the record.
use crate::contexts;

use countersign::FAMILIES;
use proptest::prelude::*;
use serde_json::{Value, json};

use contexts::{prepare, recoveries};

/// Generates values that some member accepts, and some that none does.
fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[0-9]{0,80}", "0x[0-9a-f]{0,70}", "[1-9A-HJ-NP-Za-km-z]{0,50}", "\\PC{0,12}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{1,9}", inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn each_context_prepares_its_recovery_and_an_unknown_member_is_refused() {
    let recoveries = recoveries();
    assert_eq!(recoveries.len(), FAMILIES.len());
    for (recovery, mut wallet) in recoveries {
        let order = prepare(&recovery, &wallet.to_string()).unwrap_or_else(|refusal| panic!("{}: {refusal}", recovery.family()));
        assert_eq!((order.family(), order.order_id()), (recovery.family(), Some(&*recovery.terms().order_id)));
        wallet["Sender"] = json!("somebody");
        let refusal = prepare(&recovery, &wallet.to_string()).unwrap_err();
        assert_eq!((refusal.code().name(), refusal.location()), ("unexpected_field", "/wallet/Sender"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_of_any_member_is_prepared_or_refused_at_its_location(
        index in any::<prop::sample::Index>(),
        member in any::<prop::sample::Index>(),
        value in any_value(),
    ) {
        let recoveries = recoveries();
        let (recovery, wallet) = index.get(&recoveries);
        let mut wallet = wallet.clone();
        let name = member.get(&wallet.as_object().unwrap().keys().cloned().collect::<Vec<_>>()).clone();
        wallet[name] = value.clone();
        for wallet in [wallet.to_string(), value.to_string()] {
            if let Err(refusal) = prepare(recovery, &wallet) {
                let at = refusal.location();
                prop_assert!(at.starts_with("/wallet") || at.starts_with("/order/source_swap"), "{at}: {refusal}");
                countersign_testkit::lines::check_origin(&refusal);
            }
        }
    }
}

/// The rules of a redemption hold for a context in JSON, by which the bindings prepare it.
#[test]
#[cfg(feature = "bitcoin")]
fn a_context_in_json_has_the_rules_of_a_redemption() {
    use countersign::OrderRecord;
    use countersign::recover::{self, Leg};
    use countersign::{Code, SecretHash};
    use countersign_testkit::lines::accepted_case;
    use countersign_testkit::registry;

    let secret = [0x5a; 32];
    let mut order = accepted_case("bitcoin-delegate").json()["order"].take();
    order["source_swap"]["secret_hash"] = json!(SecretHash::of(&secret).to_string());
    let read = |order: &Value| OrderRecord::from_json(order.to_string().as_bytes()).unwrap();
    let refusal = recover::redeem(&read(&order), Leg::Source, &secret, registry()).map(|_| ()).unwrap_err();
    assert_eq!(refusal.code(), Code::RecordSwapId);
    order["source_swap"]["swap_id"] = json!(refusal.expected().unwrap().to_string());
    let redeem = recover::redeem(&read(&order), Leg::Source, &secret, registry()).unwrap();

    let output = |byte: &str, value: u64| format!("{}:0:{value}", byte.repeat(32));
    let wallet = |change: Value| {
        let mut wallet = json!({
            "funding": [output("ab", 50_000)],
            "fee_rate": "2",
            "to": "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
        });
        for (name, value) in change.as_object().unwrap() {
            wallet[name] = value.clone();
        }
        wallet.to_string()
    };
    let less = json!([output("ab", 49_999)]);
    let parts = json!([output("ab", 30_000), output("cd", 20_000)]);
    for (change, code, at) in [
        (json!({ "funding": less }), "funding_mismatch", "/wallet/funding"),
        (json!({ "funding": parts }), "funding_mismatch", "/wallet/funding"),
        (json!({ "fee_rate": "0.0001" }), "fee_too_low", "/wallet/fee_rate"),
        (json!({ "fee_rate": "300" }), "fee_above_payout", "/wallet/fee_rate"),
        (json!({ "accept_less": "yes" }), "wrong_type", "/wallet/accept_less"),
    ] {
        let refusal = prepare(&redeem, &wallet(change)).map(|_| ()).unwrap_err();
        assert_eq!((refusal.code().name(), refusal.location()), (code, at));
    }
    for (change, warned) in [
        (json!({}), None),
        (json!({ "accept_less": true, "accept_low_fee": true, "accept_high_fee": true }), None),
        (json!({ "funding": less, "accept_less": true }), Some(Code::SecretForLess)),
        (json!({ "funding": parts, "accept_less": true }), Some(Code::SecretForLess)),
        (json!({ "fee_rate": "0.0001", "accept_low_fee": true }), Some(Code::FeeTooLow)),
        (json!({ "fee_rate": "200", "accept_high_fee": true }), Some(Code::FeeAbovePayout)),
        (json!({ "funding": [output("cd", 330), output("ab", 50_000)] }), Some(Code::OutputsLeft)),
    ] {
        let order = prepare(&redeem, &wallet(change.clone())).unwrap_or_else(|refusal| panic!("{change}: {refusal}"));
        let codes: Vec<_> = order.warnings().list().iter().map(|warning| warning.code()).collect();
        assert_eq!(codes, warned.into_iter().collect::<Vec<_>>(), "{change}");
    }
}

/// A deposit at a rate that some nodes do not relay causes a warning, and its verdict is unchanged.
#[test]
#[cfg(feature = "bitcoin")]
fn a_deposit_at_a_low_rate_is_accepted_and_said() {
    let mut case = countersign_testkit::lines::accepted_case("bitcoin-p2wpkh").json();
    for (rate, is_low) in [("0.0001", true), ("0.999", true), ("1", false), ("1.0", false)] {
        case["wallet"]["fee_rate"] = json!(rate);
        let output = countersign_testkit::lines::run(&case.to_string());
        assert_eq!(output["ok"], true, "{output}");
        assert_eq!(countersign_testkit::lines::warning_codes(&output).contains(&"fee_too_low"), is_low, "{rate}");
    }
}

/// The wallet's choice of a message of version 1 goes through JSON, within the policy.
#[test]
#[cfg(feature = "solana")]
fn a_recovery_on_solana_may_have_a_message_of_version_1() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use countersign::Policy;
    use countersign_core::json::{self, Cursor};

    let (recovery, wallet) = recoveries().into_iter().find(|(recovery, _)| recovery.family() == countersign::Family::Solana).unwrap();
    let prepared = |config: Value, policy: &str| {
        let mut wallet = wallet.clone();
        wallet["config"] = config;
        let text = wallet.to_string();
        let value = json::parse(text.as_bytes()).unwrap();
        let policy = Policy::from_json(policy.as_bytes()).unwrap();
        countersign_json::prepare_recovery(&recovery, Cursor::root(&value, "/wallet"), &policy).map(|unsigned| {
            let artefacts: Value = serde_json::from_str(&countersign_json::objects::artefacts(&unsigned)).unwrap();
            STANDARD.decode(artefacts["refund"]["message"].as_str().unwrap()).unwrap()
        })
    };
    let legacy = prepared(Value::Null, "{}").unwrap();
    assert!(legacy[0] < 0x80);
    let full = json!({ "compute_unit_limit": 1_000, "loaded_accounts_data_size_limit": 65_536, "priority_fee": 7, "heap_size": 32_768 });
    let message = prepared(full.clone(), "{}").unwrap();
    // SIMD-0385: version byte, header, mask, blockhash, two counts, addresses, then the values that the mask names.
    assert_eq!(message[0], 0x81);
    assert_eq!(message[4..8], 0b1_1111_u32.to_le_bytes());
    let values = 42 + 32 * usize::from(message[41]);
    let expected = [&7_u64.to_le_bytes()[..], &1_000_u32.to_le_bytes(), &65_536_u32.to_le_bytes(), &32_768_u32.to_le_bytes()].concat();
    assert_eq!(message[values..values + expected.len()], expected);

    let changed = |name: &str, value: Value| {
        let mut config = full.clone();
        config[name] = value;
        config
    };
    for (config, policy, code, at) in [
        (json!({}), "{}", "missing_field", "/compute_unit_limit"),
        (json!({ "compute_unit_limit": 1 }), "{}", "missing_field", "/loaded_accounts_data_size_limit"),
        (json!("v1"), "{}", "wrong_type", ""),
        (changed("computeUnitLimit", json!(1)), "{}", "unexpected_field", "/computeUnitLimit"),
        (changed("compute_unit_limit", json!("1000")), "{}", "wrong_type", "/compute_unit_limit"),
        (changed("compute_unit_limit", json!(0)), "{}", "gas_limit_too_low", "/compute_unit_limit"),
        (changed("compute_unit_limit", json!(1_400_001)), "{}", "gas_limit_too_high", "/compute_unit_limit"),
        (changed("compute_unit_limit", json!(4_294_967_296_u64)), "{}", "number_too_large", "/compute_unit_limit"),
        (changed("loaded_accounts_data_size_limit", json!(67_108_865)), "{}", "gas_limit_too_high", "/loaded_accounts_data_size_limit"),
        (changed("priority_fee", json!(10_001)), "{}", "gas_limit_too_high", "/priority_fee"),
        (changed("heap_size", json!(32_769)), "{}", "transaction_malformed", "/heap_size"),
        (full.clone(), r#"{"solana_compute_unit_limit": 999}"#, "gas_limit_too_high", "/compute_unit_limit"),
        (full.clone(), r#"{"solana_compute_unit_price": 6000}"#, "gas_limit_too_high", "/priority_fee"),
    ] {
        let refusal = prepared(config.clone(), policy).unwrap_err();
        assert_eq!((refusal.code().name(), refusal.location()), (code, &*format!("/wallet/config{at}")), "{config}");
    }
    assert!(prepared(full, r#"{"solana_compute_unit_price": 7000}"#).is_ok());
}
