//! Messages of version 1: verified, explained, signed, matched and recovered with. The transactions are those of
//! `fixtures/accept/solana.jsonl`, compiled by @solana/kit.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Policy, RequestId, Role};
use countersign_solana::recover::{self, Leg};
use countersign_solana::solana_hash::Hash;
use countersign_solana::solana_message::v1::{self, TransactionConfig};
use countersign_solana::solana_message::{MessageHeader, VersionedMessage};
use countersign_solana::solana_signature::Signature;
use countersign_solana::solana_transaction::versioned::VersionedTransaction;
use countersign_solana::{Address, Key, PriorityFee, Solana, TxContext, VerifiedOrder, read, received};
use countersign_testkit::recover::record;
use countersign_testkit::{Case, TestResult, fixture, outcome_under, registry, verified, verified_under};
use serde_json::{Value as Json, json};

use crate::external::{compiled, compute_budget, decompile, received as as_received, refused, sign};

const LOADED: u32 = 262_144;

fn config(transaction: &VersionedTransaction) -> TransactionConfig {
    let VersionedMessage::V1(message) = &transaction.message else { panic!("not of version 1") };
    message.config
}

fn set(transaction: &mut VersionedTransaction, config: TransactionConfig) {
    let VersionedMessage::V1(message) = &mut transaction.message else { panic!("not of version 1") };
    message.config = config;
}

fn policy(text: &Json) -> Policy {
    Policy::from_json(text.to_string().as_bytes()).expect("a policy")
}

/// The same order, with these limits in the message of the service.
fn with_config(id: &str, config: TransactionConfig) -> Case {
    let case = fixture::<Solana>(id);
    let mut line = case.json();
    let mut transaction = as_received(&verified::<Solana>(&case));
    set(&mut transaction, config);
    let bytes = wincode::serialize(&transaction).expect("serializes");
    *line.pointer_mut("/response/result/versioned_tx").expect("a payload") = json!(STANDARD.encode(bytes));
    case.with_input(line.to_string())
}

fn limits(units: u32) -> TransactionConfig {
    TransactionConfig::empty().with_compute_unit_limit(units).with_loaded_accounts_data_size_limit(LOADED)
}

