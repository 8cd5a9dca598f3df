//! Tests what existing clients of the service rely on beyond its documented interface.
#![cfg(test)]
#![allow(missing_docs, reason = "a test ends by panicking")]

use std::sync::Arc;

use countersign_sandbox::accounts::{self, key};
use countersign_sandbox::chains::{Nodes, engines};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::http::{Reply, Request};
use countersign_sandbox::ledger::Ledger;
use countersign_sandbox::service;
use countersign_sandbox::solver::Solver;
use countersign_sandbox::world::{Settings, World};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn world(chains: &[&str]) -> World {
    let clock = Arc::new(Clock::default());
    let names: Vec<_> = chains.iter().map(|name| (*name).to_owned()).collect();
    let world = World::new(engines(&names, &clock, &Nodes::default()).unwrap(), Ledger::default(), clock, 1);
    for chain in world.chains.values() {
        let mut engine = chain.engine();
        let user = engine.address_of(&key(accounts::USER));
        for asset in &chain.listing.assets {
            engine
                .fund(&user, asset["id"].as_str().unwrap(), 10_u128.pow(21))
                .or_else(|_| engine.fund(&user, asset["id"].as_str().unwrap(), 10_u128.pow(12)))
                .unwrap();
        }
        engine.mine(1);
    }
    world
}

fn call(world: &World, method: &str, target: &str, body: &Value) -> Reply {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let headers = vec![("service-app-id".to_owned(), "wallet".to_owned())];
    let request = Request { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers, body };
    service::answer(world, &request)
}

fn ok(reply: &Reply) -> Value {
    let value: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((reply.status, &value["status"]), (200, &json!("Ok")), "{value}");
    value["result"].clone()
}

fn refused(reply: &Reply) -> String {
    let value: Value = serde_json::from_slice(&reply.body).unwrap();
    assert!(reply.status >= 400 && value["status"] == "Error", "{value}");
    value["error"].as_str().unwrap().to_owned()
}

fn owner(world: &World, chain: &str) -> String {
    world.chain(chain).unwrap().engine().address_of(&key(accounts::USER))
}

fn order(world: &World, from: &str, to: &str, amounts: [&str; 2]) -> Value {
    let chain = |asset: &str| asset.split_once(':').unwrap().0.to_owned();
    json!({
        "source": { "asset": from, "owner": owner(world, &chain(from)), "amount": amounts[0], "delegate": null },
        "destination": { "asset": to, "owner": owner(world, &chain(to)), "amount": amounts[1], "delegate": null },
        "nonce": 1_795_000_000_123_u64, "slippage": 0, "solver_id": "", "affiliate_fees": null, "something": { "unknown": [] },
    })
}

fn run(world: &World, solver: &mut Solver, steps: usize) {
    for _ in 0..steps {
        world.tick();
        solver.step(world).unwrap();
    }
}

#[test]
fn members_that_clients_tell_kinds_by_are_present() {
    let world = world(&["base", "arbitrum", "solana"]);
    let token = ok(&call(&world, "POST", "/v2/orders", &order(&world, "base:usdc", "arbitrum:eth", ["4000000", "900000000000000"])));
    assert_eq!(token["order_id"].as_str().unwrap().len(), 64);
    for name in ["to", "value", "data", "gas_limit", "chain_id"] {
        assert!(!token["initiate_transaction"][name].is_null(), "{name}");
    }
    assert_eq!(token["initiate_transaction"]["chain_id"], 8_453);
    assert_eq!(token["typed_data"]["primaryType"], "Initiate");
    let native = ok(&call(&world, "POST", "/v2/orders", &order(&world, "base:eth", "arbitrum:usdc", ["1000000000000000", "3900000"])));
    assert!(native.as_object().unwrap().contains_key("typed_data") && native["typed_data"].is_null());
    let tokens = ok(&call(&world, "POST", "/v2/orders", &order(&world, "solana:usdc", "arbitrum:eth", ["4000000", "900000000000000"])));
    assert!(tokens["versioned_tx"].is_string() && tokens["versioned_tx_gasless"].is_string());
    let coins = ok(&call(&world, "POST", "/v2/orders", &order(&world, "solana:sol", "arbitrum:eth", ["50000000", "900000000000000"])));
    assert!(coins["versioned_tx_gasless"].is_null() && coins.as_object().unwrap().contains_key("versioned_tx_gasless"));
}

