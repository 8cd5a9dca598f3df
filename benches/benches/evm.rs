//! EVM: the cost of verification compared with the signature that follows it, and with the usual path without
//! verification.

use std::hint::black_box;

use alloy_consensus::{SignableTransaction, TxEip1559};
use alloy_dyn_abi::eip712::TypedData;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use countersign::evm::{Evm, ExternalSignature, Key};
use countersign::{Policy, Registry, RequestId, UnsignedOrder, json};
use countersign_json::prepare_json;

use countersign_benches::{REGISTRY, case, criterion, member, rows, steps};
use countersign_json::line::Case;
use serde_json::Value;

const CASES: &str = include_str!("../../fixtures/accept/evm.jsonl");

const GROUP: &str = "evm";
const ATTACH: &str = "attach one signature";
const DYNAMIC: &str = "peer, alloy dynamic typed data parsed and hashed";
const BY_HAND: &str = "peer, serde_json and two alloy transactions";
const LIBSECP: &str = "libsecp256k1 signature";

fn main() {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    let policy = Policy::default();
    // The most complete response, with approval, initiate and typed data.
    let line = case(CASES, "evm-token-approval-unlimited");
    let value = json::parse(line.as_bytes()).expect("JSON");
    let case = Case::from_value(&value).expect("case");
    let verified = countersign::verify_family::<Evm>(case.proposal().expect("request"), &registry, &policy).expect("verify");
    let prepared = || prepare_json(&verified, case.wallet().expect("wallet")).expect("prepare");

    let mut criterion = criterion();
    let mut group = criterion.benchmark_group(GROUP);
    steps::<Evm>(&mut group, &line, &registry);

    let wallet: Value = serde_json::from_str(&member(&line, "wallet")).expect("JSON");
    let secret = wallet["secret_key"].as_str().expect("a key");
    let key: Key = secret.parse().expect("a key");
    let mut signed = prepared();
    signed.sign(&key).expect("sign");
    let signature = signed.payloads().message.as_ref().and_then(|message| message.signature.clone()).expect("a signature");
    let signature: ExternalSignature = countersign::report::Hex(signature).to_string().parse().expect("a signature");
    group.bench_function(ATTACH, |b| {
        b.iter_batched(
            || (prepared(), signature.clone()),
            |(mut unsigned, signature): (UnsignedOrder<Evm>, _)| {
                unsigned.attach(RequestId::TypedData, signature).expect("attach");
                unsigned
            },
            criterion::BatchSize::SmallInput,
        )
    });

    // The peers do what wallets do today, without verification.
    let response = member(&line, "response");
    let body: Value = serde_json::from_str(&response).expect("JSON");
    let typed_data = body["result"]["typed_data"].to_string();
    group.bench_function(DYNAMIC, |b| {
        b.iter(|| {
            let typed: TypedData = serde_json::from_str(black_box(&typed_data)).expect("typed data");
            typed.eip712_signing_hash().expect("hash")
        })
    });
    group.bench_function(BY_HAND, |b| {
        b.iter(|| {
            let body: Value = serde_json::from_str(black_box(&response)).expect("JSON");
            ["approval_transaction", "initiate_transaction"].map(|name| by_hand(&body["result"][name]).signature_hash())
        })
    });
    let digest = by_hand(&body["result"]["initiate_transaction"]).signature_hash();
    let key_bytes = hex::decode(secret.trim_start_matches("0x")).expect("hex");
    let key = k256::ecdsa::SigningKey::from_slice(&key_bytes).expect("key");
    group.bench_function(rows::K256, |b| b.iter(|| key.sign_prehash_recoverable(black_box(digest.as_slice())).expect("signature")));
    let (secp, secp_key) = (secp256k1::Secp256k1::new(), secp256k1::SecretKey::from_slice(&key_bytes).expect("key"));
    let message = secp256k1::Message::from_digest(digest.0);
    group.bench_function(LIBSECP, |b| b.iter(|| secp.sign_ecdsa_recoverable(black_box(&message), &secp_key)));
    group.finish();
    criterion.final_summary();
}

/// Returns a transaction built from the response as wallets do, without checks.
fn by_hand(call: &Value) -> TxEip1559 {
    let text = |name: &str| call[name].as_str().expect("text");
    TxEip1559 {
        chain_id: call["chain_id"].as_u64().expect("chain id"),
        nonce: 7,
        gas_limit: u64::from_str_radix(&text("gas_limit")[2..], 16).expect("gas"),
        max_fee_per_gas: 30_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: TxKind::Call(text("to").parse::<Address>().expect("address")),
        value: text("value").parse::<U256>().expect("value"),
        input: text("data").parse::<Bytes>().expect("data"),
        ..TxEip1559::default()
    }
}
