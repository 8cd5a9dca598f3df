//! Matching the transactions of external wallets: whatever the wallet may choose is accepted, and anything else is refused.

use alloy_primitives::{U256, hex};
use countersign_core::{Code, Policy, Refusal, Role, UnixMillis};
use countersign_testkit::{Case, TestResult, fixture, key, received, verified, verified_under, wallet};
use countersign_tron::htlc::Approve;
use countersign_tron::prost::Message as _;
use countersign_tron::transaction::protocol::{Raw, Transaction, TriggerSmartContract};
use countersign_tron::{Address, ApprovalStep, FundingPath, Key, SignedTronTransaction, Tron, TronTransaction, TxContext, VerifiedOrder};
use serde_json::{Value as Json, json};

const CASE: &str = "tron-token-approval-unlimited";
const NATIVE: &str = "tron-native-typed-data";

fn case() -> Case {
    fixture::<Tron>(CASE)
}

fn calls(case: &Case) -> TxContext {
    let FundingPath::Both(calls) = wallet::<Tron>(case) else { panic!("the contract prepares both") };
    calls
}

/// The transactions that the owner's key signs for this wallet context.
fn signed(case: &Case, calls: TxContext) -> Vec<SignedTronTransaction> {
    let mut unsigned = verified::<Tron>(case).prepare(calls).expect("prepares");
    unsigned.sign(&key::<Tron>(case)).expect("signs");
    unsigned.finish().expect("complete").transactions().into_iter().map(|transaction| transaction.native).collect()
}

/// The transaction that locks the funds, changed, and signed by the owner's key or another.
fn changed(case: &Case, signer: &Key, change: impl FnOnce(&mut Raw, &mut TriggerSmartContract)) -> SignedTronTransaction {
    let TronTransaction { mut raw, mut trigger, .. } = signed(case, calls(case)).pop().expect("initiate").transaction().clone();
    change(&mut raw, &mut trigger);
    let permission = raw.contract[0].permission_id;
    raw.contract[0] = trigger.to_contract();
    raw.contract[0].permission_id = permission;
    let transaction = TronTransaction::decode(&raw.encode_to_vec()).expect("canonical");
    let signature = signer.sign(&transaction.tx_id).expect("signs");
    transaction.with_signature(signature)
}

fn refused(order: &VerifiedOrder, transaction: &SignedTronTransaction) -> String {
    let refusal = order.matches(transaction).expect_err("not a transaction of this order");
    assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
    let (place, _) = refusal.location().split_once('#').unwrap_or((refusal.location(), ""));
    place.to_owned()
}

#[test]
fn what_a_wallet_may_choose_is_free() {
    let case = case();
    let order = verified::<Tron>(&case);
    let other = TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_772_601_099_000), UnixMillis::from_millis(1_772_601_009_000))
        .with_allowance_reset()
        .with_fee_limit(1);
    for step in [ApprovalStep::AsVerified, ApprovalStep::Exact] {
        let roles: Vec<Result<_, Refusal>> =
            signed(&case, other.clone().with_approval(step)).iter().map(|one| Ok(order.match_with_warnings(one)?.0)).collect();
        assert_eq!(roles, [Ok(Role::ApprovalReset), Ok(Role::Approval), Ok(Role::Initiate)], "{step:?}");
    }
    // The protocol's times are signed numbers, and a wallet may write any.
    for time in [i64::MIN, -1, 0, i64::MAX] {
        let odd = changed(&case, &key::<Tron>(&case), |raw, _| (raw.expiration, raw.timestamp) = (time, time));
        assert_eq!(order.match_with_warnings(&odd).map(|(role, _)| role), Ok(Role::Initiate), "{time}");
    }
    let native = fixture::<Tron>(NATIVE);
    assert_eq!(verified::<Tron>(&native).matches(&signed(&native, calls(&native))[0]), Ok(Role::Initiate));
}

