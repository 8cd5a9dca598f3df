//! Tests that the same seed and the same calls give the same answers.

use std::time::Duration;

use countersign_sandbox::clock::Clock;
use countersign_sandbox::sandbox::{Config, Sandbox};
use serde_json::Value;

use crate::program::request;
use crate::wire::Connection;

/// Returns all answers while orders are created, paid and completed.
async fn told(seed: u64) -> Vec<String> {
    let chains = ["base", "arbitrum", "bitcoin_regtest", "solana", "starknet", "sui", "tron", "litecoin"].map(str::to_owned).to_vec();
    let config = Config { chains, is_manual: true, seed, time: Some(1_795_000_000_000), ..Config::default() };
    let sandbox = Sandbox::start(config).await.unwrap();
    let url = sandbox.service().to_owned();
    let call = |method: &'static str, path: String, body: Value| {
        let url = url.clone();
        async move { tokio::task::spawn_blocking(move || Connection::open(&url).unwrap().service(method, &path, &body).unwrap()).await.unwrap() }
    };
    let mut said = Vec::new();
    let mut wanted = request(1);
    wanted["secret_hash"] = Value::Null;
    let routes = [
        ("arbitrum:eth", "900000000000000"),
        ("solana:sol", "10000000"),
        ("sui:sui", "500000000"),
        ("starknet:strk", "1000000000000000000"),
        ("tron:trx", "5000000"),
    ];
    for (number, (to, amount)) in routes.iter().enumerate() {
        wanted["nonce"] = number.into();
        wanted["destination"]["asset"] = (*to).into();
        wanted["destination"]["amount"] = (*amount).into();
        let chain = sandbox.world.chain_of(to).unwrap();
        let owner = chain.engine().address_of(&countersign_sandbox::accounts::key("user"));
        wanted["destination"]["owner"] = owner.clone().into();
        let created = call("POST", "/v2/orders".to_owned(), wanted.clone()).await;
        let id = created["order_id"].as_str().unwrap().to_owned();
        said.push(created.to_string());
        let order = sandbox.world.ledger.by_id(&id).unwrap();
        said.push(sandbox.world.chain("base").unwrap().engine().lock(&order.source.terms(true)).unwrap());
        for _ in 0..8 {
            sandbox.world.clock.advance(1_000);
            sandbox.world.chains.values().for_each(|chain| chain.engine().mine(2));
            sandbox.step().await;
        }
        let record = call("GET", format!("/v2/orders/{id}"), Value::Null).await;
        assert_ne!(record["destination_swap"]["initiate_tx_hash"], "", "{to}: {:#?}", sandbox.world.lines());
        said.push(record.to_string());
    }
    said.extend(sandbox.world.lines());
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_and_calls_have_the_same_answers() {
    let (first, second) = (told(7).await, told(7).await);
    assert_eq!(first.len(), second.len());
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one, other);
    }
    assert_ne!(first[0], told(8).await[0], "another seed has other orders");
}

#[test]
fn a_fixed_clock_goes_only_when_it_is_turned() {
    let clock = Clock::fixed(1_000);
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(clock.millis(), 1_000);
    clock.advance(500);
    assert_eq!(clock.millis(), 1_500);
}