#[test]
fn the_whole_fee_and_the_limits_are_shown() -> TestResult {
    let case = with_config("solana-v1-native", limits(100_000).with_priority_fee(41).with_heap_size(65_536));
    let got = outcome_under::<Solana>(&case, case.registry, &policy(&json!({ "solana_compute_unit_price": 410 })))?;
    let shown: Vec<_> = got["summary"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    for line in [
        "gas: transaction: 100000 compute units at most, a priority fee of 41 lamports, 5041 lamports with the fee for signatures",
        "gas: transaction: loads at most 262144 bytes of accounts, a heap of 65536 bytes",
    ] {
        assert!(shown.contains(&line), "{shown:#?}");
    }
    assert!(shown.iter().any(|line| line.starts_with("encoding: transaction in base64, version 1 message, blockhash ")), "{shown:#?}");
    Ok(())
}

/// The policies of price and limit bound the whole fee as they bound what instructions set.
#[test]
fn the_fee_is_bounded_by_price_and_limit() {
    let verdict = |config: TransactionConfig, policy_text: &Json| {
        let case = with_config("solana-v1-native", config);
        let refused = outcome_under::<Solana>(&case, case.registry, &policy(policy_text)).err();
        refused.map(|refusal| (refusal.code(), refusal.location().rsplit('#').next().unwrap_or_default().to_owned()))
    };
    let too_high = |place: &str| Some((Code::GasLimitTooHigh, place.to_owned()));
    let fee = |units: u32, fee: u64| limits(units).with_priority_fee(fee);
    assert_eq!(verdict(fee(100_000, 0), &json!({})), None);
    assert_eq!(verdict(fee(100_000, 1), &json!({})), too_high("170-178"), "a price must be allowed");
    // 10 micro-lamports for each of 100,001 units are 1.00001 lamports, rounded up.
    let price = json!({ "solana_compute_unit_price": 10 });
    assert_eq!(verdict(fee(100_001, 2), &price), None);
    assert_eq!(verdict(fee(100_001, 3), &price), too_high("170-178"));
    assert_eq!(verdict(fee(100_000, 2), &price), too_high("170-178"));
    assert_eq!(
        verdict(fee(1_400_000, u64::MAX), &json!({ "solana_compute_unit_price": u64::MAX })),
        None,
        "the product has more than 64 bits"
    );
    let limit = json!({ "solana_compute_unit_limit": 100_000 });
    assert_eq!(verdict(limits(100_000), &limit), None);
    assert_eq!(verdict(limits(100_001), &limit), too_high("170-174"));
    assert_eq!(verdict(limits(1_400_000), &json!({})), None);
    assert_eq!(verdict(limits(1_400_001), &json!({})), too_high("170-174"));
}

#[test]
fn a_wallet_sets_the_whole_fee() -> TestResult {
    let order = verified::<Solana>(&fixture::<Solana>("solana-v1-native"));
    let proposed = config(&as_received(&order));
    let blockhash = Hash::new_from_array([7; 32]);
    for (fee, expected) in [
        (PriorityFee::new(50_000), proposed.with_priority_fee(10_000)),
        (PriorityFee::new(3).with_limit(400_000), proposed.with_priority_fee(2).with_compute_unit_limit(400_000)),
    ] {
        let unsigned = order.prepare(TxContext::new().with_blockhash(blockhash).with_priority_fee(fee))?;
        let payload = unsigned.payloads().transaction.as_ref().ok_or("no transaction")?;
        assert_eq!(config(payload.transaction()), expected);
        assert_eq!(
            PriorityFee::from_message(&payload.transaction().message).map(|fee| fee.compute_unit_limit),
            Some(expected.compute_unit_limit)
        );
        let total = expected.priority_fee.unwrap_or_default();
        assert_eq!(payload.max_fee(), 5_000 + total);
        let shown = unsigned.summary().to_string();
        assert!(shown.contains(&format!("priority fee set by the wallet: {total} lamports for at most")), "{shown}");
    }
    // The price that gives the fee.
    for (units, total) in [(200_000, 10_000), (200_001, 1), (1, u64::MAX / 2_000_000), (1_400_000, 7)] {
        let message = VersionedMessage::V1(v1::Message { config: limits(units).with_priority_fee(total), ..v1::Message::default() });
        let price = u128::from(PriorityFee::from_message(&message).ok_or("a fee")?.compute_unit_price);
        let of = |price: u128| (price * u128::from(units)).div_ceil(1_000_000);
        assert_eq!((of(price), of(price - 1) < u128::from(total)), (u128::from(total), true), "{units} {total}");
    }
    let refusal = order.prepare(TxContext::new().with_priority_fee(PriorityFee::new(10_000_001))).expect_err("above the limit");
    assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooHigh, "/priority_fee/compute_unit_price"));
    Ok(())
}

#[test]
fn a_wallet_may_choose_blockhash_fee_and_limits() -> TestResult {
    let case = fixture::<Solana>("solana-v1-native-heap");
    let order = verified::<Solana>(&case);
    let strict = policy(&json!({ "solana_compute_unit_price": 10, "solana_compute_unit_limit": 300_000 }));
    let strict: VerifiedOrder = verified_under(&case, case.registry, &strict)?;
    let plain = as_received(&order);
    let own = config(&plain);
    let with = |config: TransactionConfig| {
        let mut transaction = plain.clone();
        set(&mut transaction, config);
        transaction.message.set_recent_blockhash(Hash::new_from_array([9; 32]));
        sign(&case, &mut transaction);
        transaction
    };
    for allowed in [own, own.with_compute_unit_limit(300_000).with_priority_fee(3), own.with_loaded_accounts_data_size_limit(1)] {
        assert_eq!(strict.matches(&with(allowed))?, Role::Initiate);
    }
    assert_eq!(order.matches(&with(own.with_priority_fee(2_000_000)))?, Role::Initiate);
    for (other, member) in [
        (own.with_compute_unit_limit(300_001), "compute_unit_limit"),
        (own.with_compute_unit_limit(0), "compute_unit_limit"),
        (TransactionConfig { compute_unit_limit: None, ..own }, "compute_unit_limit"),
        (TransactionConfig { loaded_accounts_data_size_limit: None, ..own }, "loaded_accounts_data_size_limit"),
        (own.with_loaded_accounts_data_size_limit(64 * 1024 * 1024 + 1), "loaded_accounts_data_size_limit"),
        (own.with_priority_fee(3), "priority_fee"),
        (own.with_heap_size(131_072), "heap_size"),
        (TransactionConfig { heap_size: None, ..own }, "heap_size"),
    ] {
        assert_eq!(refused(&strict, &with(other)), format!("/message/config/{member}"), "{other:?}");
    }
    for (other, whose) in
        [(own.with_compute_unit_limit(300_001), "policy's"), (own.with_loaded_accounts_data_size_limit(67_108_865), "network's")]
    {
        let refusal = strict.matches(&with(other)).expect_err("above a limit");
        assert!(refusal.to_string().contains(&format!("the limit is above the {whose}")), "{refusal}");
    }
    // Another version of the same message, and what it does not need.
    let older = as_received(&verified::<Solana>(&fixture::<Solana>("solana-native-v0")));
    let instructions = decompile(&plain.message);
    assert_eq!(refused(&order, &compiled(&case, &older.message, &instructions, [3; 32])), "/message");
    let budget = [&[compute_budget(2, &[0, 0, 1, 0])], instructions.as_slice()].concat();
    assert_eq!(refused(&order, &compiled(&case, &plain.message, &budget, [3; 32])), "/message/instructions/0/program_id");
    Ok(())
}

