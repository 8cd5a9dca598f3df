//! Conversions to and from the types of starknet-rs, and of starknet-rust, its maintained fork.

use countersign_core::{Code, Role};
use countersign_starknet::{ApprovalStep, ExternalSignature, Felt, Gasless, InvokeTransaction, Starknet};
use countersign_testkit::{TestResult, fixture, key, verified, wallet};

/// A transaction in which every field has a different value.
const CASE: &str = "starknet-paymaster-and-deployment";

/// The tests of one crate's types.
macro_rules! tests_of {
    ($core:ident, $to_typed_data:ident) => {
        mod $core {
            use countersign_starknet::$core::crypto::Signature;
            use countersign_starknet::$core::types::{BroadcastedInvokeTransactionV3, Call, InvokeTransactionV3};

            use super::*;

            #[test]
            #[allow(clippy::unnecessary_fallible_conversions, reason = "starknet-rs has no field that could make it fail")]
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
                assert_eq!(order.matches(&InvokeTransaction::try_from(mined)?), Ok(Role::Initiate));

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
                let typed_data = request.payload.$to_typed_data().ok_or("a message")?;
                assert_eq!(typed_data.message_hash(order.deposit().sender)?.to_bytes_be()[..], request.digest);
                let unsigned = order.prepare(wallet::<Starknet>(&case))?;
                assert!(unsigned.requests()[0].payload.$to_typed_data().is_none(), "a transaction");
                Ok(())
            }

            #[test]
            fn signatures_convert() {
                let signature = Signature { r: Felt::ONE, s: Felt::TWO };
                assert_eq!(ExternalSignature::from(signature).felts(), [Felt::ONE, Felt::TWO]);
            }
        }
    };
}

#[cfg(feature = "starknet-rs")]
tests_of!(starknet_core, to_typed_data);
#[cfg(feature = "starknet-rust")]
tests_of!(starknet_rust_core, to_starknet_rust_typed_data);

/// What an account of starknet-rust broadcasts has room for a proof (SNIP-36), which the types of starknet-rs have not.
#[cfg(feature = "starknet-rust")]
#[test]
fn a_transaction_of_starknet_rust_with_a_proof_is_refused() -> TestResult {
    use countersign_starknet::starknet_rust_core::types::{
        BroadcastedInvokeTransaction, BroadcastedInvokeTransactionV3, InvokeTransactionV3,
    };

    let case = fixture::<Starknet>(CASE);
    let mut unsigned = verified::<Starknet>(&case).prepare(wallet::<Starknet>(&case))?;
    unsigned.sign(&key::<Starknet>(&case))?;
    let [sent] = unsigned.finish()?.transactions().try_into().map_err(|_| "one transaction")?;
    let honest = BroadcastedInvokeTransaction::from(sent.native.clone());
    assert_eq!(serde_json::to_value(&honest)?, serde_json::to_value(&sent.native)?);

    for (facts, proof, at) in [
        (None, None, None),
        (Some(vec![]), Some(""), None),
        (Some(vec![Felt::ONE]), None, Some("/proof_facts")),
        (None, Some("AAAA"), Some("/proof")),
        (Some(vec![]), Some("AAAA"), Some("/proof")),
    ] {
        let native = BroadcastedInvokeTransactionV3 { proof_facts: facts.clone(), ..honest.broadcasted_invoke_txn_v3.clone() };
        let whole = BroadcastedInvokeTransaction { broadcasted_invoke_txn_v3: native.clone(), proof: proof.map(str::to_owned) };
        // As JSON it is judged alike.
        let parsed = InvokeTransaction::from_json(serde_json::to_string(&whole)?.as_bytes());
        let converted = InvokeTransaction::try_from(whole);
        let mut as_mined = serde_json::to_value(&native)?;
        as_mined["transaction_hash"] = sent.id.clone().into();
        let mined = InvokeTransaction::try_from(serde_json::from_value::<InvokeTransactionV3>(as_mined)?);
        match at {
            None => assert_eq!((converted?, parsed?, mined?), (sent.native.clone(), sent.native.clone(), sent.native.clone())),
            Some(at) => {
                let refusal = converted.expect_err("a proof");
                assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, at));
                assert!(refusal.to_string().contains("carries a proof"), "{refusal}");
                assert_eq!(parsed.expect_err("a proof"), refusal);
                // A node returns the facts, not the proof.
                assert_eq!(mined.err(), (at == "/proof_facts").then_some(refusal));
            }
        }
    }
    Ok(())
}
