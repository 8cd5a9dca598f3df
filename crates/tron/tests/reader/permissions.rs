//! Tests the account permissions that an endpoint shows, compared with the permission that the wallet names and with
//! the signatures.

use countersign_core::reader::{Ask, Fault};
use countersign_core::{Code, Refusal, U256, UnixMillis};
use countersign_testkit::chain::tron::Tron;
use countersign_tron::alloy_primitives::hex;
use countersign_tron::reader::{Authority, AuthorityCheck, OnChain, Payer, Plan};
use countersign_tron::{Address, FundingPath, Key, Permission, TxContext, UnsignedOrder};
use serde_json::{Value, json};

use super::wallet::{CHAIN_ID, NATIVE, WITH_APPROVAL, ask, chain, judge, order};

/// What every account's active permission allows that was made with the account, from TRON's documentation of `/wallet/getaccount`.
const USUAL: &str = "7fff1fc0033e0000000000000000000000000000000000000000000000000000";
/// The same without bit 31, calls of contracts.
const NO_CALLS: &str = "7fff1f40033e0000000000000000000000000000000000000000000000000000";

fn written(address: Address) -> String {
    hex::encode(address.prefixed())
}

/// A permission as `/wallet/getaccount` shows it.
fn permission(id: u8, threshold: u64, keys: &[(Address, u64)], operations: &str) -> Value {
    let keys: Vec<_> = keys.iter().map(|(address, weight)| json!({"address": written(*address), "weight": weight})).collect();
    match id {
        0 => json!({"permission_name": "owner", "threshold": threshold, "keys": keys}),
        _ => {
            json!({"type": "Active", "id": id, "permission_name": "active", "threshold": threshold, "operations": operations, "keys": keys})
        }
    }
}

/// An account whose permission 2 has these keys.
pub(super) fn active(threshold: u64, keys: &[(Address, u64)]) -> Value {
    json!({"active_permission": [permission(2, threshold, keys, USUAL)]})
}

fn key(byte: u8) -> Address {
    Address::from([byte; 20])
}

fn calls() -> TxContext {
    TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_800_003_600_000), UnixMillis::from_millis(1_800_000_000_000))
}

fn prepared(permission: Option<Permission>) -> UnsignedOrder {
    let calls = match permission {
        Some(permission) => calls().with_permission(permission),
        None => calls(),
    };
    order(WITH_APPROVAL).prepare(calls).unwrap()
}

/// What a payment's preflight and the question about a payer of a redemption say of the same permission: the same.
fn found(named: Option<Permission>, held: &Value) -> Result<(), (Code, String)> {
    let unsigned = prepared(named.clone());
    let sender = order(WITH_APPROVAL).deposit().sender;
    let held = Tron { permissions: held.clone(), ..chain(WITH_APPROVAL) };
    let preflight = judge(&Plan::new(CHAIN_ID, &unsigned).unwrap(), &held, |_, _| None).map(drop);
    let payer = Payer { account: sender, fee_limit: 100_000_000, payout: None, permission: named.clone() };
    assert_eq!(asked(&payer, &held), preflight);
    let authority = Authority::new(sender, named.as_ref());
    assert_eq!(of(ask::<AuthorityCheck>(&OnChain { chain_id: CHAIN_ID, subject: authority }, &held, |_, _| None).unwrap().0), preflight);
    preflight
}

fn of(judged: Result<(), Refusal>) -> Result<(), (Code, String)> {
    judged.map_err(|refusal| (refusal.code(), refusal.location().to_owned()))
}

fn asked(payer: &Payer, chain: &Tron) -> Result<(), (Code, String)> {
    let subject = OnChain { chain_id: CHAIN_ID, subject: payer.clone() };
    of(ask::<Ask<OnChain<Payer>>>(&subject, chain, |_, _| None).unwrap().0)
}

