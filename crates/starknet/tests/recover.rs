//! The way out from an order record alone.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use countersign_core::{Code, SecretHash};
use countersign_starknet::recover::{self, Leg};
use countersign_starknet::{Felt, ResourceBounds, Wallet, felt, htlc};
use serde_json::Value as Json;
use support::recover::{record, refuses_other_records};
use support::{TestResult, fixture};

#[test]
fn refunds_the_source_to_the_owner() -> TestResult {
    let case = fixture("starknet-record-evm-v2").json();
    let record = record("starknet-record-evm-v2", |_| {})?;
    let way_out = recover::refund(&record, Leg::Source, support::registry())?;
    assert_eq!(format!("{:x}", way_out.swap_id), case["order"]["source_swap"]["swap_id"].as_str().ok_or("no id")?);
    assert_eq!(format!("{:#066x}", way_out.to), case["request"]["source"]["owner"]);
    assert_eq!(format!("{:#x}", way_out.call.to), case["response"]["result"]["initiate_transaction"]["to"]);
    assert_eq!((way_out.call.selector, &way_out.call.calldata), (htlc::REFUND, &vec![way_out.swap_id]));

    let sender = Felt::from(7);
    let mut wallet = Wallet::new(Felt::ONE, ResourceBounds::default());
    let invoke = way_out.prepare(sender, &wallet)?;
    assert_eq!(invoke.calldata, [Felt::ONE, way_out.call.to, htlc::REFUND, Felt::ONE, way_out.swap_id]);
    wallet.chain_id = felt::of_short_string("SN_SEPOLIA");
    assert_eq!(way_out.prepare(sender, &wallet).map(|_| ()).map_err(|refusal| refusal.code()), Err(Code::WalletChainMismatch));
    Ok(())
}

#[test]
fn redeems_with_the_right_secret_only() -> TestResult {
    let mut secret = [0x5a; 32];
    secret[..4].copy_from_slice(&[0, 0, 1, 2]);
    // The id of the changed swap, by another road than the one that is tested.
    let mended = |order: &mut Json| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    };
    let changed = record("starknet-record-bitcoin-v1", mended)?;
    let refusal = recover::redeem(&changed, Leg::Source, &secret, support::registry()).expect_err("the id is that of another hash");
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    let id = refusal.expected().ok_or("no id")?.to_owned();
    let record = record("starknet-record-bitcoin-v1", |order| {
        mended(order);
        order["source_swap"]["swap_id"] = id.clone().into();
    })?;
    let way_out = recover::redeem(&record, Leg::Source, &secret, support::registry())?;
    assert_eq!(way_out.call.selector, htlc::REDEEM);
    let words = [0x102_u32, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a].map(Felt::from);
    assert_eq!(way_out.call.calldata, [&[way_out.swap_id, Felt::from(8)][..], &words].concat());
    assert_eq!(format!("{:#066x}", way_out.to), record.source_swap.redeemer);
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], support::registry()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    Ok(())
}

#[test]
fn refuses_what_is_not_starknets_or_not_a_swap() -> TestResult {
    refuses_other_records(
        "starknet-record-evm-v2",
        &[(|order| order["source_swap"]["amount"] = "12".into(), Code::RecordSwapId, "/order/source_swap/swap_id")],
        |record, leg| recover::refund(record, leg, support::registry()),
    )
}
