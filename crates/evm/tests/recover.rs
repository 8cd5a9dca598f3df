//! Recovery from an order record alone, up to the signed transaction.
use countersign_core::{Code, Policy, RequestId, Role, SecretHash, Topic};
use countersign_evm::alloy_consensus::Transaction as _;
use countersign_evm::alloy_primitives::{U256, hex, keccak256};
use countersign_evm::recover::{self, GAS_LIMIT, Leg};
use countersign_evm::{Evm, Key, TxContext};
use countersign_testkit::recover::{record, refuses_other_records, shows_no_secret};
use countersign_testkit::{TestResult, fixture, registry};

const CASE: &str = "evm-record-evm-v1";

#[test]
fn refunds_the_source_to_the_owner() -> TestResult {
    let case = fixture::<Evm>(CASE).json();
    let record = record::<Evm>(CASE, |_| {})?;
    let recovery = recover::refund(&record, Leg::Source, registry())?;
    let id = case["order"]["source_swap"]["swap_id"].as_str().ok_or("no id")?;
    assert_eq!((hex::encode(recovery.swap_id()), recovery.terms().role), (id.to_owned(), Role::Refund));
    assert_eq!(recover::swap_id(&record, Leg::Source, registry())?, recovery.swap_id());
    assert_eq!(recovery.to().to_string(), case["request"]["source"]["owner"]);
    assert_eq!(recovery.terms().amount.to_string(), case["request"]["source"]["amount"]);
    let htlc = case["response"]["result"]["initiate_transaction"]["to"].as_str().ok_or("no contract")?;
    assert_eq!(recovery.call().to.to_string().to_lowercase(), htlc.to_lowercase());
    assert_eq!(hex::encode(&recovery.call().data), format!("{}{id}", hex::encode(&keccak256("refund(bytes32)")[..4])));

    // Anyone may send the call, which pays the owner.
    let key = Key::from_bytes(&[3; 32])?;
    let calls = TxContext::eip1559(9, 30_000_000_000, 1_000_000_000);
    let mut unsigned = recovery.prepare(calls.clone().sent_by(key.address()))?;
    assert_eq!(unsigned.order_id(), case["order"]["order_id"].as_str());
    assert!(unsigned.verified().is_none());
    let [request] = unsigned.requests().try_into().unwrap();
    assert_eq!((request.id, request.signer), (RequestId::Refund, key.address().to_string()));
    let summary = unsigned.summary();
    let payout = summary.about(Topic::Payout).next().ok_or("no payout")?;
    for value in [recovery.to().to_string(), recovery.terms().amount.to_string(), id.to_owned()] {
        assert!(payout.text.contains(&value), "{payout}");
    }
    assert!(summary.to_string().contains(&hex::encode(&request.digest)), "{summary}");
    unsigned = unsigned.finish().unwrap_err().into_unsigned();
    unsigned.sign(&key)?;
    let signed = unsigned.finish()?;
    let [transaction] = signed.transactions().try_into().unwrap();
    assert_eq!((transaction.role, signed.gasless(), signed.order_id()), (Role::Refund, None, Some(record.order_id.as_str())));
    let native = &transaction.native;
    assert_eq!(
        (native.chain_id(), native.nonce(), native.gas_limit(), native.value()),
        (Some(recovery.chain_id()), 9, GAS_LIMIT, U256::ZERO)
    );
    assert_eq!((native.to(), native.input()), (Some(recovery.call().to), &recovery.call().data));

    let refusal = recovery.prepare(calls.with_chain_id(recovery.chain_id() + 1).sent_by(key.address())).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::WalletChainMismatch, "/chain_id"));
    let refusal = recovery.prepare(TxContext::legacy(u64::MAX, 1).sent_by(key.address())).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::NonceLimit, "/nonce"));
    Ok(())
}