#[test]
fn a_request_that_comes_again_makes_no_second_order() {
    let world = world(&["base", "arbitrum"]);
    let request = order(&world, "base:usdc", "arbitrum:eth", ["4000000", "900000000000000"]);
    let first = ok(&call(&world, "POST", "/v2/orders", &request));
    assert_eq!(ok(&call(&world, "POST", "/v2/orders", &request)), first);
    assert_eq!(world.ledger.count(), 1);
    let mut other = request;
    other["nonce"] = json!("7");
    assert_ne!(ok(&call(&world, "POST", "/v2/orders", &other))["order_id"], first["order_id"]);
}

#[test]
fn a_record_begins_empty_and_lists_find_it() {
    let world = world(&["base", "arbitrum"]);
    let created = ok(&call(&world, "POST", "/v2/orders", &order(&world, "base:usdc", "arbitrum:eth", ["4000000", "900000000000000"])));
    let id = created["order_id"].as_str().unwrap();
    let record = ok(&call(&world, "GET", &format!("/v2/orders/{id}"), &Value::Null));
    assert_eq!(record["nonce"], "1795000000123");
    assert_eq!(record["integrator"], "wallet");
    assert_eq!(record["source_swap"]["secret_hash"], record["destination_swap"]["secret_hash"]);
    assert!(record["created_at"].as_str().unwrap().ends_with('Z'));
    let mine = owner(&world, "base").to_uppercase().replace("0X", "0x");
    for (query, found) in [
        (format!("from_owner={mine}&status=pending,completed"), 1),
        ("status=completed".to_owned(), 0),
        ("status=all&from_chain=base&to_chain=arbitrum".to_owned(), 1),
        ("from_chain=arbitrum".to_owned(), 0),
        ("from_owner=0xnobody".to_owned(), 0),
    ] {
        let page = ok(&call(&world, "GET", &format!("/v2/orders?{query}"), &Value::Null));
        assert_eq!(
            (page["total_items"].as_u64(), page["data"].as_array().unwrap().len()),
            (Some(found), usize::try_from(found).unwrap()),
            "{query}"
        );
        assert!(page["page"] == 1 && page["per_page"] == 10);
    }
    let page = ok(&call(&world, "GET", "/v2/orders?page=2&per_page=1", &Value::Null));
    assert!(page["data"].as_array().unwrap().is_empty() && page["total_pages"] == 1);
}

#[test]
fn the_service_keeps_the_secret_of_a_request_without_a_hash_and_redeems() {
    let world = world(&["solana", "arbitrum"]);
    let mut solver = Solver::default();
    let created = ok(&call(&world, "POST", "/v2/orders", &order(&world, "solana:sol", "arbitrum:eth", ["50000000", "900000000000000"])));
    let id = created["order_id"].as_str().unwrap();
    // The source's engine pays as the user of the order.
    let order = world.ledger.by_id(id).unwrap();
    world.chain("solana").unwrap().engine().lock(&order.source.terms(true)).unwrap();
    run(&world, &mut solver, 60);
    let record = ok(&call(&world, "GET", &format!("/v2/orders/{id}"), &Value::Null));
    for (leg, name) in
        [("source_swap", "initiate"), ("destination_swap", "initiate"), ("destination_swap", "redeem"), ("source_swap", "redeem")]
    {
        assert_ne!(record[leg][format!("{name}_tx_hash")], "", "{leg} {name}: {:#?}", world.lines());
        assert_ne!(record[leg][format!("{name}_block_number")], "0");
    }
    let secret = hex::decode(record["destination_swap"]["secret"].as_str().unwrap()).unwrap();
    assert_eq!(record["source_swap"]["secret_hash"], hex::encode(Sha256::digest(secret)));
    assert_eq!(ok(&call(&world, "GET", "/v2/volume", &Value::Null)), "10");
}

#[test]
fn what_is_wrong_is_said() {
    let world = world(&["base", "arbitrum"]);
    let good = order(&world, "base:usdc", "arbitrum:eth", ["4000000", "900000000000000"]);
    let changed = |place: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(place).unwrap() = value;
        refused(&call(&world, "POST", "/v2/orders", &changed))
    };
    assert!(changed("/source/asset", json!("base:doge")).contains("unknown asset"));
    assert!(changed("/source/asset", json!("moon:usdc")).contains("unknown chain"));
    assert!(changed("/source/amount", json!("0")).contains("out of range"));
    assert!(changed("/source/amount", json!("1.5")).contains("not a number"));
    assert!(changed("/destination/amount", json!("900000000000000000")).contains("more than the source pays for"));
    assert!(changed("/source/owner", json!("0x12")).len() > 5);
    assert!(changed("/destination/owner", Value::Null).contains("owner is missing"));
    for body in ["", "[]", "null", "{", "{\"source\": 7}"] {
        let request =
            Request { method: "POST".into(), path: "/v2/orders".into(), query: String::new(), headers: Vec::new(), body: body.into() };
        refused(&service::answer(&world, &request));
    }
    assert_eq!(call(&world, "GET", "/v2/orders/00", &Value::Null).status, 404);
    assert_eq!(call(&world, "DELETE", "/v2/orders", &Value::Null).status, 405);
    assert_eq!(call(&world, "GET", "/v2/nothing", &Value::Null).status, 404);
    assert!(refused(&call(&world, "GET", "/v2/quote?from=base:usdc&to=arbitrum:eth", &Value::Null)).contains("from_amount"));
    assert_eq!(world.ledger.count(), 0);
}