#[test]
fn a_permission_is_the_chains() {
    let (own, a, b) = (order(WITH_APPROVAL).deposit().sender, key(0xa), key(0xb));
    let mismatch = |at: &str| Err((Code::PermissionMismatch, at.to_owned()));
    let two = || Permission::new(2).with_keys(3, [(a, 2), (b, 1)]);
    // An account that has changed nothing, as old ones are shown, and as new ones.
    assert_eq!(found(None, &json!({})), Ok(()));
    assert_eq!(found(None, &json!({"owner_permission": permission(0, 1, &[(own, 1)], "")})), Ok(()));
    assert_eq!(found(Some(Permission::new(2)), &active(1, &[(own, 1)])), Ok(()));
    // No such permission, or one that calls no contracts.
    for held in [json!({}), json!({"owner_permission": permission(0, 1, &[(own, 1)], "")}), json!({"active_permission": []})] {
        assert_eq!(found(Some(Permission::new(2)), &held), mismatch("/permission/id"));
    }
    assert_eq!(found(Some(Permission::new(3)), &active(1, &[(own, 1)])), mismatch("/permission/id"));
    for operations in [NO_CALLS, &"00".repeat(32)] {
        let held = json!({"active_permission": [permission(2, 1, &[(own, 1)], operations)]});
        assert_eq!(found(Some(Permission::new(2)), &held), mismatch("/permission/operations"));
    }
    let mut held = active(1, &[(own, 1)]);
    held["active_permission"][0].as_object_mut().unwrap().remove("operations");
    assert_eq!(found(Some(Permission::new(2)), &held), mismatch("/permission/operations"));
    // The right one of several.
    let held = json!({"active_permission": [permission(2, 1, &[(a, 1)], USUAL), permission(3, 1, &[(own, 1)], USUAL)]});
    assert_eq!(found(Some(Permission::new(3)), &held), Ok(()));
    assert_eq!(found(Some(Permission::new(2)), &held), mismatch("/permission/keys/0"));
    // Somebody else has the account: its own key alone no longer signs.
    assert_eq!(found(None, &json!({"owner_permission": permission(0, 1, &[(a, 1)], "")})), mismatch("/permission/keys/0"));
    assert_eq!(found(None, &json!({"owner_permission": permission(0, 2, &[(own, 1), (a, 1)], "")})), mismatch("/permission/threshold"));
    // Named keys, their weights, and the threshold.
    assert_eq!(found(Some(two()), &active(3, &[(a, 2), (b, 1)])), Ok(()));
    assert_eq!(found(Some(two()), &active(3, &[(key(0xc), 1), (b, 1), (a, 2)])), Ok(()), "a key that does not sign");
    assert_eq!(found(Some(two()), &active(3, &[(a, 2), (b, 2)])), mismatch("/permission/keys/1"));
    assert_eq!(found(Some(two()), &active(3, &[(a, 2), (key(0xc), 1)])), mismatch("/permission/keys/1"));
    assert_eq!(found(Some(two()), &active(2, &[(a, 2), (b, 1)])), mismatch("/permission/threshold"));
    assert_eq!(found(Some(two()), &active(4, &[(a, 2), (b, 1), (key(0xc), 1)])), mismatch("/permission/threshold"));
    let owner = || Permission::new(0).with_keys(2, [(a, 1), (b, 1)]);
    assert_eq!(found(Some(owner()), &json!({"owner_permission": permission(0, 2, &[(a, 1), (b, 1)], "")})), Ok(()));
    assert_eq!(found(Some(owner()), &json!({})), mismatch("/permission/keys/0"));
}

/// The message of the gasless path knows no permissions: the contract recovers the owner's own key.
#[test]
fn without_a_call_no_permission_is_asked_for() {
    let case = countersign_testkit::fixture::<countersign_tron::Tron>("tron-token-approval-exact");
    let order = countersign_testkit::verified::<countersign_tron::Tron>(&case);
    let unsigned = order.prepare(FundingPath::Gasless).unwrap();
    assert!(unsigned.payloads().calls.is_empty());
    let held = Tron { permissions: json!({"owner_permission": permission(0, 1, &[(key(0xa), 1)], "")}), ..chain(WITH_APPROVAL) };
    let judged = judge(&Plan::new(CHAIN_ID, &unsigned).unwrap(), &held, |_, _| None);
    assert!(!matches!(judged, Err((Code::PermissionMismatch, _))), "{judged:?}");
}

#[test]
fn who_has_signed_is_compared_with_the_chain() {
    let keys = [1_u8, 2].map(|byte| Key::from_bytes(&[byte; 32]).unwrap());
    let [a, b] = [&keys[0], &keys[1]].map(|key| Address::from(key.address()));
    let mut unsigned = prepared(Some(Permission::new(2).with_keys(2, [(a, 1), (b, 1)])));
    for key in &keys {
        unsigned.sign(key).unwrap();
    }
    let signed = &unsigned.finish().unwrap().transactions()[0].native.clone();
    let authority = Authority::of_signed(signed).unwrap();
    let found = |permissions: Value| {
        let held = Tron { permissions, ..chain(WITH_APPROVAL) };
        of(ask::<AuthorityCheck>(&OnChain { chain_id: CHAIN_ID, subject: authority.clone() }, &held, |_, _| None).unwrap().0)
    };
    assert_eq!(found(active(2, &[(a, 1), (b, 1)])), Ok(()));
    assert_eq!(found(active(3, &[(b, 2), (a, 1)])), Ok(()));
    let mismatch = |at: &str| Err((Code::PermissionMismatch, at.to_owned()));
    assert_eq!(found(active(3, &[(a, 1), (b, 1), (key(0xc), 1)])), mismatch("/permission/threshold"));
    assert_eq!(found(active(1, &[(a, 1)])), mismatch("/permission/keys/1"));
    assert_eq!(found(json!({})), mismatch("/permission/id"));
}

