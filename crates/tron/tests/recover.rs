//! The way out from an order record alone.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use alloy_primitives::{hex, keccak256};
use countersign_core::{Code, SecretHash};
use countersign_tron::recover::{self, Leg};
use countersign_tron::{Address, Wallet};
use support::recover::{record, refuses_other_records};
use support::{TestResult, fixture};

#[test]
fn refunds_the_source_to_the_owner() -> TestResult {
    let case = fixture("tron-record-evm-v2").json();
    let record = record("tron-record-evm-v2", |_| {})?;
    let way_out = recover::refund(&record, Leg::Source, support::registry())?;
    let id = case["order"]["source_swap"]["swap_id"].as_str().ok_or("no id")?;
    assert_eq!(hex::encode(way_out.swap_id), id);
    assert!(way_out.swap_id_recomputed);
    assert_eq!(way_out.to.to_string(), case["request"]["source"]["owner"]);
    assert_eq!(way_out.call.to.to_string(), case["response"]["result"]["initiate_transaction"]["to"]);
    let selector = &keccak256("refund(bytes32)")[..4];
    assert_eq!(hex::encode(&way_out.call.data), format!("{}{id}", hex::encode(selector)));

    let sender = Address::from([3; 20]);
    let payload = way_out.prepare(sender, &Wallet::new([1, 2], [3; 8], 60_000, 0))?;
    assert_eq!((payload.trigger.owner_address.as_slice(), payload.transaction.fee_limit), (&sender.prefixed()[..], recover::FEE_LIMIT));
    let mut wallet = Wallet::new([1, 2], [3; 8], 60_000, 0);
    wallet.chain_id = Some(1);
    assert_eq!(way_out.prepare(sender, &wallet).map_err(|refusal| refusal.code()), Err(Code::WalletChainMismatch));
    Ok(())
}

#[test]
fn redeems_with_the_right_secret_only() -> TestResult {
    let secret = [0x5a; 32];
    let record = record("tron-record-native-v3", |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    })?;
    let way_out = recover::redeem(&record, Leg::Source, &secret, support::registry())?;
    assert!(!way_out.swap_id_recomputed, "the id is that of another secret hash");
    assert_eq!(hex::encode(&way_out.call.data[..4]), "f7ff7207");
    assert_eq!(&way_out.call.data[4 + 3 * 32..], secret);
    assert_eq!(way_out.to.to_string(), record.source_swap.redeemer);
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], support::registry()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    Ok(())
}

#[test]
fn refuses_what_is_not_trons_or_not_a_swap() -> TestResult {
    refuses_other_records(
        "tron-record-evm-v2",
        &[(|order| order["source_swap"]["initiator"] = "0x00".into(), Code::RecordMismatch, "/order/source_swap/initiator")],
        |record, leg| recover::refund(record, leg, support::registry()),
    )
}
