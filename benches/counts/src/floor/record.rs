//! The parts that all families share: addresses with a checksum, and the ids that a record gives to both swaps.

use std::hint::black_box;

use countersign::Registry;
use countersign::evm::alloy_primitives::keccak256;
use serde_json::Value;

use super::{Work, bytes32, sha256, text};
use crate::families;

pub(super) fn floor(case: &Value, registry: &Registry) -> Vec<Work> {
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
        let family = registry.family(text(&swap["chain"])).expect("a pinned chain");
        floor.push((families::of(family).swap_id)(bytes32(&request["secret_hash"])));
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
