//! Recovery from an order record alone.

use alloy_primitives::{hex, keccak256};
use countersign_core::{Code, Policy, RequestId, Role, SecretHash, UnixMillis};
use countersign_testkit::recover::{record, refuses_other_records, shows_no_secret};
use countersign_testkit::{TestResult, fixture, registry};
use countersign_tron::recover::{self, Leg};
use countersign_tron::{Address, Key, Tron, TxContext};

#[test]
fn refunds_the_source_to_the_owner() -> TestResult {
    let case = fixture::<Tron>("tron-record-evm-v2").json();
    let record = record::<Tron>("tron-record-evm-v2", |_| {})?;
    let recovery = recover::refund(&record, Leg::Source, registry())?;
    let id = case["order"]["source_swap"]["swap_id"].as_str().ok_or("no id")?;
    assert_eq!(hex::encode(recovery.swap_id()), id);
    assert!(recovery.swap_id_recomputed());
    assert_eq!(recover::swap_id(&record, Leg::Source, registry())?, (recovery.swap_id(), true));
    assert_eq!(recovery.to().to_string(), case["request"]["source"]["owner"]);
    assert_eq!(recovery.call().to.to_string(), case["response"]["result"]["initiate_transaction"]["to"]);
    let selector = &keccak256("refund(bytes32)")[..4];
    assert_eq!(hex::encode(&recovery.call().data), format!("{}{id}", hex::encode(selector)));

    let key = Key::from_bytes(&[3; 32])?;
    let sender = Address::from(key.address());
    let calls = TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_060_000), UnixMillis::from_millis(1_772_601_000_000));
    let mut unsigned = recovery.prepare(calls.clone().sent_by(sender))?;
    assert_eq!((unsigned.order_id(), unsigned.missing()), (Some(record.order_id.as_str()), vec![RequestId::Refund]));
    assert_eq!(unsigned.warnings().list(), []);
    let text = format!("refund of swap {id} pays {} base units to {}", recovery.terms().amount, recovery.to());
    assert!(unsigned.summary().to_string().contains(&text), "{}", unsigned.summary());
    unsigned.sign(&key)?;
    let transactions = unsigned.finish()?.transactions();
    let [transaction] = transactions.as_slice() else { panic!("one transaction") };
    assert_eq!((transaction.role, transaction.native.signer()), (Role::Refund, Some(sender)));
    let signed = transaction.native.transaction();
    assert_eq!((signed.trigger.owner_address.as_slice(), signed.raw.fee_limit), (&sender.prefixed()[..], recover::FEE_LIMIT));
    assert!(recovery.prepare(calls.clone().with_chain_id(recovery.chain_id()).sent_by(sender)).is_ok());
    let refusal = recovery.prepare(calls.with_chain_id(1).sent_by(sender)).expect_err("another chain");
    assert_eq!((refusal.code(), refusal.location()), (Code::WalletChainMismatch, "/chain_id"));
    Ok(())
}

#[test]
fn the_fee_limit_is_within_the_policy() -> TestResult {
    let recovery = recover::refund(&record::<Tron>("tron-record-evm-v2", |_| {})?, Leg::Source, registry())?;
    let (sender, calls) = (
        Address::from([3; 20]),
        TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_060_000), UnixMillis::from_millis(1_772_601_000_000)),
    );
    let low = recovery.clone().with_policy(&Policy::from_json(br#"{"tron_fee_limit":99999999}"#)?);
    let key = Key::from_bytes(&[3; 32])?;
    let mut unsigned = low.prepare(calls.clone().with_fee_limit(99_999_999).sent_by(key.address().into()))?;
    unsigned.sign(&key)?;
    assert_eq!(unsigned.finish()?.transactions()[0].native.transaction().raw.fee_limit, 99_999_999);
    for (recovery, calls, code) in [
        (&low, calls.clone(), Code::GasLimitTooHigh),
        (&recovery, calls.clone().with_fee_limit(15_000_000_001), Code::GasLimitTooHigh),
        (&recovery, calls.with_fee_limit(0), Code::GasLimitTooLow),
    ] {
        let refusal = recovery.prepare(calls.clone().sent_by(sender)).expect_err("a limit");
        assert_eq!((refusal.code(), refusal.location()), (code, "/fee_limit"));
        // Only a limit that is too high can be raised, by the policy's field of this name.
        assert_eq!(refusal.to_string().contains("tron_fee_limit"), code == Code::GasLimitTooHigh, "{refusal}");
    }
    Ok(())
}

#[test]
fn redeems_with_the_right_secret_only() -> TestResult {
    let secret = [0x5a; 32];
    let record = record::<Tron>("tron-record-native-v3", |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    })?;
    let recovery = recover::redeem(&record, Leg::Source, &secret, registry())?;
    shows_no_secret(&recovery, &secret, &[]);
    assert!(!recovery.swap_id_recomputed(), "the id is that of another secret hash");
    assert_eq!(recover::swap_id(&record, Leg::Source, registry())?, (recovery.swap_id(), false));
    let unsigned = recovery.prepare(
        TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_060_000), UnixMillis::from_millis(1_772_601_000_000))
            .sent_by([3; 20].into()),
    )?;
    assert_eq!(unsigned.warnings().list().iter().map(|warning| warning.code()).collect::<Vec<_>>(), [Code::SwapIdUnchecked]);
    // 200,000 units of energy at 100 sun. Nodes see the secret of a redemption, also of one that runs out of energy.
    let with = |limit| {
        TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_060_000), UnixMillis::from_millis(1_772_601_000_000))
            .with_fee_limit(limit)
            .sent_by([3; 20].into())
    };
    let refusal = recovery.prepare(with(19_999_999)).map(|_| ()).expect_err("too little energy");
    assert_eq!((refusal.code(), refusal.location()), (Code::FeeTooLow, "/fee_limit"));
    assert!(recovery.prepare(with(20_000_000)).is_ok());
    let accepted = recovery.prepare(with(1).with_low_fee(true))?;
    assert!(accepted.warnings().list().iter().any(|warning| warning.code() == Code::FeeTooLow));
    assert_eq!(hex::encode(&recovery.call().data[..4]), "f7ff7207");
    assert_eq!(&recovery.call().data[4 + 3 * 32..], secret);
    assert_eq!(recovery.to().to_string(), record.source_swap.redeemer);
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], registry()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    Ok(())
}

#[test]
fn refuses_what_is_not_trons_or_not_a_swap() -> TestResult {
    refuses_other_records::<Tron, _>(
        "tron-record-evm-v2",
        &[(|order| order["source_swap"]["initiator"] = "0x00".into(), Code::RecordMismatch, "/order/source_swap/initiator")],
        |record, leg| recover::refund(record, leg, registry()),
    )
}
