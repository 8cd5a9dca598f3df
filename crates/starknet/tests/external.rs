//! External wallets: the calls for them, and the matching of the transactions that they broadcast.

use countersign_core::{Code, Role, TypedValue, U256};
use countersign_starknet::{
    ApprovalStep, Call, DataAvailabilityMode, Deposit, ExecutionEncoding, Felt, InvokeTransaction, ResourceBound, ResourceBounds, Starknet,
    TxContext, UnsignedOrder, VerifiedOrder, htlc,
};
use countersign_testkit::{TestResult, fixture, key, received, verified, wallet};
use serde_json::json;

/// Unlimited approval, then the deposit.
const CASE: &str = "starknet-approval-unlimited";

fn order() -> VerifiedOrder {
    verified::<Starknet>(&fixture::<Starknet>(CASE))
}

/// The calls of an order without their roles.
fn calls_of(deposit: &Deposit, step: ApprovalStep) -> Vec<Call> {
    deposit.calls(step).into_iter().map(|(_, call)| call).collect()
}

/// Creates the transaction of an external wallet for calls, with its own nonce, fees and tip.
fn broadcast(order: &VerifiedOrder, encoding: ExecutionEncoding, step: ApprovalStep) -> InvokeTransaction {
    let deposit = order.deposit();
    let bound = ResourceBound::new(7, 9);
    let calldata = encoding.encode(&calls_of(deposit, step));
    let mut transaction = InvokeTransaction::new(deposit.sender, calldata, Felt::from(77), ResourceBounds::new(bound, bound, bound));
    transaction.tip = 3;
    transaction.paymaster_data = vec![Felt::ONE];
    transaction.account_deployment_data = vec![Felt::TWO];
    transaction.fee_data_availability_mode = DataAvailabilityMode::L2;
    transaction.with_signature(vec![Felt::ONE, Felt::TWO, Felt::THREE])
}

fn with_calldata(transaction: &InvokeTransaction, calldata: &[Felt]) -> InvokeTransaction {
    let mut changed = transaction.clone();
    changed.calldata = calldata.to_vec();
    changed
}

const STEPS: [ApprovalStep; 3] = [ApprovalStep::AsVerified, ApprovalStep::Exact, ApprovalStep::AlreadyApproved];
const ENCODINGS: [ExecutionEncoding; 2] = [ExecutionEncoding::New, ExecutionEncoding::Legacy];

#[test]
fn the_approval_is_as_verified_exact_or_left_out() -> TestResult {
    let order = order();
    let deposit = order.deposit();
    let amounts = STEPS.map(|step| {
        let calls = deposit.calls(step);
        assert_eq!(calls.last(), Some(&(Role::Initiate, deposit.initiate.clone())));
        assert_eq!(calls.len() == 2, calls[0].0 == Role::Approval);
        (calls.len(), calls[0].1.calldata[1..3].to_vec())
    });
    let amount = deposit.terms.amount;
    assert_eq!(amount, U256::from(1_250_000));
    assert_eq!(amounts[0], (2, vec![Felt::from(u128::MAX); 2]));
    assert_eq!(amounts[1], (2, vec![Felt::from(1_250_000), Felt::ZERO]));
    assert_eq!(amounts[2].0, 1);
    for step in STEPS {
        let execution = TxContext::new(Felt::ONE, ResourceBounds::default()).with_approval(step);
        let unsigned: UnsignedOrder = order.prepare(execution)?;
        let invoke = &unsigned.payloads().invoke.as_ref().ok_or("no transaction")?.invoke;
        assert_eq!(invoke.calls, calls_of(deposit, step));
        assert!(unsigned.payloads().message.is_none(), "the wallet chose its own transaction");
    }
    Ok(())
}

#[test]
fn calls_are_given_as_wallets_take_them() -> TestResult {
    let order = order();
    let calls = serde_json::to_value(order.deposit().execute_calls(ApprovalStep::Exact))?;
    let (token, contract) = (order.deposit().approval.as_ref().ok_or("no approval")?.call.to, order.deposit().initiate.to);
    assert_eq!(
        calls[0],
        json!({ "contractAddress": format!("{token:#x}"), "entrypoint": "approve", "calldata": [format!("{contract:#x}"), "0x1312d0", "0x0"] })
    );
    assert_eq!((&calls[1]["entrypoint"], calls.as_array().map(Vec::len)), (&json!("initiate"), Some(2)));
    let request = serde_json::to_value(order.deposit().add_invoke_transaction(ApprovalStep::AlreadyApproved))?;
    assert_eq!(request["calls"][0]["entry_point"], "initiate");
    assert_eq!(request["calls"][0]["contract_address"], format!("{contract:#x}"));
    assert_eq!(request["calls"][0]["calldata"], calls[1]["calldata"]);
    let delegate = verified::<Starknet>(&fixture::<Starknet>("starknet-delegate"));
    assert_eq!(delegate.deposit().execute_calls(ApprovalStep::AlreadyApproved)[0].entrypoint, "initiate_on_behalf");
    Ok(())
}

