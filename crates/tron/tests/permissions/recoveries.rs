//! Refunds and redemptions of an account whose permission has several keys.

use countersign_core::chains::UnixMillis;
use countersign_core::{Code, Refusal};
use countersign_testkit::recover::record;
use countersign_testkit::{TestResult, registry};
use countersign_tron::{Address, Key, Permission, Tron, TxContext, recover};

use super::found;

/// A refund or redemption of a team's account is signed by its keys too.
#[test]
fn a_recovery_is_signed_under_a_permission() -> TestResult {
    let record = record::<Tron>("tron-record-evm-v2", |_| {})?;
    let recovery = recover::refund(&record, recover::Leg::Source, registry())?;
    let keys = [Key::from_bytes(&[3; 32])?, Key::from_bytes(&[4; 32])?];
    let permission = Permission::new(2).with_keys(2, keys.each_ref().map(|key| (key.address().into(), 1)));
    let calls = TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_060_000), UnixMillis::from_millis(1_772_601_000_000))
        .with_permission(permission);
    let mut unsigned = recovery.prepare(calls.sent_by([7; 20].into()))?;
    for key in &keys {
        assert!(!unsigned.missing().is_empty());
        unsigned.sign(key)?;
    }
    let transactions = unsigned.finish()?.transactions();
    let native = &transactions[0].native;
    assert_eq!((native.transaction().raw.contract[0].permission_id, native.signatures().count()), (2, 2));
    Ok(())
}

/// Nodes refuse a permission only after they have seen the secret, so whoever prepares a redemption under one is told to compare it first.
#[test]
fn a_redemption_under_a_permission_has_a_warning() -> TestResult {
    let secret = [0x5a; 32];
    let hash = countersign_core::SecretHash::of(&secret);
    let record = record::<Tron>("tron-record-evm-v2", |order| order["source_swap"]["secret_hash"] = hash.to_string().into())?;
    let recovery = recover::redeem(&record, recover::Leg::Source, &secret, registry())?;
    let calls = || TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_060_000), UnixMillis::from_millis(1_772_601_000_000));
    let warned = |recovery: &recover::Recovery, calls: TxContext| {
        let warnings = recovery.prepare(calls.sent_by([7; 20].into()))?.warnings().clone();
        Ok::<_, Refusal>(warnings.list().iter().find(|warning| warning.code() == Code::SignatureUnverified).map(ToString::to_string))
    };
    let keys = [3, 4].map(|byte| (Address::from([byte; 20]), 1));
    for permission in [Permission::new(2), Permission::new(0), Permission::new(2).with_keys(2, keys)] {
        let id = permission.id;
        let text = warned(&recovery, calls().with_permission(permission))?.expect("a warning");
        let name = if id == 0 { "the owner permission".to_owned() } else { format!("permission {id}") };
        for part in [name.as_str(), &Address::from([7; 20]).to_string(), "after they have seen the secret", "/wallet/getaccount"] {
            assert!(text.contains(part), "{text}");
        }
    }
    assert_eq!(warned(&recovery, calls())?, None);
    // The weights of all keys do not reach the threshold.
    let refusal = warned(&recovery, calls().with_permission(Permission::new(2).with_keys(3, keys))).expect_err("never complete");
    assert_eq!(found(&refusal), (Code::WrongType, "/permission/threshold"));
    // A refund shows nothing.
    let refund = recover::refund(&record, recover::Leg::Source, registry())?;
    assert_eq!(warned(&refund, calls().with_permission(Permission::new(2)))?, None);
    Ok(())
}
