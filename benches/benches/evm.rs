//! EVM: what verification costs beside the signature that it precedes, and beside the usual unverified path.

use std::hint::black_box;

use alloy_consensus::{SignableTransaction, TxEip1559};
use alloy_dyn_abi::eip712::TypedData;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use countersign::case::Case;
use countersign::json::{self, Node};
use countersign::{Documents, Policy, Registry, open};
use countersign_benches::{REGISTRY, case, criterion, member, print_ratios};
use serde_json::Value;

const CASES: &str = include_str!("../../fixtures/accept/evm.jsonl");

const GROUP: &str = "evm";
const SIGNATURE: &str = "k256 prehash signature";

fn main() {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    let policy = Policy::default();
    // Approval, initiate and typed data: the fullest answer.
    let line = case(CASES, "evm-token-approval-unlimited");
    let (request, response, wallet) = (member(&line, "request"), member(&line, "response"), member(&line, "wallet"));
    println!("response of {} bytes", response.len());
    let wallet_value: Value = serde_json::from_str(&wallet).expect("JSON");
    let secret = wallet_value["secret_key"].as_str().expect("a key").to_owned();
    let key_bytes = hex::decode(secret.trim_start_matches("0x")).expect("hex");
    let k256_key = k256::ecdsa::SigningKey::from_slice(&key_bytes).expect("key");
    let secp = secp256k1::Secp256k1::new();
    let secp_key = secp256k1::SecretKey::from_slice(&key_bytes).expect("key");

    let mut criterion = criterion();
    let mut group = criterion.benchmark_group(GROUP);
    let request_value = json::parse(request.as_bytes()).expect("JSON");
    let wallet_value = json::parse(wallet.as_bytes()).expect("JSON");
    let wallet_node = || Node::root(&wallet_value, "/wallet");

    group.bench_function("parse", |b| b.iter(|| json::parse(black_box(response.as_bytes())).expect("JSON")));
    let response_value = json::parse(response.as_bytes()).expect("JSON");
    group.bench_function("verify", |b| {
        b.iter(|| open(documents(&request_value, black_box(&response_value)), &registry, &policy).expect("open").verify().expect("verify"))
    });
    group.bench_function("verify and prepare", |b| {
        b.iter(|| {
            let verified =
                open(documents(&request_value, black_box(&response_value)), &registry, &policy).expect("open").verify().expect("verify");
            verified.prepare_json(wallet_node()).expect("prepare")
        })
    });
    group.bench_function("parse, verify and prepare", |b| {
        b.iter(|| {
            let value = json::parse(black_box(response.as_bytes())).expect("JSON");
            let verified = open(documents(&request_value, &value), &registry, &policy).expect("open").verify().expect("verify");
            verified.prepare_json(wallet_node()).expect("prepare")
        })
    });
    let unsigned = || {
        open(documents(&request_value, &response_value), &registry, &policy)
            .expect("open")
            .verify()
            .expect("verify")
            .prepare_json(wallet_node())
            .expect("prepare")
    };
    group.bench_function("summary", |b| {
        let unsigned = unsigned();
        b.iter(|| black_box(&unsigned).summary())
    });
    group.bench_function("sign three payloads", |b| {
        b.iter_batched(unsigned, |unsigned| unsigned.sign(&secret).expect("sign"), criterion::BatchSize::SmallInput)
    });
    let signed = serde_json::to_value(unsigned().sign(&secret).expect("sign")).expect("JSON");
    let signatures = serde_json::json!({ "typed_data": signed["typed_data"]["signature"] }).to_string();
    let signatures = json::parse(signatures.as_bytes()).expect("JSON");
    group.bench_function("attach one signature", |b| {
        b.iter_batched(
            unsigned,
            |unsigned| unsigned.attach_json(Node::root(&signatures, "/signatures")).expect("attach"),
            criterion::BatchSize::SmallInput,
        )
    });
    group.bench_function("whole path, three signatures", |b| {
        b.iter(|| {
            let value = json::parse(black_box(line.as_bytes())).expect("JSON");
            Case::of(&value).expect("case").run(&registry, &policy).expect("run")
        })
    });

    // Peers: what wallets do today, without any verification.
    let body: Value = serde_json::from_str(&response).expect("JSON");
    let typed_data = body["result"]["typed_data"].to_string();
    group.bench_function("peer: alloy dynamic typed data, parse and hash", |b| {
        b.iter(|| {
            let typed: TypedData = serde_json::from_str(black_box(&typed_data)).expect("typed data");
            typed.eip712_signing_hash().expect("hash")
        })
    });
    group.bench_function("peer: serde_json and two alloy transactions", |b| {
        b.iter(|| {
            let body: Value = serde_json::from_str(black_box(&response)).expect("JSON");
            ["approval_transaction", "initiate_transaction"].map(|name| by_hand(&body["result"][name]).signature_hash())
        })
    });
    let digest = by_hand(&body["result"]["initiate_transaction"]).signature_hash();
    group.bench_function(SIGNATURE, |b| b.iter(|| k256_key.sign_prehash_recoverable(black_box(digest.as_slice())).expect("signature")));
    let message = secp256k1::Message::from_digest(digest.0);
    group.bench_function("libsecp256k1 signature", |b| b.iter(|| secp.sign_ecdsa_recoverable(black_box(&message), &secp_key)));
    group.finish();
    criterion.final_summary();

    print_ratios(
        GROUP,
        SIGNATURE,
        &[
            "parse",
            "verify",
            "verify and prepare",
            "parse, verify and prepare",
            "summary",
            "sign three payloads",
            "attach one signature",
            "whole path, three signatures",
            "peer: alloy dynamic typed data, parse and hash",
            "peer: serde_json and two alloy transactions",
            SIGNATURE,
            "libsecp256k1 signature",
        ],
    );
}

fn documents<'d>(request: &'d json::Value<'d>, response: &'d json::Value<'d>) -> Documents<'d> {
    Documents { request, response, order: None }
}

/// A transaction as a wallet builds it from the answer, unchecked.
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