#[test]
fn a_quote_keeps_thirty_basis_points_in_both_directions() {
    let world = world(&["base", "arbitrum"]);
    let there = ok(&call(&world, "GET", "/v2/quote?from=base:usdc&to=arbitrum:eth&from_amount=4000000000", &Value::Null));
    assert_eq!(there[0]["destination"]["amount"], "997000000000000000");
    assert_eq!(there[0]["destination"]["display"], "0.997000000000000000");
    assert_eq!(there[0]["source"]["value"], "4000.0000");
    let back = ok(&call(&world, "GET", "/v2/quote?from=base:usdc&to=arbitrum:eth&to_amount=997000000000000000", &Value::Null));
    assert_eq!(back[0]["source"]["amount"], "4000000000");
}

#[test]
fn typed_data_and_approvals_can_be_left_out() {
    let world = world(&["base", "ethereum", "tron", "starknet"]);
    let made = |settings: Settings, from: &str, to: &str, amounts: [&str; 2]| {
        world.set(settings);
        let mut request = order(&world, from, to, amounts);
        request["nonce"] = json!(world.ledger.count());
        ok(&call(&world, "POST", "/v2/orders", &request))
    };
    let routes = [
        ("base:usdc", ["4000000", "1000"], "ethereum:eth"),
        // This token allows raising an allowance only from zero.
        ("ethereum:usdt", ["4000000", "1000"], "base:usdc"),
        ("tron:usdt", ["4000000", "1000"], "base:usdc"),
        ("starknet:strk", ["100000000000000000000", "1000"], "base:usdc"),
    ];
    for (from, amounts, to) in routes {
        let honest = made(Settings::default(), from, to, amounts);
        assert!(honest["typed_data"].is_object() && honest["approval_transaction"].is_object(), "{from}: {honest}");
        let bare = made(Settings { no_typed_data: true, ..Settings::default() }, from, to, amounts);
        assert!(bare["typed_data"].is_null() && bare.as_object().unwrap().contains_key("typed_data"));
        assert!(bare["approval_transaction"].is_object() && bare["initiate_transaction"].is_object());
        let allowed = made(Settings { no_approval: true, ..Settings::default() }, from, to, amounts);
        assert!(allowed["typed_data"].is_object());
        assert_eq!(allowed["approval_transaction"].is_null(), !from.starts_with("starknet"), "{from}");
    }
}

#[test]
fn a_solver_with_a_pace_lets_clients_see_each_state() {
    let clock = Arc::new(Clock::fixed(1_795_000_000_000));
    let names = ["bitcoin_regtest", "arbitrum"].map(str::to_owned);
    let world = World::new(engines(&names, &clock, &Nodes::default()).unwrap(), Ledger::default(), Arc::clone(&clock), 1);
    world.set(Settings { pace: 5_000, ..Settings::default() });
    let mut solver = Solver::default();
    let created =
        ok(&call(&world, "POST", "/v2/orders", &order(&world, "bitcoin_regtest:btc", "arbitrum:eth", ["50000", "9000000000000000"])));
    let id = created["order_id"].as_str().unwrap();
    let terms = world.ledger.by_id(id).unwrap().source.terms(true);
    world.chain("bitcoin_regtest").unwrap().engine().lock(&terms).unwrap();
    // Returns whether both sides are paid and redeemed. Each step must happen at the pace and not earlier.
    let mut seen = |advance: u64| {
        clock.advance(advance);
        run(&world, &mut solver, 20);
        let order = world.ledger.by_id(id).unwrap();
        [&order.source.initiated, &order.destination.initiated, &order.destination.redeemed, &order.source.redeemed].map(Option::is_some)
    };
    assert_eq!(seen(0), [true, false, false, false]);
    assert_eq!(seen(4_999), [true, false, false, false]);
    let hashes = ok(&call(&world, "GET", &format!("/v2/orders/{id}/instant-refund-hash"), &Value::Null));
    assert_eq!(hashes[0].as_str().unwrap().len(), 64, "an instant refund can be signed");
    assert_eq!(seen(1), [true, true, false, false]);
    // The service holds the secret.
    assert_eq!(seen(4_999), [true, true, false, false]);
    assert_eq!(seen(1), [true, true, true, false]);
    assert_eq!(seen(4_999), [true, true, true, false]);
    assert_eq!(seen(1), [true; 4]);
}

