//! Captured request and response bodies, replayed for each family.
use crate::support;

use std::sync::Arc;

use countersign_client::countersign::{AssetId, CreateOrder, Policy, Registry, U256};
use countersign_client::{Api, Client, Flow, Http, QuoteAmount, QuoteRequest, Timeouts};
use serde_json::Value;
use support::{Reply, Server, beside};

/// Family, set, and whether there is a quote.
const SETS: [(&str, u32, bool); 9] = [
    ("bitcoin", 1, true),
    ("evm", 1, true),
    ("evm", 2, false),
    ("solana", 1, true),
    ("solana", 2, false),
    ("starknet", 1, true),
    ("starknet", 2, false),
    ("sui", 1, true),
    ("sui", 2, true),
];

#[tokio::test]
async fn every_captured_order_is_asked_for_and_read_as_it_was() {
    for (family, set, quoted) in SETS {
        // `starknet-*-2` was made with the request of set 1.
        let asked = if (family, set) == ("starknet", 2) { 1 } else { set };
        let capture = |what: &str, set: u32| beside(&format!("captures/{family}-{what}-{set}.json"));
        let Some(request) = capture("create-request", asked) else { return };
        let (response, record) = (capture("create-response", set).unwrap(), capture("order-record", set).unwrap());
        let quote = quoted.then(|| capture("quote", set).unwrap());
        let (posted, looked_up) = (response.clone(), record.clone());
        let server = Server::start(move |seen| {
            Reply::json(
                200,
                match seen.method.as_str() {
                    "POST" => posted.clone(),
                    _ if seen.path() == "/v2/quote" => quote.clone().unwrap(),
                    _ => looked_up.clone(),
                },
            )
        });
        let client = Client::new(Api::new(&server.base, None).unwrap(), Http::new(Timeouts::default()).unwrap());
        let wanted: Value = serde_json::from_str(&request).unwrap();
        let order = CreateOrder::from_json(request.as_bytes()).unwrap();

        if quoted {
            let asset = |side: &str| AssetId::parse(wanted[side]["asset"].as_str().unwrap()).unwrap();
            let amount: U256 = wanted["source"]["amount"].as_str().unwrap().parse().unwrap();
            let quotes = client.quote(&QuoteRequest::new(asset("source"), asset("destination"), QuoteAmount::From(amount))).await.unwrap();
            assert_eq!(quotes.value[0].source.amount, amount, "{family} {set}");
        }
        let created = client.create_order(&order).await.unwrap();
        let body: Value = serde_json::from_slice(&server.seen().pop().unwrap().body).unwrap();
        assert_eq!(body, wanted, "{family} {set}");
        let answer: Value = serde_json::from_str(&response).unwrap();
        assert_eq!(created.value.as_str(), answer["result"]["order_id"].as_str().unwrap());
        assert_eq!(created.body, response.as_bytes());

        let read = client.order(&created.value).await.unwrap();
        let truth: Value = serde_json::from_str(&record).unwrap();
        let truth = &truth["result"];
        for (leg, swap) in [("source_swap", &read.value.source_swap), ("destination_swap", &read.value.destination_swap)] {
            assert_eq!(swap.amount.to_string(), truth[leg]["amount"].as_str().unwrap());
            assert_eq!(swap.secret_hash.to_string(), truth[leg]["secret_hash"].as_str().unwrap());
            assert_eq!(swap.redeem_tx_hash.as_deref().unwrap_or_default(), truth[leg]["redeem_tx_hash"].as_str().unwrap());
            assert_eq!(swap.initiate_block_number.unwrap_or_default().to_string(), truth[leg]["initiate_block_number"].as_str().unwrap());
        }
        assert_eq!(read.value.nonce.as_deref(), truth["nonce"].as_str());
    }
}

/// Captures that were turned into cases of the shared vectors (`*-c001`). Their documents agree, so the flow verifies them completely.
#[tokio::test]
async fn captured_cases_are_verified_over_the_wire() {
    let Some(pins) = beside("vectors/registry.json") else { return };
    let registry = Arc::new(Registry::from_json(pins.as_bytes()).unwrap());
    let mut seen = 0;
    for family in ["evm", "starknet", "solana", "sui", "bitcoin"] {
        let lines = beside(&format!("vectors/{family}.jsonl")).unwrap();
        for line in lines.lines().filter(|line| line.contains("-c00")) {
            let case: Value = serde_json::from_str(line).unwrap();
            if !case["order"].is_object() {
                continue;
            }
            let (response, order) = (case["response"].to_string(), case["order"].clone());
            let server = Server::start(move |seen| match seen.method.as_str() {
                "POST" => Reply::json(200, response.clone()),
                _ if order.get("result").is_some() => Reply::json(200, order.to_string()),
                _ => Reply::ok(&order),
            });
            let client = Client::new(Api::new(&server.base, None).unwrap(), Http::new(Timeouts::default()).unwrap());
            let flow = Flow::new(client, Arc::clone(&registry), Policy::default());
            let order = CreateOrder::from_json(case["request"].to_string().as_bytes()).unwrap();
            let swap = flow.create(order).await.unwrap();
            let verified = flow.verify(&swap).await.unwrap_or_else(|error| panic!("{}: {error:?}", case["id"]));
            assert_eq!(verified.order.order_id(), case["expected"]["order_id"].as_str().unwrap());
            seen += 1;
        }
    }
    assert!(seen >= 4, "only {seen} captured cases");
}
