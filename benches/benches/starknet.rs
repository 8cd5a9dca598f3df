//! Starknet: the cost of verification and the two hashes compared with the signatures that follow, and with general
//! libraries.

use std::hint::black_box;

use countersign::Registry;
use countersign::starknet::Starknet;
use countersign_benches::{REGISTRY, case, criterion, member, rows, steps};
use pathfinder_crypto::MontFelt;
use pathfinder_crypto::hash::PoseidonHasher;
use pathfinder_crypto::signature::ecdsa_sign_k;
use serde_json::Value;
use starknet_core::types::typed_data::TypedData;
use starknet_crypto::{Felt, poseidon_hash_many, rfc6979_generate_k, sign};

const CASES: &str = include_str!("../../fixtures/accept/starknet.jsonl");

const GROUP: &str = "starknet";
const LIBRARY: &str = "pathfinder-crypto signature, without the nonce";
const PEER: &str = "peer, serde_json, general SNIP-12 and starknet-crypto hashes";

fn main() {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    // The most complete response, with approval, initiate and typed data.
    let line = case(CASES, "starknet-approval-unlimited");
    let mut criterion = criterion();
    let mut group = criterion.benchmark_group(GROUP);
    steps::<Starknet>(&mut group, &line, &registry);

    // What wallets do today, without verification.
    let (request, response) = (member(&line, "request"), member(&line, "response"));
    let request: Value = serde_json::from_str(&request).expect("JSON");
    let owner = felt(&request["source"]["owner"]);
    group.bench_function(PEER, |b| b.iter(|| by_hand(black_box(&response), owner)));

    // The minimum for any implementation with this library.
    let body: Value = serde_json::from_str(&response).expect("JSON");
    let calldata = calldata(&body["result"]);
    group.bench_function(rows::STARK_HASHES, |b| {
        b.iter(|| [transaction_hash(black_box(&calldata), owner, poseidon), message_hash(black_box(&calldata), owner)])
    });

    let (key, hash) = (Felt::from(7_u64), by_hand(&response, owner)[0]);
    group.bench_function(rows::STARK, |b| {
        b.iter(|| {
            let k = rfc6979_generate_k(black_box(&hash), &key, None);
            sign(&key, &hash, &k).expect("signature")
        })
    });
    let nonce = rfc6979_generate_k(&hash, &key, None);
    let [key, hash, nonce] = [key, hash, nonce].map(|felt| pathfinder_crypto::Felt::from_be_bytes(felt.to_bytes_be()).expect("a felt"));
    // Without the nonce, which the family's crate computes itself.
    group.bench_function(LIBRARY, |b| b.iter(|| ecdsa_sign_k(black_box(key), hash, nonce).expect("signature")));
    group.finish();
    criterion.final_summary();
}

fn felt(value: &Value) -> Felt {
    Felt::from_hex(value.as_str().expect("text")).expect("a felt")
}

/// Returns the transaction hash and the message hash, computed from the response as wallets do, without checks.
fn by_hand(response: &str, sender: Felt) -> [Felt; 2] {
    let body: Value = serde_json::from_str(response).expect("JSON");
    let result = &body["result"];
    let typed_data: TypedData = serde_json::from_value(result["typed_data"].clone()).expect("typed data");
    [transaction_hash(&calldata(result), sender, |felts| poseidon_hash_many(felts)), typed_data.message_hash(sender).expect("a hash")]
}

fn calldata(result: &Value) -> Vec<Felt> {
    let mut calldata = vec![Felt::TWO];
    for call in ["approval_transaction", "initiate_transaction"].map(|name| &result[name]) {
        let felts: Vec<_> = call["calldata"].as_array().expect("calldata").iter().map(felt).collect();
        calldata.extend([felt(&call["to"]), felt(&call["selector"]), Felt::from(felts.len())]);
        calldata.extend(felts);
    }
    calldata
}

/// Hashes with the library that the Starknet crate uses.
fn poseidon(felts: &[Felt]) -> Felt {
    let hash = felts.iter().fold(PoseidonHasher::new(), |hasher, felt| hasher.chain(MontFelt::from_raw(felt.to_raw_reversed())));
    Felt::from_bytes_be(&hash.finish().to_be_bytes())
}

fn transaction_hash(calldata: &[Felt], sender: Felt, poseidon: fn(&[Felt]) -> Felt) -> Felt {
    let [nothing, calldata] = [&[][..], calldata].map(poseidon);
    let fees = poseidon(&[Felt::ZERO, Felt::from(1_u64), Felt::from(2_u64), Felt::from(3_u64)]);
    let (chain, invoke) = (Felt::from_bytes_be_slice(b"SN_MAIN"), Felt::from_bytes_be_slice(b"invoke"));
    poseidon(&[invoke, Felt::THREE, sender, fees, nothing, chain, Felt::ONE, Felt::ZERO, nothing, calldata])
}

/// Hashes as many felts as the domain, amount, secret hash, struct and message have. Their values do not matter.
fn message_hash(felts: &[Felt], sender: Felt) -> Felt {
    let [domain, amount, words, message] = [5, 3, 8, 5].map(|len| poseidon(&felts[..len]));
    poseidon(&[domain, sender, amount + words, message])
}