#[test]
fn every_other_change_is_refused() {
    let case = case();
    let (order, key) = (verified::<Tron>(&case), key::<Tron>(&case));
    let at = |change: fn(&mut Raw, &mut TriggerSmartContract)| refused(&order, &changed(&case, &key, change));
    let data = |byte: usize| refused(&order, &changed(&case, &key, |_, trigger| trigger.data[byte] ^= 1));
    let length = order.deposit().initiate.data.len();
    for byte in 0..length {
        assert_eq!(data(byte), "/raw_data/contract/data", "byte {byte}");
    }
    assert_eq!(at(|_, trigger| trigger.data.extend([0; 257])), "/raw_data/contract/data");
    assert_eq!(at(|_, trigger| trigger.data.clear()), "/raw_data/contract/data");
    assert_eq!(at(|_, trigger| trigger.call_value = -1), "/raw_data/contract/call_value");
    assert_eq!(at(|_, trigger| trigger.call_value = 1), "/raw_data/contract/call_value");
    assert_eq!(at(|_, trigger| trigger.contract_address[20] ^= 1), "/raw_data/contract/contract_address");
    assert_eq!(at(|_, trigger| trigger.contract_address[0] = 0xa0), "/raw_data/contract/contract_address");
    assert_eq!(at(|_, trigger| trigger.owner_address[20] ^= 1), "/raw_data/contract/owner_address");
    assert_eq!(at(|_, trigger| trigger.owner_address.clear()), "/raw_data/contract/owner_address");
    assert_eq!(at(|raw, _| raw.ref_block_hash.clear()), "/raw_data/ref_block_hash");
    // Everything else that a transaction can contain.
    assert_eq!(at(|_, trigger| trigger.call_token_value = 1), "/raw_data");
    assert_eq!(at(|_, trigger| trigger.token_id = 1_000_001), "/raw_data");
    assert_eq!(at(|raw, _| raw.data = b"memo".to_vec()), "/raw_data");
    assert_eq!(at(|raw, _| raw.scripts = vec![1]), "/raw_data");
    assert_eq!(at(|raw, _| raw.ref_block_num = 1), "/raw_data");
    assert_eq!(at(|raw, _| raw.contract[0].permission_id = 1), "/raw_data/contract/0/Permission_id");
}

/// The approval, with another amount, and signed by the owner's key.
fn approved(order: &VerifiedOrder, amount: U256) -> SignedTronTransaction {
    let case = case();
    changed(&case, &key::<Tron>(&case), |_, trigger| {
        let deposit = order.deposit();
        let approval = deposit.approval.as_ref().expect("an approval");
        trigger.contract_address = approval.call.to.prefixed().to_vec();
        trigger.data = Approve { spender: deposit.initiate.to.bytes(), amount }.encode();
    })
}

#[test]
fn what_a_wallet_changes_although_it_may_is_said() -> TestResult {
    let case = case();
    let (order, key) = (verified::<Tron>(&case), key::<Tron>(&case));
    let amount = order.deposit().terms.amount;
    let matched = |transaction: &SignedTronTransaction| -> Result<_, Refusal> {
        let (role, warnings) = order.match_with_warnings(transaction)?;
        Ok((role, warnings.list().iter().map(countersign_core::Warning::code).collect::<Vec<_>>()))
    };
    assert_eq!(matched(&approved(&order, amount))?, (Role::Approval, vec![]));
    assert_eq!(matched(&approved(&order, U256::ZERO))?, (Role::ApprovalReset, vec![]));
    assert_eq!(matched(&approved(&order, amount + U256::from(1)))?, (Role::Approval, vec![Code::ApprovalAboveAmount]));
    // As the service proposed it, which the order itself warns about.
    assert_eq!(matched(&approved(&order, U256::MAX))?, (Role::Approval, vec![]));
    assert!(order.warnings().list().iter().any(|warning| warning.code() == Code::UnlimitedApproval));
    let refusal = matched(&approved(&order, amount - U256::from(1))).expect_err("too little");
    assert_eq!((refusal.code(), refusal.location()), (Code::ApprovalBelowAmount, "/raw_data/contract/data#36-68"));
    let suffixed = changed(&case, &key, |_, trigger| trigger.data.extend([0x80, 0x21]));
    assert_eq!(matched(&suffixed)?, (Role::Initiate, vec![Code::CalldataSuffix]));
    assert_eq!(order.matches(&suffixed), Ok(Role::Initiate), "it is information");
    // Where it would not be shown, it is refused.
    for transaction in [approved(&order, U256::MAX - U256::from(1)), approved(&order, amount + U256::from(1))] {
        let refusal = order.matches(&transaction).expect_err("a warning");
        assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, ""));
        assert!(refusal.reason().contains(&order.match_with_warnings(&transaction)?.1.list()[0].to_string()), "{refusal}");
        assert_eq!(order.matches_bytes(&transaction.broadcast_bytes()), Err(refusal));
    }
    Ok(())
}

#[test]
fn a_changed_amount_of_coins_is_refused() {
    let case = fixture::<Tron>(NATIVE);
    let order = verified::<Tron>(&case);
    let less = changed(&case, &key::<Tron>(&case), |_, trigger| trigger.call_value -= 1);
    let refusal = order.matches(&less).expect_err("another amount");
    assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/raw_data/contract/call_value"));
    assert_eq!(refusal.expected().map(ToString::to_string), Some("4321000000".to_owned()));
    assert_eq!(refusal.actual().map(ToString::to_string), Some("4320999999".to_owned()));
}

#[test]
fn only_the_owners_signature_counts() {
    let case = case();
    let order = verified::<Tron>(&case);
    let stranger = Key::from_bytes(&[1; 32]).expect("a key");
    let refusal = order.matches(&changed(&case, &stranger, |_, _| {})).expect_err("another signer");
    assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/signature"));
    assert_eq!(refusal.actual().map(ToString::to_string), Some(Address::from(stranger.address()).to_string()));
    // The signature of another transaction.
    let [approval, initiate] = signed(&case, calls(&case)).try_into().expect("two transactions");
    assert_eq!(refused(&order, &initiate.transaction().clone().with_signature(*approval.signature())), "/signature");
    // Another order's transaction.
    let other = fixture::<Tron>(NATIVE);
    assert_eq!(refused(&order, &signed(&other, calls(&other))[0]), "/signature");
}

