//! Interfaces of Starknet contracts, in the form of their classes' ABI.

use countersign_core::StarknetGeneration;
use serde_json::{Value as Json, json};

const ADDRESS: &str = "core::starknet::contract_address::ContractAddress";
const FELTS: &str = "core::array::Array::<core::felt252>";

fn function(name: &str, inputs: &[&str], outputs: &[&str]) -> Json {
    let typed = |kinds: &[&str]| kinds.iter().map(|kind| json!({ "name": "x", "type": kind })).collect::<Vec<_>>();
    json!({ "type": "function", "name": name, "inputs": typed(inputs), "outputs": typed(outputs), "state_mutability": "view" })
}

/// Returns the interface of a generation whose interface is known, in the form of a class's ABI.
pub fn abi(generation: &'static StarknetGeneration) -> Json {
    let (hash, secret) = if generation == StarknetGeneration::CLIENT_3_1_3 {
        ("[core::integer::u128; 2]", "[core::integer::u32; 8]")
    } else {
        ("[core::integer::u32; 8]", "core::array::Array::<core::integer::u32>")
    };
    let terms = [ADDRESS, "core::integer::u128", "core::integer::u256", hash];
    let on_behalf = [&[ADDRESS], &terms[..]].concat();
    let mut items = vec![
        function("token", &[], &[ADDRESS]),
        function("initiate", &terms, &[]),
        function("initiate_on_behalf", &on_behalf, &[]),
        function("initiate_with_signature", &[&on_behalf[..], &[FELTS]].concat(), &[]),
        function("redeem", &["core::felt252", secret], &[]),
        function("refund", &["core::felt252"], &[]),
        function("instant_refund", &["core::felt252", FELTS], &[]),
    ];
    let mut entries = Vec::new();
    if generation != StarknetGeneration::FEBRUARY_2025 {
        items.push(function("get_order", &["core::felt252"], &["htlc::Order"]));
        items.push(function("initiate_with_destination_data", &[&terms[..], &[FELTS]].concat(), &[]));
        items.push(function("initiate_on_behalf_with_destination_data", &[&on_behalf[..], &[FELTS]].concat(), &[]));
        let member = |(name, kind): (&str, &str)| json!({ "name": name, "type": kind });
        let members = [
            ("fulfilled_at", "core::integer::u128"),
            ("initiator", ADDRESS),
            ("redeemer", ADDRESS),
            ("initiated_at", "core::integer::u128"),
            ("timelock", "core::integer::u128"),
            ("amount", "core::integer::u256"),
        ];
        entries.push(json!({ "type": "struct", "name": "htlc::Order", "members": members.map(member) }));
    }
    entries.push(json!({ "type": "interface", "name": "htlc::IHTLC", "items": items }));
    json!(entries)
}
