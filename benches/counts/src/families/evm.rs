//! EVM and Tron: ECDSA on secp256k1, with libsecp256k1.

use std::hint::black_box;

use countersign::evm::alloy_primitives::keccak256;
use secp256k1::{All, Message, PublicKey, Secp256k1, SecretKey};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::floor::{Work, artefacts, bytes, bytes32, sha256};

/// Signs digests. Each signature must appear in an expected text.
struct Signer {
    secp: Secp256k1<All>,
    key: SecretKey,
}

impl Signer {
    fn new(case: &Value) -> Self {
        let key = SecretKey::from_slice(&bytes32(&case["wallet"]["secret_key"])).expect("a key");
        Self { secp: Secp256k1::new(), key }
    }

    fn account(&self) -> Work {
        let (secp, key) = (self.secp.clone(), self.key);
        Box::new(move || {
            let [_, point @ ..] = PublicKey::from_secret_key(&secp, &black_box(key)).serialize_uncompressed();
            black_box(keccak256(point));
        })
    }

    fn sign(&self, digest: [u8; 32], expected: &Value) -> Work {
        let (secp, key, message) = (self.secp.clone(), self.key, Message::from_digest(digest));
        let (_, signature) = secp.sign_ecdsa_recoverable(&message, &key).serialize_compact();
        let expected = hex::encode(bytes(expected));
        // RLP encodes numbers without leading zeros.
        let is_expected = signature.chunks(32).all(|number| expected.contains(hex::encode(number).trim_start_matches("00")));
        assert!(is_expected, "another signature than {expected}");
        Box::new(move || _ = black_box(secp.sign_ecdsa_recoverable(&black_box(message), &key)))
    }
}

fn keccak(bytes: Vec<u8>) -> Work {
    Box::new(move || _ = black_box(keccak256(black_box(&bytes))))
}

pub(super) fn evm(case: &Value) -> Vec<Work> {
    floor(case, |signer, call| {
        let (payload, signed) = (bytes(&call["signing_payload"]), bytes(&call["signed"]));
        let digest = keccak256(&payload).0;
        assert_eq!(digest, bytes32(&call["signing_hash"]));
        vec![keccak(payload), signer.sign(digest, &call["signed"]), keccak(signed)]
    })
}

pub(super) fn tron(case: &Value) -> Vec<Work> {
    floor(case, |signer, call| {
        // The transaction id is the signed hash.
        let raw = bytes(&call["raw_data"]);
        let digest = Sha256::digest(&raw).into();
        assert_eq!(digest, bytes32(&call["tx_id"]));
        vec![sha256(raw), signer.sign(digest, &call["signature"])]
    })
}

fn floor(case: &Value, call: impl Fn(&Signer, &Value) -> Vec<Work>) -> Vec<Work> {
    let signer = Signer::new(case);
    let mut floor = vec![signer.account()];
    for (name, artefact) in artefacts(case) {
        floor.extend(if name == "typed_data" { message(&signer, artefact) } else { call(&signer, artefact) });
    }
    floor
}

/// Returns the hashing and signing of a message. The domain separator depends only on the pins. The struct has a type
/// hash and four members.
fn message(signer: &Signer, artefact: &Value) -> Vec<Work> {
    let [separator, hash, digest] = ["domain_separator", "struct_hash", "digest"].map(|name| bytes32(&artefact[name]));
    let prefixed = [&[0x19, 0x01][..], &separator, &hash].concat();
    assert_eq!(keccak256(&prefixed), digest);
    vec![keccak(vec![1; 5 * 32]), keccak(prefixed), signer.sign(digest, &artefact["signature"])]
}
