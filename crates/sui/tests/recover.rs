//! Recovery from an order record alone.

use crate::support;

use countersign_core::{Code, RequestId, Role};
use countersign_sui::recover::{self, FunctionNames, Leg, Recovery};
use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference};
use countersign_sui::{Key, Sui, TxContext};
use countersign_testkit::recover::{read_record, record, refuses_other_records, shows_no_secret};
use countersign_testkit::{TestResult, asset_index, registry, registry_with};
use serde_json::Value as Json;
use support::{coin, outside};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kind(recovery: &Recovery) -> String {
    hex(&bcs::to_bytes(recovery.kind()).expect("encodes"))
}

#[test]
fn the_calls_are_those_of_the_reference_sdk() -> TestResult {
    let ways = outside()["ways_out"].clone();
    let record = read_record(&ways["order"])?;
    let secret: Vec<_> = (0..32)
        .map(|index| u8::from_str_radix(&ways["secret"].as_str().unwrap_or_default()[index * 2..index * 2 + 2], 16))
        .collect::<Result<_, _>>()?;
    let secret: [u8; 32] = secret.try_into().map_err(|_| "no secret")?;

    let refund = recover::refund(&record, Leg::Source, registry())?;
    assert_eq!(kind(&refund), ways["refund"].as_str().ok_or("no kind")?);
    assert_eq!(refund.to().to_string(), record.source_swap.initiator);
    assert_eq!(hex(&refund.swap_id()), record.source_swap.swap_id);
    assert!(refund.swap_id_recomputed());
    // A recovery splits nothing from the coins that pay for its gas.
    assert_eq!(refund.choose_gas(&[coin(2, 50)], 50)?, [coin(2, 50).reference]);
    assert_eq!(refund.choose_gas(&[coin(1, 49)], 50).expect_err("less than the budget").code(), Code::InsufficientFunds);
    assert_eq!(recover::swap_id(&record, Leg::Source, registry())?, (refund.swap_id(), true));
    let refund = recover::refund(&record, Leg::Source, registry())?.with_names(FunctionNames::Older);
    assert_eq!(kind(&refund), ways["refund_swap"].as_str().ok_or("no kind")?);

    let redeem = recover::redeem(&record, Leg::Source, &secret, registry())?;
    shows_no_secret(&redeem, &secret, &[]);
    assert_eq!(kind(&redeem), ways["redeem"].as_str().ok_or("no kind")?);
    assert_eq!(redeem.to().to_string(), record.source_swap.redeemer);
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], registry()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));

    // Every transaction costs at least 1,000 units. Nodes see the secret of a redemption, also of one with a lower budget.
    let with = |budget| TxContext::new(1_000, budget, vec![gas_coin()]).sent_by(Address::new([9; 32]));
    let refusal = redeem.prepare(with(999_999)).map(|_| ()).expect_err("a low budget");
    assert_eq!((refusal.code(), refusal.location()), (Code::FeeTooLow, "/gas_budget"));
    assert!(redeem.prepare(with(1_000_000)).is_ok());
    let accepted = redeem.prepare(with(999_999).with_low_fee(true))?;
    assert!(accepted.warnings().list().iter().any(|warning| warning.code() == Code::FeeTooLow));

    // Only the secret differs.
    let rehearsal = redeem.clone().rehearsal();
    assert_eq!(kind(&rehearsal), kind(&redeem).replace(&hex(&secret), &hex(&[0; 32])));
    assert_ne!(kind(&rehearsal), kind(&redeem));
    assert_eq!(recover::refund(&record, Leg::Source, registry())?.rehearsal(), recover::refund(&record, Leg::Source, registry())?);

    let older = redeem.clone().with_names(FunctionNames::Older);
    assert_eq!(kind(&older), kind(&redeem).replace(&hex(b"\x06redeem"), &hex(b"\x0bredeem_swap")));
    assert_eq!(older.with_names(FunctionNames::Current), redeem);
    Ok(())
}

fn gas_coin() -> ObjectReference {
    ObjectReference::new(Address::new([7; 32]), 1, Digest::new([8; 32]))
}