#[test]
fn takes_the_orders_calls_in_either_encoding_whatever_the_wallet_chose() {
    for order in [order(), verified::<Starknet>(&fixture::<Starknet>("starknet-delegate"))] {
        for encoding in ENCODINGS {
            for step in STEPS {
                assert_eq!(order.matches(&broadcast(&order, encoding, step)), Ok(Role::Initiate), "{encoding:?} {step:?}");
            }
            let mut approval = broadcast(&order, encoding, ApprovalStep::Exact);
            approval.calldata = encoding.encode(&calls_of(order.deposit(), ApprovalStep::Exact)[..1]);
            assert_eq!(order.matches(&approval), Ok(Role::Approval));
        }
    }
}

#[test]
fn our_own_transaction_matches() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let order = verified::<Starknet>(&case);
    let mut unsigned = order.prepare(wallet::<Starknet>(&case))?;
    unsigned.sign(&key::<Starknet>(&case))?;
    let [sent] = unsigned.finish()?.transactions().try_into().map_err(|_| "one transaction")?;
    assert_eq!(order.matches(&sent.native), Ok(Role::Initiate));
    // The same transaction as a node returns it.
    let mut text = serde_json::to_value(&sent.native)?;
    text["transaction_hash"] = json!(sent.id);
    let read = InvokeTransaction::from_json(text.to_string().as_bytes())?;
    assert_eq!((&read, order.matches(&read)), (&sent.native, Ok(Role::Initiate)));
    assert_eq!(format!("{:#x}", read.hashes(order.deposit().chain_id).tx_hash), sent.id);
    assert_eq!(order.matches_bytes(text.to_string().as_bytes()), Ok(Role::Initiate));
    text["transaction_hash"] = json!("0xdead");
    let refusal = order.matches_bytes(text.to_string().as_bytes()).expect_err("another hash");
    assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/transaction_hash"));
    Ok(())
}

#[test]
fn what_has_no_signature_of_an_account_does_not_match() {
    let order = order();
    for length in [0, 1, 1_025] {
        let mut transaction = broadcast(&order, ExecutionEncoding::New, ApprovalStep::AsVerified);
        transaction.signature = vec![Felt::ONE; length];
        let refusal = order.matches(&transaction).expect_err("not signed");
        assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/signature"), "{length} felts");
    }
}

#[test]
fn a_changed_felt_is_refused_where_it_is() {
    let order = order();
    for encoding in ENCODINGS {
        for step in STEPS {
            let honest = broadcast(&order, encoding, step);
            for index in 0..honest.calldata.len() {
                let mut changed = honest.clone();
                changed.calldata[index] += Felt::ONE;
                let refusal = order.matches(&changed).expect_err("another felt");
                assert_eq!(refusal.code(), Code::TransactionMismatch, "{index}: {refusal}");
            }
            for calldata in [&honest.calldata[1..], &honest.calldata[..honest.calldata.len() - 1], &[], &[Felt::ZERO]] {
                assert_eq!(order.matches(&with_calldata(&honest, calldata)).expect_err("cut").code(), Code::TransactionMismatch);
            }
            let mut longer = honest.clone();
            longer.calldata.push(Felt::ZERO);
            let refusal = order.matches(&longer).expect_err("one more felt");
            assert_eq!(refusal.location(), format!("/calldata/{}", honest.calldata.len()));
        }
    }
    // The amount, the redeemer, the contract: named with both values.
    let honest = broadcast(&order, ExecutionEncoding::New, ApprovalStep::AlreadyApproved);
    for (index, name) in [(1, "contract"), (4, "redeemer"), (5, "timelock"), (6, "amount"), (15, "secret hash")] {
        let mut changed = honest.clone();
        changed.calldata[index] = Felt::from(5);
        let refusal = order.matches(&changed).expect_err(name);
        assert_eq!(refusal.location(), format!("/calldata/{index}"), "{name}");
        let values = [refusal.expected(), refusal.actual()].map(|value| value.map(TypedValue::to_string));
        assert_eq!(values, [Some(format!("{:#x}", honest.calldata[index])), Some("0x5".to_owned())], "{name}");
    }
    // Another function of the same contract, and a third call.
    let mut calls = calls_of(order.deposit(), ApprovalStep::Exact);
    calls[0].selector = htlc::TRANSFER;
    let transfer = with_calldata(&honest, &ExecutionEncoding::New.encode(&calls));
    assert_eq!(order.matches(&transfer).expect_err("a transfer").location(), "/calldata/2");
    let mut calls = calls_of(order.deposit(), ApprovalStep::Exact);
    calls.push(calls[0].clone());
    let more = with_calldata(&honest, &ExecutionEncoding::New.encode(&calls));
    assert_eq!(order.matches(&more).expect_err("one more call").code(), Code::TransactionMismatch);
}

#[test]
fn another_senders_transaction_is_refused() {
    let order = order();
    let mut other = broadcast(&order, ExecutionEncoding::New, ApprovalStep::Exact);
    other.sender_address = Felt::from(7);
    let refusal = order.matches(&other).expect_err("another sender");
    assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/sender_address"));
    assert_eq!(refusal.actual().map(TypedValue::to_string).as_deref(), Some("0x7"));
}

