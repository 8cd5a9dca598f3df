//! Sui: the cost of verification compared with the signature that follows it.

use std::hint::black_box;

use countersign::sui::Sui;
use countersign::{CreateOrder, Policy, Proposal, Registry};
use countersign_benches::{REGISTRY, case, criterion, member, rows, steps};
use ed25519_dalek::Signer;
use sui_sdk_types::hash::Hasher;
use sui_sdk_types::{Address, Digest, GasPayment, ObjectReference, Transaction, TransactionExpiration, TransactionKind};

const CASES: &str = include_str!("../../fixtures/accept/sui.jsonl");

const GROUP: &str = "sui";
const FLOOR: &str = "floor, JSON read, order opened, BCS read and written, one hash";
const PEER: &str = "peer, serde_json, sui-sdk-types, digest";

fn main() {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    let line = case(CASES, "sui-native");
    let mut criterion = criterion();
    let mut group = criterion.benchmark_group(GROUP);
    steps::<Sui>(&mut group, &line, &registry);
    // What wallets do today: decode the bytes, add the gas and hash, without checks.
    let response = member(&line, "response");
    group.bench_function(PEER, |b| b.iter(|| unverified(black_box(&response)).signing_digest()));
    // The minimum for any verification with these libraries. It includes none of our rules and allocations.
    let request = member(&line, "request");
    let request = CreateOrder::from_json(request.as_bytes()).expect("a request");
    group.bench_function(FLOOR, |b| b.iter(|| floor(black_box(&response), &request, &registry)));
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    group.bench_function(rows::ED25519, |b| b.iter(|| key.sign(black_box(&[9; 32]))));
    group.finish();
    criterion.final_summary();
}

fn floor(response: &str, request: &CreateOrder, registry: &Registry) -> (usize, Digest) {
    let proposal = Proposal::new(request, response.as_bytes());
    let floor = proposal.open(registry, &Policy::default(), |order| {
        let bytes = order.result.object()?.need("ptb_bytes")?.byte_array()?;
        let kind: TransactionKind = bcs::from_bytes(&bytes).expect("a kind");
        let written = bcs::to_bytes(&kind).expect("BCS");
        let mut hasher = Hasher::new();
        // The sender, one coin and the other gas data take 185 more bytes.
        hasher.update(&written);
        hasher.update([0; 185]);
        Ok((written.len(), hasher.finalize()))
    });
    floor.expect("an order with bytes")
}

fn unverified(response: &str) -> Transaction {
    let body: serde_json::Value = serde_json::from_str(response).expect("JSON");
    let bytes: Vec<u8> = serde_json::from_value(body["result"]["ptb_bytes"].clone()).expect("bytes");
    let sender = Address::new([1; 32]);
    let coin = ObjectReference::new(Address::new([2; 32]), 3, Digest::new([4; 32]));
    Transaction {
        kind: bcs::from_bytes(&bytes).expect("a kind"),
        sender,
        gas_payment: GasPayment { objects: vec![coin], owner: sender, price: 1_000, budget: 10_000_000 },
        expiration: TransactionExpiration::None,
    }
}