#[test]
fn a_refusal_names_what_the_chain_has() {
    let (a, b) = (key(0xa), key(0xb));
    let text = |named: Permission, held: Value| {
        let held = Tron { permissions: held, ..chain(WITH_APPROVAL) };
        let subject = OnChain { chain_id: CHAIN_ID, subject: Authority::new(order(WITH_APPROVAL).deposit().sender, Some(&named)) };
        ask::<AuthorityCheck>(&subject, &held, |_, _| None).unwrap().0.unwrap_err().to_string()
    };
    let named = || Permission::new(2).with_keys(2, [(a, 1), (b, 1)]);
    let weight = text(named(), active(2, &[(a, 1), (b, 7)]));
    assert!(weight.contains(&b.to_string()) && weight.contains('7'), "{weight}");
    assert!(text(named(), json!({})).contains(&order(WITH_APPROVAL).deposit().sender.to_string()));
    let operations = text(named(), json!({"active_permission": [permission(2, 2, &[(a, 1), (b, 1)], NO_CALLS)]}));
    assert!(operations.contains("TriggerSmartContract"), "{operations}");
}

#[test]
fn an_account_that_cannot_be_read_is_a_fault() {
    let own = order(WITH_APPROVAL).deposit().sender;
    let subject = OnChain { chain_id: CHAIN_ID, subject: Authority::new(own, Some(&Permission::new(2))) };
    let good = active(1, &[(own, 1)]);
    let with = |at: &str, value: Value| {
        let mut held = good.clone();
        *held.pointer_mut(at).unwrap() = value;
        held
    };
    for held in [
        with("/active_permission", json!({})),
        with("/active_permission/0", json!(7)),
        with("/active_permission/0/id", json!("2")),
        with("/active_permission/0/threshold", json!(-1)),
        with("/active_permission/0/keys", json!("41")),
        with("/active_permission/0/keys/0/address", json!("41")),
        with("/active_permission/0/keys/0/weight", json!(1.5)),
        with("/active_permission/0/operations", json!("7fff")),
    ] {
        let chain = Tron { permissions: held.clone(), ..chain(WITH_APPROVAL) };
        assert!(matches!(ask::<AuthorityCheck>(&subject, &chain, |_, _| None), Err(Fault::Malformed(_))), "{held}");
    }
}

/// The redemption of an account with several keys costs what the preflight of any transaction of it counts: a fee, and 67 bytes a signature.
#[test]
fn a_payer_with_several_keys_pays_for_their_signatures() {
    let own = order(NATIVE).deposit().sender;
    let least = |threshold: u64, count: u8| {
        let keys: Vec<_> = (1..=count).map(|byte| (key(byte), 1)).collect();
        let permission = Some(Permission::new(2).with_keys(threshold, keys.clone()));
        let payer = Payer { account: own, fee_limit: 100_000_000, payout: None, permission };
        let can_pay = |coins: u64| asked(&payer, &Tron { coins, permissions: active(threshold, &keys), ..chain(NATIVE) }).is_ok();
        let (mut low, mut high) = (0, 1_000_000_000);
        while low < high {
            let middle = (low + high) / 2;
            if can_pay(middle) { high = middle } else { low = middle + 1 }
        }
        assert!(can_pay(low) && !can_pay(low - 1));
        // And what it is paid is worth that.
        let worth = |payout: u64| {
            let payer = Payer { payout: Some(U256::from(payout)), ..payer.clone() };
            asked(&payer, &Tron { permissions: active(threshold, &keys), ..chain(NATIVE) }).is_ok()
        };
        assert!(worth(low + 1) && !worth(low - 1), "{count}");
        low
    };
    // 600 bytes a day are free: 500 without, 567 with a second signature, and 634 with a third one, which are all paid then.
    assert_eq!(least(2, 2) - least(1, 1), 1_000_000);
    assert_eq!(least(3, 3) - least(1, 1), 1_000_000 + 634 * 1_000);
    // Only the keys that have to sign cost something.
    assert_eq!(least(1, 2), least(1, 1));
    assert_eq!(least(2, 3), least(2, 2));
}
