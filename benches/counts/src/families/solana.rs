//! Solana: Ed25519 with ed25519-dalek, and the search for derived accounts with Solana's own library.

use std::hint::black_box;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::solana::Address;
use countersign::solana::address::{ASSOCIATED_TOKEN_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM, parse};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde_json::Value;

use crate::floor::{Work, artefacts, bytes, text};
use crate::steps::REGISTRY;

pub(super) fn floor(case: &Value) -> Vec<Work> {
    let mut secret = [0; 64];
    bs58::decode(text(&case["wallet"]["secret_key"])).onto(&mut secret).expect("a key");
    let seed = *secret.first_chunk().expect("32 bytes");
    let mut floor: Vec<Work> = vec![Box::new(move || _ = black_box(SigningKey::from_bytes(&black_box(seed))))];
    floor.extend(derived(case));
    let key = SigningKey::from_bytes(&seed);
    let result = &case["response"]["result"];
    for (name, artefact) in artefacts(case) {
        let message = STANDARD.decode(text(&artefact["message"])).expect("base64");
        let signed = &artefact[if name == "gasless" { "submission" } else { "signed" }];
        let signature = key.sign(&message);
        let is_expected = text(signed).contains(&STANDARD.encode(signature.to_bytes())[..40]) || contains(signed, &signature.to_bytes());
        assert!(is_expected, "another signature than {signed}");
        let given = &result[if name == "gasless" { "versioned_tx_gasless" } else { "versioned_tx" }];
        floor.extend(given_signatures(text(given), &case["request"]["source"]["owner"], &artefact["signers"]));
        let key = key.clone();
        floor.push(Box::new(move || _ = black_box(key.sign(black_box(&message)))));
    }
    floor
}

/// Returns whether a submission, in JSON or base64, contains a signature.
fn contains(signed: &Value, signature: &[u8]) -> bool {
    let bytes = STANDARD.decode(text(signed)).unwrap_or_default();
    bytes.windows(64).any(|window| window == signature)
}

/// Returns the verification of each signature that the response's transaction already has, except the owner's.
fn given_signatures(transaction: &str, owner: &Value, signers: &Value) -> Vec<Work> {
    let transaction = hex::decode(transaction).or_else(|_| STANDARD.decode(transaction)).expect("hex or base64");
    let (signatures, message) = match transaction.as_slice() {
        // In a message of version 1, the signatures follow the message, which states their number.
        [0x81, count, ..] => {
            let (message, signatures) = transaction.split_at(transaction.len() - usize::from(*count) * 64);
            (signatures, message)
        }
        [count, rest @ ..] => rest.split_at(usize::from(*count) * 64),
        [] => panic!("no bytes"),
    };
    let slots = signatures.as_chunks::<64>().0.iter().zip(signers.as_array().expect("signers"));
    let given = slots.filter(|(signature, signer)| **signature != [0; 64] && *signer != owner);
    let checks = given.map(|(signature, signer)| {
        let account = parse(text(signer)).expect("an address").to_bytes();
        let (signature, message) = (Signature::from_bytes(signature), message.to_vec());
        Box::new(move || {
            let key = VerifyingKey::from_bytes(&black_box(account)).expect("a point");
            _ = black_box(key.verify_strict(&message, &signature));
        }) as Work
    });
    checks.collect()
}

/// Returns the search for the accounts that belong to the order alone. Those of a token's program depend only on the
/// pins.
fn derived(case: &Value) -> Vec<Work> {
    let registry: Value = serde_json::from_str(REGISTRY).expect("JSON");
    let assets = registry["assets"].as_array().expect("assets");
    let asset = assets.iter().find(|asset| asset["id"] == case["request"]["source"]["asset"]).expect("a pinned asset");
    let key = |value: &Value| parse(text(value)).expect("an address");
    let (program, owner) = (key(&asset["htlc"]["address"]), key(&case["request"]["source"]["owner"]).to_bytes());
    let hash = bytes(&case["request"]["secret_hash"]);
    if asset["token"].is_null() {
        return vec![Box::new(move || search(&[b"swap_account", &owner, black_box(&hash)], &program))];
    }
    let mint = key(&asset["token"]["address"]).to_bytes();
    let tokens = if asset["token"]["schema"] == "solana:spltoken_2022" { TOKEN_2022_PROGRAM } else { TOKEN_PROGRAM };
    vec![
        Box::new(move || search(&[&owner, black_box(&hash)], &program)),
        Box::new(move || search(&[&owner, tokens.as_array(), black_box(&mint)], &ASSOCIATED_TOKEN_PROGRAM)),
    ]
}

/// Hashes the seeds with each bump, starting at the highest, until the hash is not a point on the curve.
fn search<const N: usize>(seeds: &[&[u8]; N], program: &Address) {
    let is_point = |account: &Address| VerifyingKey::from_bytes(account.as_array()).is_ok();
    let account = (1..=u8::MAX).rev().map(|bump| Address::derive_address(seeds, Some(bump), program)).find(|account| !is_point(account));
    black_box(account.expect("an account"));
}
