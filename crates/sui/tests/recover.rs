//! The way out from an order record alone.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use countersign_core::Code;
use countersign_sui::Wallet;
use countersign_sui::recover::{self, Leg, Names, Recovery};
use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference};
use serde_json::Value as Json;
use support::recover::{read_record, record, refuses_other_records};
use support::{TestResult, asset_index, outside, registry, registry_with};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kind(recovery: &Recovery) -> String {
    hex(&bcs::to_bytes(recovery.kind.as_ref()).expect("encodes"))
}

#[test]
fn the_calls_are_those_of_the_reference_sdk() -> TestResult {
    let ways = outside()["ways_out"].clone();
    let record = read_record(&ways["order"])?;
    let secret: Vec<_> = (0..32)
        .map(|index| u8::from_str_radix(&ways["secret"].as_str().unwrap_or_default()[index * 2..index * 2 + 2], 16))
        .collect::<Result<_, _>>()?;
    let secret: [u8; 32] = secret.try_into().map_err(|_| "no secret")?;

    let refund = recover::refund(&record, Leg::Source, registry(), Names::Current)?;
    assert_eq!(kind(&refund), ways["refund"].as_str().ok_or("no kind")?);
    assert_eq!(refund.to.to_string(), record.source_swap.initiator);
    assert_eq!(hex(&refund.swap_id), record.source_swap.swap_id);
    assert!(refund.swap_id_recomputed);
    let refund = recover::refund(&record, Leg::Source, registry(), Names::Older)?;
    assert_eq!(kind(&refund), ways["refund_swap"].as_str().ok_or("no kind")?);

    let redeem = recover::redeem(&record, Leg::Source, &secret, registry(), Names::Current)?;
    assert_eq!(kind(&redeem), ways["redeem"].as_str().ok_or("no kind")?);
    assert_eq!(redeem.to.to_string(), record.source_swap.redeemer);
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], registry(), Names::Current).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));

    let coin = ObjectReference::new(Address::new([7; 32]), 1, Digest::new([8; 32]));
    let sender = Address::new([9; 32]);
    let unsigned = redeem.prepare(sender, &Wallet::new(1_000, 5_000_000, vec![coin.clone()]))?;
    assert_eq!((unsigned.sender, unsigned.gas_payment.owner), (sender, sender));
    assert_eq!(unsigned.signing_digest, unsigned.transaction().signing_digest());
    assert_eq!(unsigned.digest(), unsigned.transaction().digest());
    assert_eq!(unsigned.bytes, bcs::to_bytes(&unsigned.transaction())?);
    let refusal = redeem.prepare(sender, &Wallet::new(1_000, 5_000_000, vec![coin.clone(), coin])).expect_err("twice");
    assert_eq!((refusal.code(), refusal.location()), (Code::GasCoinTwice, "/wallet/gas_payment/1/object_id"));
    let refusal = redeem.prepare(sender, &Wallet::new(1_000, 5_000_000, vec![])).expect_err("none");
    assert_eq!((refusal.code(), refusal.location()), (Code::GasCoinCount, "/wallet/gas_payment"));
    Ok(())
}

#[test]
fn refuses_what_is_not_suis_or_not_a_swap() -> TestResult {
    refuses_other_records(
        "sui-record-evm",
        &[
            (|order| order["source_swap"]["timelock"] = 1.into(), Code::RecordSwapId, "/order/source_swap/swap_id"),
            (|order| order["source_swap"]["initiator"] = "0x00".into(), Code::RecordMismatch, "/order/source_swap/initiator"),
        ],
        |record, leg| recover::refund(record, leg, registry(), Names::Current),
    )
}

#[test]
fn a_main_networks_id_may_follow_another_formula() -> TestResult {
    let record = record("sui-record-other-id", |_| {})?;
    assert!(!recover::refund(&record, Leg::Source, registry(), Names::Current)?.swap_id_recomputed);
    Ok(())
}

#[test]
fn a_way_out_needs_the_pinned_registry_object_and_its_version() -> TestResult {
    let record = record("sui-record-evm", |_| {})?;
    let htlc = format!("/assets/{}/htlc", asset_index("sui_testnet:sui"));
    for member in ["registry", "registry_initial_shared_version"] {
        let registry = registry_with(&[(&format!("{htlc}/{member}"), Json::Null)]);
        let refusal = recover::refund(&record, Leg::Source, &registry, Names::Current).expect_err(member);
        assert_eq!((refusal.code(), refusal.location()), (Code::UnknownAsset, "/order/source_swap/asset"));
    }
    Ok(())
}