#[test]
fn a_model_says_so_in_every_answer() {
    let world = world(&["base", "starknet", "starknet_devnet", "sui", "sui_testnet"]);
    for (name, chain) in &world.chains {
        for (method, path) in [("POST", "/"), ("GET", "/"), ("POST", "/sui.rpc.v2.LedgerService/GetServiceInfo"), ("POST", "/nowhere")] {
            let reply = chain.answer(&Request {
                method: method.to_owned(),
                path: path.to_owned(),
                query: String::new(),
                headers: Vec::new(),
                body: b"{}".to_vec(),
            });
            let says = reply.headers.contains(&("x-sandbox".to_owned(), "model".to_owned()));
            assert_eq!(says, name != "base", "{name} {path}");
        }
    }
}

#[test]
fn the_main_networks_that_clients_know_are_there() {
    let clock = Arc::new(Clock::default());
    let engines = engines(&[], &clock, &Nodes::default()).unwrap();
    let names: Vec<_> = engines.keys().map(String::as_str).collect();
    let known = countersign_chains::KNOWN_CHAINS.iter().filter(|chain| !chain.test).map(|chain| chain.name);
    assert_eq!(names, known.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>());
    assert!(names.contains(&"bitcoin") && names.contains(&"bnbchain"));
    for (name, engine) in &engines {
        let chain = engine.listing().chain;
        assert_eq!(chain["chain"], name.as_str());
        let coin = chain["native_asset_id"].as_str().unwrap();
        assert!(engine.listing().assets.iter().any(|asset| asset["id"] == coin), "{name} has its coin {coin}");
    }
    let unknown = countersign_sandbox::chains::engines(&["moon".to_owned()], &clock, &Nodes::default()).err().unwrap();
    assert!(unknown.starts_with("unknown chain: moon; known: ethereum, ") && unknown.contains("starknet_devnet"), "{unknown}");
}

#[test]
fn an_instant_refund_that_is_signed_ahead_waits_for_the_solver() {
    let world = world(&["bitcoin_regtest", "arbitrum"]);
    let created =
        ok(&call(&world, "POST", "/v2/orders", &order(&world, "bitcoin_regtest:btc", "arbitrum:eth", ["50000", "9000000000000000"])));
    let target = |rest: &str| format!("/v2/orders/{}{rest}", created["order_id"].as_str().unwrap());
    let hashes = || call(&world, "GET", &target("/instant-refund-hash"), &Value::Null);
    assert!(refused(&hashes()).contains("nothing is locked"));
    let terms = world.ledger.by_id(created["order_id"].as_str().unwrap()).unwrap().source.terms(true);
    world.chain("bitcoin_regtest").unwrap().engine().lock(&terms).unwrap();
    assert_eq!(ok(&hashes())[0].as_str().unwrap().len(), 64);
    let post = |signature: String| call(&world, "PATCH", &target("?action=instant-refund"), &json!({ "signatures": [signature] }));
    assert!(refused(&post("00".repeat(65))).contains("65 bytes"));
    assert!(refused(&post("83".repeat(64))).contains("65 bytes"));
    for _ in 0..2 {
        assert_eq!(ok(&post("83".repeat(65))), "accepted");
    }
    // The signature counts once no payment is expected any more.
    world.lies.set("solver-never-pays", true);
    assert!(refused(&post("83".repeat(65))).contains("not the owner's"));
}

#[test]
fn the_relayer_redeems_what_the_chain_has_before_the_record_does() {
    let world = world(&["base", "arbitrum"]);
    let secret = [7; 32];
    let mut request = order(&world, "base:usdc", "arbitrum:eth", ["4000000", "900000000000000"]);
    request["secret_hash"] = json!(hex::encode(Sha256::digest(secret)));
    let created = ok(&call(&world, "POST", "/v2/orders", &request));
    let id = created["order_id"].as_str().unwrap();
    let redeem = || call(&world, "PATCH", &format!("/v2/orders/{id}?action=redeem"), &json!({ "secret": hex::encode(secret) }));
    assert_eq!(refused(&redeem()), "the destination is not initiated");
    let terms = world.ledger.by_id(id).unwrap().destination.terms(false);
    let payee = world.chain("arbitrum").unwrap();
    payee.engine().lock(&terms).unwrap();
    payee.engine().mine(1);
    assert_eq!(ok(&redeem()), ok(&redeem()));
}
