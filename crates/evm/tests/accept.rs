//! Cases whose artefacts were made by ethers (`fixtures/README.md`): each must be accepted and give the same bytes.

use countersign_core::Role;
use countersign_evm::alloy_consensus::{SignableTransaction, TxEnvelope, TypedTransaction};
use countersign_evm::alloy_eips::eip2718::{Decodable2718, Encodable2718};
use countersign_evm::alloy_primitives::Signature;
use countersign_evm::{Evm, Payload, UnsignedOrder};
use countersign_testkit::lines::{run, warning_codes};
use countersign_testkit::{Case, TestResult, Tree, accept, fixture, fixtures, key, verified, wallet};
use serde_json::{Value, json};

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Evm>(case).prepare(wallet::<Evm>(case)).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id))
}

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts::<Evm>(112)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts::<Evm>()
}

/// The last value within a limit is accepted without a warning.
#[test]
fn what_is_just_within_a_limit_is_accepted_in_silence() {
    let transaction = "/response/result/initiate_transaction";
    for (base, at, value, warning) in [
        ("evm-native-typed-data-null", format!("{transaction}/gas_limit"), "\"0x5208\"", ""),
        ("evm-native-typed-data-null", format!("{transaction}/gas_limit"), "\"0x1c9c380\"", ""),
        ("evm-native-typed-data-null", "/wallet/nonce".to_owned(), "18446744073709551614", ""),
        ("evm-token-approval-exact", "/wallet/nonce".to_owned(), "18446744073709551613", ""),
        ("evm-token-approval-exact", "/wallet/max_priority_fee_per_gas".to_owned(), "\"30000000000\"", ""),
        ("evm-token-approval-exact", "/wallet/chain_id".to_owned(), "8453", ""),
        ("evm-token-approval-exact", "/wallet/chain_id".to_owned(), "\"0x2105\"", ""),
        ("evm-token-approval-exact", "/request/slippage".to_owned(), "10000", ""),
        ("evm-token-approval-exact", "/request/destination/amount".to_owned(), "\"18446744073709551615\"", "amount_outside_limits"),
        // 86400 s on the source leg, 2 s per block on the destination leg: exactly half is not too close yet.
        ("evm-record-evm-v1", "/order/destination_swap/timelock".to_owned(), "21600", "destination_timelock_close"),
        ("evm-record-evm-v1", "/order/destination_swap/timelock".to_owned(), "1", "destination_timelock_close"),
    ] {
        let mut line = fixture::<Evm>(base).tree();
        line.set(&at, Tree::parse(value));
        let got = run(&line.text());
        assert_eq!(got["ok"], Value::Bool(true), "{base}: {at} of {value}: {}", got["error"]);
        assert!(warning.is_empty() || !warning_codes(&got).contains(&warning), "{base}: {at} of {value}");
    }
}

/// The artefacts for nodes and the service are those of the outside tools, both as bytes and as alloy's own type.
#[test]
fn transactions_and_submission_are_those_of_the_outside_tools() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Evm>()? {
        if case.secret_key().is_none() {
            continue;
        }
        let mut unsigned = prepared(&case);
        unsigned.sign(&key::<Evm>(&case))?;
        let signed = unsigned.finish()?;
        let expect = case.expect();
        let transactions = signed.transactions();
        let roles: Vec<_> = transactions.iter().map(|transaction| transaction.role).collect();
        let expected_roles: Vec<_> = [("approval", Role::Approval), ("initiate", Role::Initiate)]
            .into_iter()
            .filter(|(name, _)| !expect["artefacts"][name].is_null())
            .map(|(_, role)| role)
            .collect();
        assert_eq!(roles, expected_roles, "{}", case.id);
        for transaction in transactions {
            let part = &expect["artefacts"][transaction.role.to_string()];
            assert_eq!(format!("0x{}", hex::encode(&transaction.bytes)), part["signed"], "{}", case.id);
            assert_eq!(transaction.id, part["tx_hash"], "{}", case.id);
            assert_eq!(transaction.native.encoded_2718(), transaction.bytes, "{}", case.id);
            // Decoding the bytes returns the same transaction.
            assert_eq!(TxEnvelope::decode_2718(&mut transaction.bytes.as_slice())?, transaction.native, "{}", case.id);
            assert_eq!(signed.verified().unwrap().match_with_warnings(&transaction.native)?.0, transaction.role, "{}", case.id);
        }
        let submission = signed.gasless().map(serde_json::to_value).transpose()?;
        let signature = expect["artefacts"]["typed_data"].get("signature").map(|signature| json!({ "signature": signature }));
        assert_eq!(submission, signature, "{}", case.id);
        seen += 1;
    }
    assert!(seen > 80, "only {seen} signed cases");
    Ok(())
}

/// The payload of a request matches its digest: a transaction whose hash is the digest, or typed data that hashes to it.
#[test]
fn payloads_are_what_the_digest_is_of() -> TestResult {
    for case in fixtures::<Evm>()? {
        for request in prepared(&case).requests() {
            let digest = match &request.payload {
                Payload::Transaction(TypedTransaction::Eip1559(transaction)) => signature_hash(transaction),
                Payload::Transaction(TypedTransaction::Legacy(transaction)) => signature_hash(transaction),
                Payload::TypedData(typed_data) => typed_data.eip712_signing_hash()?.to_vec(),
                other => panic!("{other:?} is never prepared"),
            };
            assert_eq!(digest, request.digest, "{}: {}", case.id, request.id);
        }
    }
    Ok(())
}

fn signature_hash(transaction: &impl SignableTransaction<Signature>) -> Vec<u8> {
    transaction.signature_hash().to_vec()
}