#[test]
fn the_fee_limit_stays_within_the_policy() -> TestResult {
    let case = case();
    let (key, policy) = (key::<Tron>(&case), Policy::from_json(br#"{"tron_fee_limit":300000000}"#)?);
    let order = verified_under::<Tron>(&case, case.registry, &policy)?;
    assert_eq!(order.matches(&changed(&case, &key, |raw, _| raw.fee_limit = 300_000_000)), Ok(Role::Initiate));
    for limit in [300_000_001, 0, -1, i64::MAX] {
        assert_eq!(refused(&order, &changed(&case, &key, |raw, _| raw.fee_limit = limit)), "/raw_data/fee_limit", "{limit}");
    }
    Ok(())
}

#[test]
fn transactions_come_back_from_bytes_and_json() -> TestResult {
    let case = case();
    for transaction in signed(&case, calls(&case)) {
        assert_eq!(SignedTronTransaction::from_bytes(&transaction.broadcast_bytes())?, transaction);
        let json = transaction.broadcast_json();
        assert_eq!(SignedTronTransaction::from_json(json.to_string().as_bytes())?, transaction);
        // Without an id, with one in upper case, and with v as older wallets write it.
        let mut other = json.clone();
        other["txID"] = Json::Null;
        assert_eq!(SignedTronTransaction::from_json(other.to_string().as_bytes())?, transaction);
        other["txID"] = hex::encode_upper(transaction.tx_id()).into();
        let mut signature = transaction.signature().as_bytes();
        signature[64] -= 27;
        other["signature"][0] = hex::encode_prefixed(signature).into();
        assert_eq!(SignedTronTransaction::from_json(other.to_string().as_bytes())?, transaction);
    }
    Ok(())
}

#[test]
fn what_is_not_one_signed_call_is_not_read() -> TestResult {
    let case = case();
    let transaction = signed(&case, calls(&case)).pop().ok_or("initiate")?;
    let json = transaction.broadcast_json();
    let from_json = |pointer: &str, value: Json| {
        let mut json = json.clone();
        *json.pointer_mut(pointer).expect(pointer) = value;
        let refusal = SignedTronTransaction::from_json(json.to_string().as_bytes()).expect_err(pointer);
        (refusal.code(), refusal.location().to_owned())
    };
    let owned = |code, at: &str| (code, at.to_owned());
    let one = json["signature"][0].clone();
    assert_eq!(from_json("/txID", json!("00".repeat(32))), owned(Code::TransactionMismatch, "/txID"));
    assert_eq!(from_json("/raw_data_hex", json!("zz")), owned(Code::HexDigit, "/raw_data_hex"));
    assert_eq!(from_json("/raw_data_hex", json!("00")), owned(Code::TransactionMismatch, "/raw_data"));
    assert_eq!(from_json("/signature", json!([])), owned(Code::TransactionMismatch, "/signature"));
    assert_eq!(from_json("/signature", json!([one, one])), owned(Code::TransactionMismatch, "/signature"));
    assert_eq!(from_json("/signature/0", json!("00")), owned(Code::SignatureMalformed, "/signature/0"));

    let whole = Transaction::decode(transaction.broadcast_bytes().as_slice())?;
    let from_bytes = |change: fn(&mut Transaction)| {
        let mut whole = whole.clone();
        change(&mut whole);
        SignedTronTransaction::from_bytes(&whole.encode_to_vec()).expect_err("not one signed call").location().to_owned()
    };
    assert_eq!(from_bytes(|whole| whole.raw_data = None), "");
    assert_eq!(from_bytes(|whole| whole.signature.clear()), "/signature");
    assert_eq!(from_bytes(|whole| whole.signature.push(vec![0; 65])), "/signature");
    assert_eq!(from_bytes(|whole| whole.signature[0].truncate(63)), "/signature/0");
    let surplus = [&transaction.broadcast_bytes(), &[0x78, 0x01][..]].concat();
    assert_eq!(SignedTronTransaction::from_bytes(&surplus).expect_err("surplus").location(), "");
    Ok(())
}

#[test]
fn transactions_are_matched_as_bytes() -> TestResult {
    received::bytes_are_matched::<Tron>(10, SignedTronTransaction::broadcast_bytes, |signed| {
        let whole = Transaction::decode(signed.broadcast_bytes().as_slice()).expect("protobuf");
        Transaction { signature: Vec::new(), ..whole }.encode_to_vec()
    })
}

/// A signer that returns the signed transaction is as good as one that returns a signature.
#[test]
fn signatures_are_taken_from_signed_transactions() -> TestResult {
    received::signatures_are_taken_from_transactions::<Tron>(10, |signed| signed.transactions().into_iter().map(|one| one.bytes).collect())
}
