//! Solana: the cost of verification compared with the signature that follows it.
//!
//! Finding an account derived from a program takes several tries, each with a SHA-256 hash and a curve check. An
//! order's own accounts have to be derived to be compared, so this search is the floor and has its own row. The two
//! accounts of a token program itself depend only on the pins, and are cached with the registry.

use std::hint::black_box;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::Registry;
use countersign::solana::Solana;
use countersign::solana::address::{ASSOCIATED_TOKEN_PROGRAM, TOKEN_PROGRAM, parse};
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign_benches::{REGISTRY, case, criterion, member, rows, steps};
use ed25519_dalek::Signer;
use serde_json::Value;
use solana_address::Address;

const CASES: &str = include_str!("../../fixtures/accept/solana.jsonl");

const PEER: &str = "peer, serde_json, solana-transaction, message bytes";

fn main() {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    let mut criterion = criterion();
    for (name, id) in [("solana native", "solana-native-legacy"), ("solana gasless", "solana-token-legacy")] {
        let line = case(CASES, id);
        let mut group = criterion.benchmark_group(name);
        steps::<Solana>(&mut group, &line, &registry);
        // What wallets do today: decode the bytes and take the message, without checks.
        let response = member(&line, "response");
        group.bench_function(PEER, |b| b.iter(|| unverified(black_box(&response))));
        let seeds = seeds(&line);
        group.bench_function(rows::DERIVED_ACCOUNTS, |b| b.iter(|| derive(black_box(&seeds))));
        let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
        let message = unverified(&response).swap_remove(0);
        group.bench_function(rows::ED25519, |b| b.iter(|| key.sign(black_box(&message))));
        group.finish();
    }
    criterion.final_summary();
}

fn unverified(response: &str) -> Vec<Vec<u8>> {
    let body: Value = serde_json::from_str(response).expect("JSON");
    let texts = ["versioned_tx", "versioned_tx_gasless"].map(|name| body["result"][name].as_str());
    let messages = texts.into_iter().flatten().map(|text| {
        let bytes = STANDARD.decode(text).expect("base64");
        let transaction: VersionedTransaction = wincode::deserialize_exact(&bytes).expect("a transaction");
        transaction.message.serialize()
    });
    messages.collect()
}

type Seeds = Vec<(Vec<Vec<u8>>, Address)>;

/// Returns the seeds of each account that belongs to the order alone.
fn seeds(line: &str) -> Seeds {
    let line: Value = serde_json::from_str(line).expect("JSON");
    let registry: Value = serde_json::from_str(REGISTRY).expect("JSON");
    let asset = registry["assets"].as_array().into_iter().flatten().find(|asset| asset["id"] == line["request"]["source"]["asset"]);
    let asset = asset.expect("a pinned asset");
    let key = |value: &Value| parse(value.as_str().expect("an address")).expect("an address");
    let (program, owner) = (key(&asset["htlc"]["address"]), key(&line["request"]["source"]["owner"]).to_bytes().to_vec());
    let hash = hex::decode(line["request"]["secret_hash"].as_str().expect("a hash").trim_start_matches("0x")).expect("hex");
    if asset["token"].is_null() {
        return vec![(vec![b"swap_account".to_vec(), owner, hash], program)];
    }
    let mint = key(&asset["token"]["address"]).to_bytes().to_vec();
    vec![(vec![owner.clone(), hash], program), (vec![owner, TOKEN_PROGRAM.to_bytes().to_vec(), mint], ASSOCIATED_TOKEN_PROGRAM)]
}

fn derive(all: &Seeds) -> Vec<Address> {
    let accounts = all.iter().map(|(seeds, program)| {
        let seeds: Vec<_> = seeds.iter().map(Vec::as_slice).collect();
        // The faster of the library's two searches, which verification also uses.
        match seeds.as_slice() {
            [a, b] => Address::derive_program_address(&[a, b], program),
            [a, b, c] => Address::derive_program_address(&[a, b, c], program),
            _ => None,
        }
        .expect("an account")
        .0
    });
    accounts.collect()
}
