//! Conversions to and from the types of starknet-rs.

use countersign_core::{Code, Role};
use countersign_starknet::starknet_core::crypto::Signature;
use countersign_starknet::starknet_core::types::{BroadcastedInvokeTransactionV3, Call, InvokeTransactionV3};
use countersign_starknet::{ApprovalStep, ExternalSignature, Felt, Gasless, InvokeTransaction, Starknet};
use countersign_testkit::{TestResult, fixture, key, verified, wallet};

/// A transaction in which every field has a different value.
const CASE: &str = "starknet-paymaster-and-deployment";

#[test]
fn calls_and_transactions_convert_and_match() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let order = verified::<Starknet>(&case);
    let calls: Vec<Call> = order.deposit().calls(ApprovalStep::AsVerified).into_iter().map(|(_, call)| call.into()).collect();
    assert_eq!(calls.last().map(|call| (call.to, call.calldata.len())), Some((order.deposit().initiate.to, 12)));

    let mut unsigned = order.prepare(wallet::<Starknet>(&case))?;
    unsigned.sign(&key::<Starknet>(&case))?;
    let [sent] = unsigned.finish()?.transactions().try_into().map_err(|_| "one transaction")?;
    let native = BroadcastedInvokeTransactionV3::from(sent.native.clone());
    // Both serialize to the same JSON, except for the simulation flag, which is left out if it is not set.
    assert_eq!(serde_json::to_value(&native)?, serde_json::to_value(&sent.native)?);
    assert_eq!(InvokeTransaction::try_from(native.clone())?, sent.native);

    let mut as_mined = serde_json::to_value(&native)?;
    as_mined["transaction_hash"] = sent.id.clone().into();
    let mined: InvokeTransactionV3 = serde_json::from_value(as_mined)?;
    assert_eq!(mined.transaction_hash, Felt::from_hex(&sent.id)?);
    assert_eq!(order.matches(&mined.into()), Ok(Role::Initiate));

    let query = BroadcastedInvokeTransactionV3 { is_query: true, ..native };
    let refusal = InvokeTransaction::try_from(query).expect_err("a simulation");
    assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/version"));
    Ok(())
}

#[test]
fn the_message_is_typed_data_with_the_same_hash() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let order = verified::<Starknet>(&case);
    let [request] = order.prepare(Gasless)?.requests().try_into().map_err(|_| "one message")?;
    let typed_data = request.payload.to_typed_data().ok_or("a message")?;
    assert_eq!(typed_data.message_hash(order.deposit().sender)?.to_bytes_be()[..], request.digest);
    let unsigned = order.prepare(wallet::<Starknet>(&case))?;
    assert!(unsigned.requests()[0].payload.to_typed_data().is_none(), "a transaction");
    Ok(())
}

#[test]
fn signatures_convert() {
    let signature = Signature { r: Felt::ONE, s: Felt::TWO };
    assert_eq!(ExternalSignature::from(signature).felts(), [Felt::ONE, Felt::TWO]);
}
