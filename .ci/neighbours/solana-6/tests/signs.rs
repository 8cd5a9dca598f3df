//! The fixtures, signed and matched in the types of solana-transaction 6.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::solana::TxContext;
use countersign::{CreateOrder, Policy, Proposal, Registry, Role};
use countersign_beside_solana_6::{messages, natives, sign};
use serde_json::Value;
use solana_keypair::Keypair;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fixtures");

#[test]
fn fixtures_give_their_artefacts() {
    let read = |path: &str| std::fs::read_to_string(format!("{FIXTURES}/{path}")).unwrap();
    let registry = Registry::from_json(read("registry.json").as_bytes()).unwrap();
    let mut checked = 0;
    for line in read("accept/solana.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let own = &case["expect"]["artefacts"]["transaction"];
        // A key of 64 bytes; the other cases have a seed, or none.
        let key = case["wallet"]["secret_key"].as_str().filter(|key| key.len() > 80);
        let (Some(key), Some(signed)) = (key, own["signed"].as_str()) else { continue };
        let request = CreateOrder::from_json(case["request"].to_string().as_bytes()).unwrap();
        let response = case["response"].to_string();
        let order = countersign::solana::verify(Proposal::new(&request, response.as_bytes()), &registry, &Policy::default()).unwrap();
        let context = match case["wallet"]["recent_blockhash"].as_str() {
            Some(hash) => TxContext::new().with_blockhash(hash.parse().unwrap()),
            None => TxContext::new(),
        };
        let asked = messages(&order.prepare(context.clone()).unwrap());
        assert_eq!(STANDARD.encode(asked[0].serialize()), own["message"].as_str().unwrap());
        let natives = natives(&sign(&order, context, &Keypair::from_base58_string(key)).unwrap());
        assert_eq!(natives.len(), 1);
        assert_eq!(STANDARD.encode(wincode::serialize(&natives[0]).unwrap()), signed);
        assert_eq!(order.matches(&natives[0]).unwrap(), Role::Initiate, "{}", case["id"]);
        checked += 1;
    }
    assert!(checked > 30, "{checked} of the fixtures are signed");
}
