//! Starknet: Poseidon and the Stark curve, with pathfinder-crypto.

use std::hint::black_box;

use countersign::starknet::Felt;
use pathfinder_crypto::hash::PoseidonHasher;
use pathfinder_crypto::signature::ecdsa_sign_k;
use pathfinder_crypto::{Felt as PathfinderFelt, MontFelt};
use serde_json::Value;
use starknet_crypto::rfc6979_generate_k;

use crate::floor::{Work, artefacts, text};

fn felt(value: &Value) -> Felt {
    Felt::from_hex(text(value)).expect("a felt")
}

/// Returns the hashing of felts that are already in the library's form.
pub(super) fn poseidon(felts: Vec<Felt>) -> Work {
    let felts: Vec<_> = felts.iter().map(|felt| MontFelt::from_raw(felt.to_raw_reversed())).collect();
    Box::new(move || _ = black_box(black_box(&felts).iter().fold(PoseidonHasher::new(), |hasher, felt| hasher.chain(*felt)).finish()))
}

pub(super) fn floor(case: &Value) -> Vec<Work> {
    let key = felt(&case["wallet"]["secret_key"]);
    let mut floor = Vec::new();
    // Each hash has a fixed number of felts, except that of the calldata. Their values do not matter.
    let hash = |len| poseidon(vec![Felt::ONE; len]);
    for (name, artefact) in artefacts(case) {
        let hashed = if name == "typed_data" {
            // The amount, the eight words of the secret hash, the struct, and the message. The domain depends only on
            // the pins.
            floor.extend([3, 8, 5, 4].map(hash));
            &artefact["message_hash"]
        } else {
            let calldata = artefact["calldata"].as_array().expect("calldata").iter().map(felt).collect();
            floor.push(poseidon(calldata));
            // The fees and the transaction. The hash of an empty list is known.
            floor.extend([4, 10].map(hash));
            &artefact["tx_hash"]
        };
        floor.push(sign(key, felt(hashed), &artefact["signature"]));
    }
    floor
}

fn sign(key: Felt, hash: Felt, expected: &Value) -> Work {
    let native = |felt: Felt| PathfinderFelt::from_be_bytes(felt.to_bytes_be()).expect("a felt");
    let make = move |hash: Felt| {
        let nonce = rfc6979_generate_k(&hash, &key, None);
        ecdsa_sign_k(native(key), native(hash), native(nonce)).expect("a signature")
    };
    let (r, _) = make(hash);
    // If a nonce begins with a zero byte, starknet.js derives another one, and its signature is the expected one. The
    // cost is the same.
    let is_expected = Felt::from_bytes_be(r.as_be_bytes()) == felt(&expected[0]);
    assert!(is_expected || rfc6979_generate_k(&hash, &key, None) < Felt::TWO.pow(248_u32), "another signature than {expected}");
    Box::new(move || _ = black_box(make(black_box(hash))))
}