#[test]
fn a_call_ends_in_the_same_states_as_an_order() -> TestResult {
    let record = record::<Sui>("sui-record-evm", |_| {})?;
    let refund = recover::refund(&record, Leg::Source, registry())?;
    let key = Key::from_ed25519_seed(&[9; 32]);
    let mut unsigned = refund.prepare(TxContext::new(1_000, 5_000_000, vec![gas_coin()]).sent_by(key.address()))?;
    let payload = unsigned.payloads();
    assert_eq!((payload.sender, payload.gas_payment.owner), (key.address(), key.address()));
    assert_eq!(payload.signing_digest, payload.transaction().signing_digest());
    assert_eq!(payload.digest(), payload.transaction().digest());
    assert_eq!(payload.bytes, bcs::to_bytes(&payload.transaction())?);
    assert_eq!((unsigned.order_id(), unsigned.missing()), (Some(record.order_id.as_str()), vec![RequestId::Refund]));
    let text = format!("refund of swap {} pays {} base units to {}", hex(&refund.swap_id()), refund.terms().amount, refund.to());
    assert!(unsigned.summary().to_string().contains(&text), "{}", unsigned.summary());
    assert_eq!(unsigned.warnings().list(), []);
    unsigned.sign(&key)?;
    let transactions = unsigned.finish()?.transactions();
    let [transaction] = transactions.as_slice() else { panic!("one transaction") };
    assert_eq!((transaction.role, transaction.native.signatures.len()), (Role::Refund, 1));
    assert_eq!(transaction.bytes, bcs::to_bytes(&transaction.native)?);
    assert_eq!(transaction.id, transaction.native.transaction.digest().to_base58());
    Ok(())
}

#[test]
fn gas_that_no_transaction_may_have_is_refused() -> TestResult {
    let refund = recover::refund(&record::<Sui>("sui-record-evm", |_| {})?, Leg::Source, registry())?;
    let refused = |payment| refund.prepare(TxContext::new(1_000, 5_000_000, payment).sent_by(Address::new([9; 32]))).expect_err("refused");
    let refusal = refused(vec![gas_coin(), gas_coin()]);
    assert_eq!((refusal.code(), refusal.location()), (Code::GasCoinTwice, "/gas_payment/1/object_id"));
    let refusal = refused(vec![]);
    assert_eq!((refusal.code(), refusal.location()), (Code::GasCoinCount, "/gas_payment"));
    Ok(())
}

#[test]
fn refuses_what_is_not_suis_or_not_a_swap() -> TestResult {
    refuses_other_records::<Sui, _>(
        "sui-record-evm",
        &[
            (|order| order["source_swap"]["timelock"] = 1.into(), Code::RecordSwapId, "/order/source_swap/swap_id"),
            (|order| order["source_swap"]["initiator"] = "0x00".into(), Code::RecordMismatch, "/order/source_swap/initiator"),
        ],
        |record, leg| recover::refund(record, leg, registry()),
    )
}

#[test]
fn a_main_networks_id_may_follow_another_formula() -> TestResult {
    let record = record::<Sui>("sui-record-other-id", |_| {})?;
    let refund = recover::refund(&record, Leg::Source, registry())?;
    assert!(!refund.swap_id_recomputed());
    let unsigned = refund.prepare(TxContext::new(1_000, 5_000_000, vec![gas_coin()]).sent_by(Address::new([9; 32])))?;
    assert_eq!(unsigned.warnings().list().iter().map(|warning| warning.code()).collect::<Vec<_>>(), [Code::SwapIdUnchecked]);
    Ok(())
}

#[test]
fn recovery_needs_the_pinned_registry_object_and_its_version() -> TestResult {
    let record = record::<Sui>("sui-record-evm", |_| {})?;
    let htlc = format!("/assets/{}/htlc", asset_index("sui_testnet:sui"));
    for member in ["registry", "registry_initial_shared_version"] {
        let registry = registry_with(&[(&format!("{htlc}/{member}"), Json::Null)]);
        let refusal = recover::refund(&record, Leg::Source, &registry).expect_err(member);
        assert_eq!((refusal.code(), refusal.location()), (Code::UnknownAsset, "/order/source_swap/asset"));
    }
    Ok(())
}

/// A redemption or refund that costs more than it pays is still prepared, because only its owner knows its value. A
/// warning states the loss.
#[test]
fn a_budget_above_the_payout_is_said() -> TestResult {
    let record = read_record(&outside()["ways_out"]["order"])?;
    let refund = recover::refund(&record, Leg::Source, registry())?;
    let coin = ObjectReference::new(Address::new([1; 32]), 7, Digest::new([2; 32]));
    let warned = |budget: u64| -> Result<Vec<Code>, Box<dyn std::error::Error>> {
        let order = refund.prepare(TxContext::new(1_000, budget, vec![coin.clone()]).sent_by(Address::new([9; 32])))?;
        Ok(order.warnings().list().iter().map(|warning| warning.code()).collect())
    };
    // Without `std`, the error of this conversion is no `Error`.
    let amount = u64::try_from(refund.terms().amount).map_err(|error| error.to_string())?;
    let is_sui = record.source_swap.asset.as_str().ends_with(":sui");
    assert!(warned(amount)?.is_empty());
    assert_eq!(warned(amount + 1)?, if is_sui { vec![Code::FeeAbovePayout] } else { Vec::new() });
    assert!(is_sui, "the case pays SUI");
    Ok(())
}
