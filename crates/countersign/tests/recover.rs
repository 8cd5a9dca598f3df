//! The facade's recovery: the pinned chain of the leg decides the family, and every family says the same about itself.
use countersign::recover::{Leg, Recovery, redeem, refund};
use countersign::{Code, Family, OrderRecord, Role, SecretHash};
use countersign_testkit::{fixtures_of, registry};
use serde_json::Value;

/// The record of a fixture.
fn order(id: &str, family: Family) -> Value {
    let cases = fixtures_of(family).unwrap();
    let mut case = cases.into_iter().find(|case| case.id == id).expect(id).json();
    case["order"].take()
}

fn record(order: &Value) -> OrderRecord {
    OrderRecord::from_json(order.to_string().as_bytes()).unwrap()
}

#[test]
fn the_leg_decides_the_family() {
    for (id, source, destination) in [
        ("evm-record-bitcoin-v1", Family::Evm, Family::Bitcoin),
        ("evm-record-tron", Family::Evm, Family::Tron),
        ("tron-record-evm-v2", Family::Tron, Family::Evm),
        ("starknet-record-tron", Family::Starknet, Family::Tron),
        ("solana-record-testnet", Family::Solana, Family::Bitcoin),
        ("sui-record-solana", Family::Sui, Family::Solana),
        ("sui-record-starknet", Family::Sui, Family::Starknet),
        ("bitcoin-record-sui", Family::Bitcoin, Family::Sui),
    ] {
        let order = order(id, source);
        let record = record(&order);
        for (leg, family) in [(Leg::Source, source), (Leg::Destination, destination)] {
            let recovery = refund(&record, leg, registry()).unwrap_or_else(|refusal| panic!("{id}: {refusal}"));
            let terms = recovery.terms();
            assert_eq!((recovery.family(), terms.role, terms.order_id), (family, Role::Refund, record.order_id.clone()));
            let swap = leg.of(&record);
            assert_eq!(terms.amount, swap.amount, "{id}");
            // On Bitcoin-like chains the owner's own key is in the delegate, beside the address.
            let own_key = swap.delegate.as_deref().filter(|_| family == Family::Bitcoin && leg == Leg::Source);
            let payee = terms.payee.to_string();
            assert_eq!(payee.to_lowercase(), own_key.unwrap_or(&swap.initiator).to_lowercase(), "{id}");
            let refusal = redeem(&record, leg, &[7; 32], registry()).map(|_| ()).unwrap_err();
            assert_eq!(refusal.code(), Code::SecretWrong, "{id}");
        }
    }
}

#[test]
fn a_redemption_pays_the_redeemer_and_does_not_show_its_secret() {
    let secret = [0x5a; 32];
    let mut order = order("tron-record-evm-v2", Family::Tron);
    order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    let recovery = redeem(&record(&order), Leg::Source, &secret, registry()).unwrap();
    let terms = recovery.terms();
    assert_eq!(terms.role, Role::Redeem);
    assert_eq!(terms.payee.to_string(), order["source_swap"]["redeemer"]);
    assert!(!format!("{recovery:?}").contains("5a5a5a5a") && !format!("{recovery:?}").contains("90, 90, 90"));
}

#[test]
fn an_asset_that_is_not_pinned_is_refused_at_its_place() {
    let mut order = order("evm-record-tron", Family::Evm);
    order["destination_swap"]["asset"] = "tron:nothing".into();
    let refusal = refund(&record(&order), Leg::Destination, registry()).map(|_| ()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::UnknownAsset, "/order/destination_swap/asset"));
}

#[test]
fn a_recovery_crosses_threads() {
    const fn crosses<T: Send + Sync + Clone>() {}
    crosses::<Recovery>();
}