/// The policy's ceiling applies to a recovery as it does to a deposit.
#[test]
fn the_gas_limit_is_within_the_policy() -> TestResult {
    let recovery = recover::refund(&record::<Evm>(CASE, |_| {})?, Leg::Source, registry())?;
    let (key, calls) = (Key::from_bytes(&[3; 32])?, TxContext::eip1559(9, 2, 1));
    let mut unsigned = recovery.prepare(calls.clone().with_gas_limit(30_000_000).sent_by(key.address()))?;
    unsigned.sign(&key)?;
    assert_eq!(unsigned.finish()?.transactions()[0].native.gas_limit(), 30_000_000);
    let low = recovery.clone().with_policy(&Policy::from_json(br#"{"evm_gas_limit":299999}"#)?);
    for (recovery, gas_limit, code) in [
        (&low, None, Code::GasLimitTooHigh),
        (&recovery, Some(30_000_001), Code::GasLimitTooHigh),
        (&recovery, Some(20_999), Code::GasLimitTooLow),
    ] {
        let mut calls = calls.clone();
        calls.gas_limit = gas_limit;
        let refusal = recovery.prepare(calls.clone().sent_by(key.address())).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (code, "/gas_limit"));
    }
    assert!(low.prepare(calls.with_gas_limit(299_999).sent_by(key.address())).is_ok());
    Ok(())
}

#[test]
fn redeems_with_the_right_secret_only() -> TestResult {
    let secret = [0x5a; 32];
    let hash = SecretHash::of(&secret);
    let mut record = record::<Evm>(CASE, |order| order["source_swap"]["secret_hash"] = hash.to_string().into())?;
    // The id depends on the secret hash, so with another hash the record has the wrong id.
    let refusal = recover::redeem(&record, Leg::Source, &secret, registry()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    record.source_swap.swap_id = refusal.expected().ok_or("no id")?.to_string();
    let recovery = recover::redeem(&record, Leg::Source, &secret, registry())?;
    assert_eq!(recovery.terms().role, Role::Redeem);
    assert_eq!(recovery.call().data[..4], keccak256("redeem(bytes32,bytes)")[..4]);
    assert_eq!(&recovery.call().data[4 + 3 * 32..], secret);
    assert_eq!(recovery.to().to_string(), record.source_swap.redeemer);
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], registry()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    // A redemption has its own role and request id.
    let key = Key::from_bytes(&[3; 32])?;
    let [request] = recovery.prepare(TxContext::legacy(0, 1).sent_by(key.address()))?.requests().try_into().unwrap();
    assert_eq!(request.id, RequestId::Redeem);
    Ok(())
}

/// Nodes see the secret of a redemption, also of one that they do not mine.
#[test]
fn a_redemption_that_cannot_be_mined_is_not_shown() -> TestResult {
    let secret = [0x5a; 32];
    let mut record = record::<Evm>(CASE, |order| order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into())?;
    let refusal = recover::redeem(&record, Leg::Source, &secret, registry()).unwrap_err();
    record.source_swap.swap_id = refusal.expected().ok_or("no id")?.to_string();
    let redeem = recover::redeem(&record, Leg::Source, &secret, registry())?;
    shows_no_secret(&redeem, &secret, &[]);
    let refund = recover::refund(&record, Leg::Source, registry())?;
    let codes = |order: countersign_evm::UnsignedOrder| order.warnings().list().iter().map(|warning| warning.code()).collect::<Vec<_>>();
    for (calls, at) in [(TxContext::legacy(0, 0), "/gas_price"), (TxContext::eip1559(0, 0, 0), "/max_fee_per_gas")] {
        let refusal = redeem.prepare(calls.clone().sent_by(redeem.to())).map(|_| ()).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::FeeTooLow, at));
        assert!(refusal.message().contains("see its secret") && refusal.message().contains("accept_low_fee"), "{refusal}");
        assert_eq!(codes(redeem.prepare(calls.clone().sent_by(redeem.to()).with_low_fee(true))?), [Code::FeeTooLow]);
        assert_eq!(codes(refund.prepare(calls.sent_by(redeem.to()))?), [Code::FeeTooLow], "a refund shows nothing");
    }
    // Some chains have no tips.
    assert_eq!(codes(redeem.prepare(TxContext::eip1559(0, 7, 0).sent_by(redeem.to()))?), [Code::FeeTooLow]);
    assert_eq!(codes(redeem.prepare(TxContext::eip1559(0, 7, 1).sent_by(redeem.to()))?), []);
    // 21,000 gas, 40 for each byte of the calldata that is not zero, and 10 for each zero (EIP-7623).
    for recovery in [&redeem, &refund] {
        let zeros = u64::try_from(recovery.call().data.iter().filter(|byte| **byte == 0).count())?;
        let others = u64::try_from(recovery.call().data.len())? - zeros;
        let least = 21_000 + 40 * others + 10 * zeros;
        let with = |gas| recovery.prepare(TxContext::legacy(0, 1).with_gas_limit(gas).sent_by(recovery.to()));
        assert!(recovery.prepare(TxContext::legacy(0, 1).with_gas_limit(least).sent_by(recovery.to()).with_low_fee(true)).is_ok());
        let refusal = with(least - 1).map(|_| ()).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooLow, "/gas_limit"));
    }
    // The transaction (21,000), the first write to a slot (EIP-2929: 2,100 and 2,900) and a call with a value (9,000), whose payout each has.
    let with = |recovery: &recover::Recovery, gas| TxContext::legacy(0, 1).with_gas_limit(gas).sent_by(recovery.to());
    let refusal = redeem.prepare(with(&redeem, 34_999)).map(|_| ()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::FeeTooLow, "/gas_limit"));
    assert!(refusal.message().contains("see its secret") && refusal.message().contains("accept_low_fee"), "{refusal}");
    assert_eq!(codes(redeem.prepare(with(&redeem, 34_999).with_low_fee(true))?), [Code::FeeTooLow]);
    assert_eq!(codes(refund.prepare(with(&refund, 34_999))?), [Code::FeeTooLow], "a refund shows nothing");
    assert_eq!(codes(redeem.prepare(with(&redeem, 35_000))?), []);
    Ok(())
}

