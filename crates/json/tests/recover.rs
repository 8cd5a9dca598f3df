//! Recoveries with a wallet context in JSON: any context is either prepared, or refused at a location in it or in the record.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod contexts;

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
            }
        }
    }
}