/// The limits of the network: 12 signers, 64 keys, 64 instructions, 4,096 bytes.
#[test]
fn transactions_are_within_the_limits_of_the_network() {
    let transaction = |signers: u8, keys: u8, instructions: u8, data: usize| {
        let header = MessageHeader { num_required_signatures: signers, num_readonly_signed_accounts: 0, num_readonly_unsigned_accounts: 0 };
        let call = |data: Vec<u8>| countersign_solana::solana_message::compiled_instruction::CompiledInstruction {
            program_id_index: 1,
            accounts: vec![0],
            data,
        };
        let calls = std::iter::once(call(vec![0; data])).chain(std::iter::repeat_n(call(Vec::new()), usize::from(instructions) - 1));
        let keys = (0..keys).map(|key| Address::from([key; 32])).collect();
        let message = v1::Message::new(header, limits(1), Hash::default(), keys, calls.collect());
        let signatures = vec![Signature::default(); usize::from(signers)];
        wincode::serialize(&VersionedTransaction { signatures, message: VersionedMessage::V1(message) }).expect("serializes")
    };
    let is_read = |bytes: &[u8]| {
        assert_eq!(received::from_bytes(bytes).is_ok(), read::transaction(bytes).is_some());
        read::transaction(bytes).is_some()
    };
    assert!(is_read(&transaction(12, 20, 1, 0)) && !is_read(&transaction(13, 20, 1, 0)));
    assert!(is_read(&transaction(1, 64, 1, 0)) && !is_read(&transaction(1, 65, 1, 0)));
    assert!(is_read(&transaction(1, 2, 64, 0)) && !is_read(&transaction(1, 2, 65, 0)));
    let room = 4_096 - transaction(1, 2, 1, 0).len();
    assert!(is_read(&transaction(1, 2, 1, room)) && !is_read(&transaction(1, 2, 1, room + 1)));
}

#[test]
fn funds_are_recovered_with_it() -> TestResult {
    let record = record::<Solana>("solana-record-testnet", |_| {})?;
    let recovery = recover::refund(&record, Leg::Source, registry())?;
    let key = Key::from_seed(&[9; 32]);
    let context = TxContext::new().with_blockhash(Hash::new_from_array([5; 32]));
    let prepare = |config: TransactionConfig, context: &TxContext| {
        recovery.clone().with_config(config).prepare(context.clone().sent_by(key.address()))
    };
    let mut unsigned = prepare(limits(100_000), &context.clone().with_priority_fee(PriorityFee::new(10)))?;
    assert_eq!(unsigned.missing(), [RequestId::Refund]);
    unsigned.sign(&key)?;
    let signed = unsigned.finish()?;
    let [transaction] = &signed.transactions()[..] else { return Err("one transaction".into()) };
    assert_eq!(config(&transaction.native), limits(100_000).with_priority_fee(1));
    assert_eq!(decompile(&transaction.native.message), [recovery.instruction().clone()]);
    assert_eq!(transaction.bytes, wincode::serialize(&transaction.native)?);
    assert!(transaction.native.verify_with_results().into_iter().all(|valid| valid));
    for (config, code, at) in [
        (TransactionConfig::empty(), Code::GasLimitTooLow, "/config/compute_unit_limit"),
        (TransactionConfig::empty().with_compute_unit_limit(1), Code::GasLimitTooLow, "/config/loaded_accounts_data_size_limit"),
        (limits(1_400_001), Code::GasLimitTooHigh, "/config/compute_unit_limit"),
        (limits(1_000).with_priority_fee(10_001), Code::GasLimitTooHigh, "/config/priority_fee"),
    ] {
        let refusal = prepare(config, &context).expect_err("refused");
        assert_eq!((refusal.code(), refusal.location()), (code, at));
    }
    Ok(())
}
