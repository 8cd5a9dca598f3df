//! The parts that all families share: addresses with a checksum, and the ids that a record gives to both swaps.

use std::hint::black_box;

use countersign::chains::taproot::{Htlc, InternalKey};
use countersign::evm::alloy_primitives::keccak256;
use serde_json::Value;

use super::{Work, bytes32, sha256, starknet, text};

pub(super) fn floor(case: &Value) -> Vec<Work> {
    let mut floor: Vec<Work> = Vec::new();
    let request = &case["request"];
    floor.extend(["source", "destination"].iter().filter_map(|side| checksum(text(&request[side]["owner"]))));
    let record = &case["order"];
    if record.is_null() {
        return floor;
    }
    // The other party of each swap. The owner's own addresses come from the request.
    let others = [&record["source_swap"]["redeemer"], &record["destination_swap"]["initiator"]];
    floor.extend(others.into_iter().filter_map(|other| checksum(text(other))));
    for swap in [&record["source_swap"], &record["destination_swap"]] {
        // Each formula hashes a fixed number of bytes or felts. Their values do not matter.
        match text(&swap["chain"]).split('_').next().expect("a name") {
            "bitcoin" | "litecoin" => floor.push(taproot(bytes32(&request["secret_hash"]))),
            "starknet" => floor.push(starknet::poseidon(vec![countersign::starknet::Felt::ONE; 15])),
            "solana" => floor.push(sha256(vec![1; 96])),
            "sui" => floor.push(sha256(vec![1; 200])),
            _ => floor.push(sha256(vec![1; 224])),
        }
    }
    floor
}

/// Returns the hash that computes an address's checksum, or `None` if there is none.
fn checksum(address: &str) -> Option<Work> {
    if let Some(digits) = address.strip_prefix("0x").filter(|digits| digits.len() == 40) {
        let (mixed, digits) = (digits.bytes().any(|byte| byte.is_ascii_uppercase()), digits.to_lowercase());
        return mixed.then(|| Box::new(move || _ = black_box(keccak256(black_box(&digits)))) as Work);
    }
    let is_tron = address.len() == 34 && address.starts_with('T');
    is_tron.then(|| Box::new(|| [21, 32].iter().for_each(|len| sha256(vec![1; *len])())) as Work)
}

/// Returns the work for a taproot output: the points of both parties, three leaves, two branches, and the tweak of a
/// known internal key.
fn taproot(secret_hash: [u8; 32]) -> Work {
    // The point of BIP-341 without a known secret key, and the generator.
    let [point, key] = [
        "50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0",
        "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    ]
    .map(|digits| hex::decode(digits).expect("hex").try_into().expect("32 bytes"));
    let htlc = Htlc { internal_key: point, initiator: key, redeemer: point, secret_hash, timelock: 144 };
    let internal = InternalKey::lift(point).expect("a point");
    Box::new(move || {
        let htlc = black_box(htlc);
        black_box([htlc.initiator, htlc.redeemer].map(InternalKey::lift));
        black_box(htlc.output_under(&internal).expect("an output"));
    })
}
