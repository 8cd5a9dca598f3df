//! Tests that a sent transaction that is in no block is signed again, because a single endpoint may have withheld it.

use countersign::recover::Recovery;
use countersign::tron::recover::{self, Leg};
use countersign::tron::{Address, Tron as Family, TronTransaction};
use countersign::{Code, Policy, SecretHash, Unsigned};
use countersign_node::{NodeError, Speed};
use countersign_testkit::recover::record;
use countersign_testkit::registry;

use crate::tron::fake::{SECRET, SOLID, Tron, nodes, terms};

pub(crate) fn redemption() -> Recovery {
    let hash = SecretHash::of(&SECRET).to_string();
    let record = record::<Family>("tron-record-native-v3", |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    Recovery::Tron(recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap())
}

pub(crate) fn tron(solid: u64) -> Tron {
    Tron { solid, coins: 100_000_000, ..Tron::funded(&terms().destination) }
}

pub(crate) fn transaction(unsigned: Unsigned) -> TronTransaction {
    let Unsigned::Tron(order) = unsigned else { panic!("{unsigned:?}") };
    order.payloads().calls[0].transaction.clone()
}

#[tokio::test(start_paused = true)]
async fn a_redemption_that_was_swallowed_is_signed_again_with_a_new_reference_block() {
    let sender = Address::from([0xa1; 20]).to_string();
    let (before, after) = (nodes(tron(SOLID), 2), nodes(tron(SOLID + 7), 2));
    let policy = Policy::default();
    let first = before.prepare_recovery(&redemption(), "tron", &sender, Speed::Normal, &policy).await.unwrap();
    let first = transaction(first);
    let sent = after.submission("tron", "", "").unwrap();
    let second = after.prepare_replacement(&redemption(), "tron", &sender, &sent, Speed::Normal, &policy).await.unwrap();
    let second = transaction(second);
    assert_eq!(first.raw.ref_block_bytes, SOLID.to_be_bytes()[6..]);
    assert_eq!(second.raw.ref_block_bytes, (SOLID + 7).to_be_bytes()[6..]);
    assert_eq!((&second.trigger, second.raw.fee_limit), (&first.trigger, first.raw.fee_limit));
    assert!(second.raw.expiration > first.raw.expiration);
}

#[tokio::test(start_paused = true)]
async fn a_fee_limit_above_the_policy_is_refused_with_what_it_costs_and_pays() {
    let sender = Address::from([0xa1; 20]).to_string();
    let nodes = nodes(tron(SOLID), 1);
    let low = Policy::from_json(br#"{"tron_fee_limit": 99999999}"#).unwrap();
    let error = nodes.prepare_recovery(&redemption(), "tron", &sender, Speed::Normal, &low).await.unwrap_err();
    assert!(matches!(&error, NodeError::Refused(refusal) if refusal.code() == Code::GasLimitTooHigh), "{error}");
    for part in ["the redemption may cost up to 100 of the chain's own coin (100000000 sun)", "pays", "tron_fee_limit"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn once_the_secret_is_out_the_limit_of_the_policy_is_paid_if_it_is_enough_for_the_energy() {
    let sender = Address::from([0xa1; 20]).to_string();
    let nodes = nodes(tron(SOLID), 1);
    let limit = |sun: u64| Policy::from_json(format!(r#"{{"tron_fee_limit": {sun}}}"#).as_bytes()).unwrap();
    let urgent = nodes.prepare_urgent(&redemption(), "tron", &sender, Speed::Normal, &limit(99_999_999)).await.unwrap();
    let said = urgent.warnings().list().iter().find(|warning| warning.code() == Code::GasLimitTooHigh).unwrap().to_string();
    assert!(said.contains("it pays that limit"), "{said}");
    assert_eq!(transaction(urgent).raw.fee_limit, 99_999_999);
    let error = nodes.prepare_urgent(&redemption(), "tron", &sender, Speed::Normal, &limit(1_000_000)).await.unwrap_err();
    assert!(matches!(&error, NodeError::Refused(refusal) if refusal.code() == Code::GasLimitTooLow), "{error}");
}