#[test]
fn json_of_other_transactions_is_refused() -> TestResult {
    let honest = serde_json::to_value(broadcast(&order(), ExecutionEncoding::New, ApprovalStep::Exact))?;
    let prime = "0x800000000000011000000000000000000000000000000000000000000000001";
    for (pointer, value, code) in [
        ("/type", json!("DECLARE"), Code::TransactionMismatch),
        ("/version", json!("0x1"), Code::TransactionMismatch),
        ("/version", json!("0x100000000000000000000000000000003"), Code::TransactionMismatch),
        ("/sender_address", json!(prime), Code::FeltOutOfRange),
        ("/calldata", json!("0x1"), Code::WrongType),
        ("/calldata/3", json!(7), Code::WrongType),
        ("/tip", json!("0x10000000000000000"), Code::NumberTooLarge),
        ("/resource_bounds/l1_gas/max_amount", json!("0x10000000000000000"), Code::NumberTooLarge),
        ("/resource_bounds/l1_data_gas", json!(null), Code::MissingField),
        ("/fee_data_availability_mode", json!("L3"), Code::WrongType),
    ] {
        let mut changed = honest.clone();
        *changed.pointer_mut(pointer).ok_or(pointer)? = value;
        let refusal = InvokeTransaction::from_json(changed.to_string().as_bytes()).expect_err(pointer);
        assert_eq!((refusal.code(), refusal.location()), (code, pointer), "{refusal}");
    }
    assert!(InvokeTransaction::from_json(b"{").is_err());
    Ok(())
}

#[test]
fn transactions_are_matched_as_bytes() -> TestResult {
    let bytes = |transaction: &InvokeTransaction| serde_json::to_vec(transaction).expect("JSON");
    received::bytes_are_matched::<Starknet>(10, bytes, |signed| bytes(&signed.clone().with_signature(Vec::new())))
}

/// A signer that returns the signed transaction is as good as one that returns a signature.
#[test]
fn signatures_are_taken_from_signed_transactions() -> TestResult {
    received::signatures_are_taken_from_transactions::<Starknet>(10, |signed| {
        signed.transactions().iter().map(|one| serde_json::to_vec(&one.native).expect("JSON")).collect()
    })
}

/// A paymaster sends `execute_from_outside` to the owner's account, alone or through a forwarder. The selectors are those of starknet.js 10.8.0
/// (`hash.getSelectorFromName`).
#[test]
fn a_paymasters_transaction_is_named() {
    let order = order();
    let honest = broadcast(&order, ExecutionEncoding::New, ApprovalStep::Exact);
    let sender = order.deposit().sender;
    let selectors = [
        "0x7ec457cd7ed1630225a8328f826a29a327b19486f6b2882b4176545ebdbe3d",
        "0x34cc13b274446654ca3233ed2c1620d4c5d1d32fd20b47146a3371064bdc57d",
        "0x3dbc508ba4afd040c8dc4ff8a61113a7bcaf5eae88a6ba27b3c50578b3587e3",
    ];
    for (selector, name) in selectors.into_iter().zip(["outside)", "outside_v2)", "outside_v3)"]) {
        let selector = Felt::from_hex_unchecked(selector);
        let direct = [&[Felt::ONE, sender, selector], &*honest.calldata].concat();
        let forwarded = [&[Felt::ONE, Felt::from(0xf0), Felt::from(0x5e1), Felt::from(9), sender, selector], &*honest.calldata].concat();
        for calldata in [direct, forwarded] {
            let mut outside = with_calldata(&honest, &calldata);
            outside.sender_address = Felt::from(0x9a);
            let refusal = order.matches(&outside).expect_err("another sender");
            assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/sender_address"));
            let text = refusal.to_string();
            assert!(text.contains("execute_from_") && text.contains(name) && text.contains("Read the source leg"), "{text}");
        }
    }
}

/// SNIP-36: proof facts are hashed. An honest transaction has none, in each of the forms in which nodes say so.
#[test]
fn a_transaction_with_a_proof_is_refused_by_name() -> TestResult {
    let order = order();
    let honest = serde_json::to_value(broadcast(&order, ExecutionEncoding::New, ApprovalStep::Exact))?;
    for (member, value, is_empty) in [
        ("proof_facts", json!([]), true),
        ("proof_facts", json!(null), true),
        ("proof", json!(""), true),
        ("proof_facts", json!(["0x1"]), false),
        ("proof", json!("AAAA"), false),
        ("proof", json!([1]), false),
    ] {
        let mut changed = honest.clone();
        changed[member] = value;
        match InvokeTransaction::from_json(changed.to_string().as_bytes()) {
            Ok(transaction) => assert!(is_empty && order.matches(&transaction) == Ok(Role::Initiate), "{changed}"),
            Err(refusal) => {
                assert!(!is_empty, "{refusal}");
                assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, &*format!("/{member}")));
                assert!(refusal.to_string().contains("carries a proof"), "{refusal}");
            }
        }
    }
    Ok(())
}
