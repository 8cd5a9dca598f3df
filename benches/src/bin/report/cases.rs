//! Selects the orders that are signed: every fixture of each family that the SDKs can sign without changes.

use std::fs;
use std::path::{Path, PathBuf};

use countersign::FAMILIES;
use countersign_benches::{input_of, read_cases, target};
use serde_json::Value;

use crate::{HERE, Outcome, say};

/// The orders of one family, in a file that all contenders read.
pub(crate) struct Cases {
    pub(crate) family: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) lines: Vec<String>,
}

/// The largest integer that a JavaScript number represents exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Returns why an order is left out for all contenders, if it is.
fn left_out(case: &Value) -> Option<&'static str> {
    if case["wallet"]["secret_key"].is_null() {
        return Some("nothing to sign");
    }
    if has_unsafe_integer(&case["response"]) {
        return Some("integers that JSON.parse rounds");
    }
    // No SDK has these options of ours.
    if !case["wallet"]["order"].is_null() {
        return Some("coins in an order of our own");
    }
    // The TronWeb methods that the benches use cannot set `Permission_id`.
    if ["permission", "permission_id"].iter().any(|member| !case["wallet"][member].is_null()) {
        return Some("permission that TronWeb's calls do not name");
    }
    match case["id"].as_str() {
        // Only a wallet that verifies notices that a slot is already signed, and keeps the blockhash.
        Some("solana-native-slot-owner") => Some("signed already"),
        // The `s` of these signatures is above half the group order. The chain requires the lower value, but
        // sui-crypto does not change it.
        Some("sui-secp256r1-third" | "sui-secp256r1-fourth") => Some("signature that sui-crypto does not normalise"),
        // This nonce begins with a zero byte. There, starknet-rs derives another nonce than starknet.js, which our
        // signatures follow. Both signatures are valid.
        Some("starknet-captured-2025-07") => Some("nonce that starknet-rs derives in another way"),
        Some(id) if id.starts_with("solana-v1-") => Some("messages of version 1, which @solana/web3.js does not read"),
        Some(id) if id.starts_with("sui-balance") => Some("funds of an address balance, which the peers' code here does not name"),
        _ => None,
    }
}

fn has_unsafe_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_none_or(|number| number > MAX_SAFE_INTEGER),
        Value::Array(items) => items.iter().any(has_unsafe_integer),
        Value::Object(members) => members.values().any(has_unsafe_integer),
        _ => false,
    }
}

/// Writes the orders of each family to a file.
pub(crate) fn select() -> Outcome<Vec<Cases>> {
    let folder = target().join("orders");
    fs::create_dir_all(&folder)?;
    let mut all = Vec::new();
    for family in FAMILIES.iter().map(|family| family.name()) {
        let fixtures = Path::new(HERE).join("../fixtures/accept").join(format!("{family}.jsonl"));
        let (mut lines, mut reasons) = (Vec::new(), std::collections::BTreeMap::<_, u32>::new());
        for line in read_cases(&fixtures.display().to_string()).iter().map(|line| input_of(line)) {
            match left_out(&serde_json::from_str(&line)?) {
                Some(reason) => *reasons.entry(reason).or_default() += 1,
                None => lines.push(line),
            }
        }
        let file = folder.join(format!("{family}.jsonl"));
        fs::write(&file, lines.join("\n") + "\n")?;
        let reasons: Vec<_> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        say(&format!(
            "{family}: {} orders; left out: {}",
            lines.len(),
            if reasons.is_empty() { "none".into() } else { reasons.join(", ") }
        ));
        all.push(Cases { family, file, lines });
    }
    Ok(all)
}
