//! Recovery from an order record alone.

use countersign_core::{Code, RequestId, Role, SecretHash};
use countersign_starknet::recover::{self, Leg};
use countersign_starknet::{Felt, Key, ResourceBound, ResourceBounds, Starknet, TxContext, UnsignedOrder, felt, htlc};
use countersign_testkit::recover::{record, refuses_other_records, shows_no_secret};
use countersign_testkit::{TestResult, fixture, registry};
use serde_json::Value as Json;

#[test]
fn refunds_the_source_to_the_owner() -> TestResult {
    let case = fixture::<Starknet>("starknet-record-evm-v2").json();
    let record = record::<Starknet>("starknet-record-evm-v2", |_| {})?;
    let recovery = recover::refund(&record, Leg::Source, registry())?;
    assert_eq!(format!("{:x}", recovery.swap_id()), case["order"]["source_swap"]["swap_id"].as_str().ok_or("no id")?);
    assert_eq!(recover::swap_id(&record, Leg::Source, registry())?, (recovery.swap_id(), recovery.swap_id_recomputed()));
    assert_eq!(format!("{:#066x}", recovery.to()), case["request"]["source"]["owner"]);
    assert_eq!(format!("{:#x}", recovery.call().to), case["response"]["result"]["initiate_transaction"]["to"]);
    assert_eq!((recovery.call().selector, &recovery.call().calldata), (htlc::REFUND, &vec![recovery.swap_id()]));

    let (sender, key) = (Felt::from(7), Key::parse("0x1234")?);
    let execution = TxContext::new(Felt::ONE, ResourceBounds::default()).with_public_key(key.public_key());
    let mut unsigned = recovery.prepare(execution.clone().sent_by(sender))?;
    assert_eq!((unsigned.order_id(), unsigned.verified().is_none()), (Some(record.order_id.as_str()), true));
    let summary = unsigned.summary().to_string();
    let payout =
        format!("pay-out: refund of swap {:x} pays {} base units to {:#066x}", recovery.swap_id(), recovery.terms().amount, recovery.to());
    assert!(summary.contains(&payout), "{summary}");
    assert_eq!(unsigned.missing(), [RequestId::Refund]);
    unsigned.sign(&key)?;
    let [sent] = unsigned.finish()?.transactions().try_into().map_err(|_| "one transaction")?;
    assert_eq!((sent.role, &sent.bytes, sent.native.sender_address), (Role::Refund, &serde_json::to_vec(&sent.native)?, sender));
    assert_eq!(sent.native.calldata, [Felt::ONE, recovery.call().to, htlc::REFUND, Felt::ONE, recovery.swap_id()]);
    assert_eq!(sent.id, format!("{:#x}", sent.native.hashes(recovery.chain_id()).tx_hash));

    let elsewhere = execution.with_chain_id(felt::from_short_string("SN_SEPOLIA")?);
    let refusal = recovery.prepare(elsewhere.sent_by(sender)).expect_err("another chain");
    assert_eq!((refusal.code(), refusal.location()), (Code::WalletChainMismatch, "/chain_id"));
    Ok(())
}

#[test]
fn redeems_with_the_right_secret_only() -> TestResult {
    let mut secret = [0x5a; 32];
    secret[..4].copy_from_slice(&[0, 0, 1, 2]);
    // The id of the changed swap, computed independently of the tested code.
    let mended = |order: &mut Json| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    };
    let changed = record::<Starknet>("starknet-2025-02", mended)?;
    let refusal = recover::redeem(&changed, Leg::Source, &secret, registry()).expect_err("the id is that of another hash");
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    let id = refusal.expected().ok_or("no id")?.to_string();
    let record = record::<Starknet>("starknet-2025-02", |order| {
        mended(order);
        order["source_swap"]["swap_id"] = id.clone().into();
    })?;
    let recovery = recover::redeem(&record, Leg::Source, &secret, registry())?;
    assert_eq!((recovery.terms().role, recovery.call().selector), (Role::Redeem, htlc::REDEEM));
    let words = [0x102_u32, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a, 0x5a5a_5a5a].map(Felt::from);
    assert_eq!(recovery.call().calldata, [&[recovery.swap_id(), Felt::from(8)][..], &words].concat());
    // A felt is shown in the form in which it is kept.
    shows_no_secret(&recovery, &secret, &[format!("{:?}", words[0]), format!("{:?}", words[1])]);
    assert_eq!(format!("{:#066x}", recovery.to()), record.source_swap.redeemer);
    // Nodes see the secret of a redemption, also of one that cannot pay for L2 gas. No redemption needs as little as 1,000 Cairo steps.
    let none = ResourceBound::new(0, 0);
    let with = |amount, price| {
        TxContext::new(Felt::ONE, ResourceBounds::new(none, ResourceBound::new(amount, price), none)).sent_by(Felt::from(7))
    };
    let is_warned = |unsigned: UnsignedOrder| unsigned.warnings().list().iter().any(|warning| warning.code() == Code::FeeTooLow);
    for (amount, price) in [(0, 0), (0, 1), (1, 1), (99_999, 1), (100_000, 0)] {
        let refusal = recovery.prepare(with(amount, price)).map(|_| ()).expect_err("too little L2 gas");
        assert_eq!((refusal.code(), refusal.location()), (Code::FeeTooLow, "/resource_bounds/l2_gas"), "{amount} {price}");
        assert!(is_warned(recovery.prepare(with(amount, price).with_low_fee(true))?), "{amount} {price}");
    }
    assert!(!is_warned(recovery.prepare(with(100_000, 1))?));
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], registry()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    Ok(())
}

#[test]
fn refuses_what_is_not_starknets_or_not_a_swap() -> TestResult {
    refuses_other_records::<Starknet, _>(
        "starknet-record-evm-v2",
        &[(|order| order["source_swap"]["amount"] = "12".into(), Code::RecordSwapId, "/order/source_swap/swap_id")],
        |record, leg| recover::refund(record, leg, registry()),
    )
}
