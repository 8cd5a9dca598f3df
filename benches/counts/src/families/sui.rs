//! Sui: BLAKE2b with `sui-sdk-types`, and signatures of its three schemes with `ed25519-dalek` and `sui-crypto`.

use std::hint::black_box;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use countersign::sui::sui_sdk_types::hash::Hasher;
use countersign::sui::sui_sdk_types::{Secp256k1Signature, Secp256r1Signature};
use ed25519_dalek::SigningKey;
use serde_json::Value;
use sui_crypto::Signer as _;
use sui_crypto::secp256k1::Secp256k1PrivateKey;
use sui_crypto::secp256r1::Secp256r1PrivateKey;

use crate::floor::{Work, artefacts, bytes32, text};

pub(super) fn floor(case: &Value) -> Vec<Work> {
    let secret = text(&case["wallet"]["secret_key"]);
    let (flag, seed) = match CheckedHrpstring::new::<Bech32>(secret) {
        Ok(parsed) => {
            let bytes: Vec<_> = parsed.byte_iter().collect();
            (bytes[0], bytes[1..].try_into().expect("32 bytes"))
        }
        Err(_) => (0, bytes32(&case["wallet"]["secret_key"])),
    };
    let mut floor = Vec::new();
    for (_, artefact) in artefacts(case) {
        let data = STANDARD.decode(text(&artefact["transaction_data"])).expect("base64");
        // Three bytes of intent, or the name of the type.
        let (signing, id) = ([&[0; 3][..], &data].concat(), [b"TransactionData::", &data[..]].concat());
        let digest = blake2b(&signing);
        assert_eq!(digest, bytes32(&artefact["signing_digest"]));
        floor.extend([signing, id].map(|bytes| Box::new(move || _ = black_box(blake2b(black_box(&bytes)))) as Work));
        let signature = STANDARD.decode(text(&artefact["signature"])).expect("base64");
        floor.extend(sign(flag, seed, digest, &signature));
    }
    floor
}

fn blake2b(bytes: &[u8]) -> [u8; 32] {
    Hasher::digest(bytes).into_inner()
}

/// Returns the derivation of a key's account, and its signature.
fn sign(flag: u8, seed: [u8; 32], digest: [u8; 32], expected: &[u8]) -> [Work; 2] {
    assert_eq!(expected[0], flag, "another scheme");
    let account = |point: &[u8]| _ = black_box(blake2b(&[&[0], point].concat()));
    match flag {
        0 => {
            let key = SigningKey::from_bytes(&seed);
            assert_eq!(key.sign(&digest).to_bytes(), expected[1..65]);
            [
                Box::new(move || account(SigningKey::from_bytes(&black_box(seed)).verifying_key().as_bytes())),
                Box::new(move || _ = black_box(key.sign(black_box(&digest)))),
            ]
        }
        1 => {
            let key = Secp256k1PrivateKey::new(seed).expect("a key");
            [
                Box::new(move || account(Secp256k1PrivateKey::new(black_box(seed)).expect("a key").public_key().inner())),
                Box::new(move || _ = black_box::<Secp256k1Signature>(key.try_sign(black_box(&digest)).expect("a signature"))),
            ]
        }
        _ => {
            let key = Secp256r1PrivateKey::new(seed);
            [
                Box::new(move || account(Secp256r1PrivateKey::new(black_box(seed)).public_key().inner())),
                Box::new(move || _ = black_box::<Secp256r1Signature>(key.try_sign(black_box(&digest)).expect("a signature"))),
            ]
        }
    }
}
