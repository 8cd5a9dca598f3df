//! Recoveries with wallet contexts that prepare them.

use countersign::recover::{self, Leg, Recovery};
use countersign::{FAMILIES, OrderRecord, Policy, Refusal, Unsigned};
use countersign_core::json::{self, Cursor};
use countersign_json::prepare_recovery;
use countersign_testkit::lines::accepted_case;
use countersign_testkit::registry;
use serde_json::{Value, json};

/// Returns a recovery of each built family, and a wallet context that prepares it.
pub(crate) fn recoveries() -> Vec<(Recovery, Value)> {
    let cases = [
        ("evm-record-evm-v1", json!({ "gas_limit": 300_000, "chain_id": 1 })),
        ("tron-record-evm-v2", json!({ "fee_limit": 100_000_000 })),
        ("starknet-record-evm-v2", json!({})),
        (
            "solana-record-token",
            json!({
                "recent_blockhash": "11111111111111111111111111111111",
                "rent_sponsor": "11111111111111111111111111111111",
                "config": { "compute_unit_limit": 100_000, "loaded_accounts_data_size_limit": 65_536, "priority_fee": 5, "heap_size": 65_536 },
            }),
        ),
        ("sui-record-evm", json!({ "function_names": "older" })),
        (
            "bitcoin-delegate",
            json!({ "funding": [format!("{}:0:50000", "ab".repeat(32))], "fee_rate": "2", "to": "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx" }),
        ),
    ];
    let built = cases.into_iter().filter(|(id, _)| FAMILIES.iter().any(|family| id.starts_with(family.name())));
    let prepared = built.map(|(id, more)| {
        let case = accepted_case(id).json();
        let record = OrderRecord::from_json(case["order"].to_string().as_bytes()).unwrap();
        let mut wallet = if id.starts_with("bitcoin") { json!({}) } else { case["wallet"].clone() };
        for (name, value) in more.as_object().unwrap() {
            wallet[name] = value.clone();
        }
        let recovery = recover::refund(&record, Leg::Source, registry()).unwrap();
        if !id.starts_with("bitcoin") {
            wallet["sender"] = case["request"]["source"]["owner"].clone();
        }
        (recovery, wallet)
    });
    prepared.collect()
}

/// Prepares a recovery with the text of a context.
pub(crate) fn prepare(recovery: &Recovery, wallet: &str) -> Result<Unsigned, Refusal> {
    let value = json::parse(wallet.as_bytes()).map_err(|refusal| refusal.with_prefix("/wallet"))?;
    prepare_recovery(recovery, Cursor::root(&value, "/wallet"), &Policy::default())
}