#[test]
fn a_refund_is_bound_to_the_chain_of_its_asset() -> TestResult {
    for (case, chain_id) in [("evm-record-bitcoin-v1", 1), ("evm-record-bitcoin-v2", 8_453), ("evm-record-litecoin-testnet", 84_532)] {
        let refund = recover::refund(&record::<Evm>(case, |_| {})?, Leg::Source, registry())?;
        assert_eq!((refund.chain_id(), refund.swap_id_recomputed()), (chain_id, true), "{case}");
    }
    Ok(())
}

#[test]
fn refuses_what_is_not_of_an_evm_chain_or_not_a_swap() -> TestResult {
    refuses_other_records::<Evm, _>(
        "evm-record-bitcoin-v1",
        &[(|order| order["source_swap"]["redeemer"] = "bc1q".into(), Code::RecordMismatch, "/order/source_swap/redeemer")],
        |record, leg| recover::refund(record, leg, registry()),
    )
}

/// A redemption that costs more than it pays is still prepared, because only its owner knows its value. A warning
/// states the loss.
#[test]
fn a_fee_above_the_payout_is_said() -> TestResult {
    let warned = |case: &str, gwei: u128| -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let refund = recover::refund(&record::<Evm>(case, |_| {})?, Leg::Source, registry())?;
        let order = refund.prepare(TxContext::eip1559(9, gwei * 1_000_000_000, 1).sent_by(refund.to()))?;
        let about = |code| order.warnings().list().iter().filter(move |warning| warning.code() == code);
        assert_eq!(about(Code::NonceGap).count(), 0);
        Ok(about(Code::FeeAbovePayout).filter_map(|warning| warning.detail().map(str::to_owned)).collect())
    };
    // 0.4 ETH, and 300,000 gas.
    assert!(warned("evm-record-native", 1_333)?.is_empty());
    let [detail] = warned("evm-record-native", 1_334)?.try_into().unwrap();
    assert!(detail.contains("the refund may cost up to 0.4002 ") && detail.contains("pays only 0.4 "), "{detail}");
    // Gas and tokens cannot be compared.
    assert!(warned(CASE, 1_000_000)?.is_empty());
    Ok(())
}
