//! Tests countersign's own reader and wallet on the model of Sui, and compares the model's digests with those of the
//! SDK's types.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

mod front;
mod world;

use std::sync::Arc;
use std::time::Duration;

use countersign::recover::{self, Leg};
use countersign::sui::reader::Receipt;
use countersign::sui::sui_sdk_types::{Address, Digest};
use countersign::sui::{balance, htlc};
use countersign::{Key, OrderRecord, Policy, Signed, Unsigned, Verified, evidence::HtlcState, verify, verify_record};
use countersign_node::{Attempt, NodeError, Nodes, SettlementKey, Speed};
use countersign_sandbox::accounts::{self, USER};
use countersign_sandbox::chains::sui::Network;
use countersign_sandbox::chains::{Change, Engine};
use countersign_sandbox::http::Request;
use serde_json::{Value, json};

use world::{AMOUNT, HOUR, SECRET, Wire, World};

async fn state(nodes: &Nodes<Wire>, terms: &countersign::evidence::HtlcTerms) -> (HtlcState, u64) {
    let quorum = nodes.htlc(terms).await.unwrap();
    let (state, seen) = quorum.state().unwrap();
    (state, seen.depth)
}

async fn send(nodes: &Nodes<Wire>, chain: &str, signed: Signed) -> Digest {
    let [kept] = signed.broadcasts().try_into().unwrap();
    nodes.broadcast(chain, &kept.id, &kept.payload).await.unwrap();
    Digest::from_base58(&kept.id).unwrap()
}

#[tokio::test]
async fn countersign_pays_reads_and_redeems() {
    let world = World::new(Network::testnet());
    let (registry, nodes, order, policy, user) = (world.registry(), world.nodes(), world.order(), Policy::default(), world.user());
    let verified: Verified = verify(order.proposal(), &registry, &policy).unwrap();
    let all = verify_record(order.proposal(), &registry, &policy).unwrap().terms;
    let record = OrderRecord::from_json(order.record.as_bytes()).unwrap();
    assert_eq!(state(&nodes, &all.source).await, (HtlcState::Absent, 0));

    // The user pays.
    let mut unsigned: Unsigned = nodes.prepare(&verified, "sui_testnet", &user, Speed::Normal, &policy).await.unwrap();
    let key = Key::Sui(hex::encode(accounts::key(USER)).parse().unwrap());
    unsigned.sign(&key).unwrap();
    let paid = send(&nodes, "sui_testnet", unsigned.finish().unwrap()).await;
    assert_eq!(nodes.sui("sui_testnet").unwrap().receipt(paid).await.unwrap(), None, "it waits for a checkpoint");
    assert_eq!(state(&nodes, &all.source).await, (HtlcState::Absent, 0));
    world.on(|chain| {
        assert_eq!(chain.pending(), 1);
        chain.mine(1);
        assert_eq!((chain.pending(), chain.events().len()), (0, 1));
    });
    let height = world.on(|chain| chain.height());
    let Receipt { checkpoint, success, .. } = nodes.sui("sui_testnet").unwrap().receipt(paid).await.unwrap().unwrap();
    assert_eq!((checkpoint.get(), success), (height, true));
    let (locked, depth) = state(&nodes, &all.source).await;
    assert!(matches!(&locked, HtlcState::Locked(locked) if locked.secret_hash == Some(all.source.secret_hash)), "{locked:?}");
    assert_eq!(depth, 1);
    let balance = world.balance();
    assert!((990_000_000..1_000_000_000).contains(&balance), "{balance}: the amount and some gas are gone");

    // The solver pays, and the user redeems.
    let terms = world.terms(false);
    world.on(|chain| {
        chain.lock(&terms).unwrap();
        assert_eq!(chain.lock(&terms).unwrap_err().split(", in").next(), Some("MoveAbort in command 1, abort code: 7"));
        chain.mine(1);
    });
    assert!(matches!(state(&nodes, &all.destination).await, (HtlcState::Locked(_), 1)));
    let redeem = recover::redeem(&record, Leg::Destination, &SECRET, &registry).unwrap();
    let with = SettlementKey::new(key, Some(user.clone())).unwrap();
    let signed = nodes.settle(&redeem, "sui_testnet", Attempt::First(Speed::Normal), &with, &policy).await.unwrap();
    let redeemed = send(&nodes, "sui_testnet", signed).await;
    world.on(|chain| {
        chain.mine(1);
        let changes: Vec<_> = chain.events().into_iter().map(|event| (event.swap_id, event.change)).collect();
        let id = chain.leg(&terms).unwrap().swap_id;
        let initiated = Change::Initiated { amount: u128::from(AMOUNT) };
        assert_eq!(changes, [(id.clone(), initiated), (id, Change::Redeemed { secret: SECRET })]);
    });
    let transaction = Some(redeemed.to_base58());
    assert_eq!(state(&nodes, &all.destination).await.0, HtlcState::Redeemed { secret: Some(SECRET), transaction });
    // It cannot be redeemed twice. A second attempt stops before it reveals the secret.
    let error = nodes.settle(&redeem, "sui_testnet", Attempt::First(Speed::Normal), &with, &policy).await.unwrap_err();
    assert!(matches!(&error, NodeError::Refused(refusal) if refusal.code().name() == "simulation_reverted"), "{error:?}");

    // The solver redeems.
    let terms = world.terms(true);
    let transaction = world.on(|chain| {
        let transaction = chain.redeem(&terms, &SECRET).unwrap();
        chain.mine(1);
        Some(transaction)
    });
    assert_eq!(state(&nodes, &all.source).await.0, HtlcState::Redeemed { secret: Some(SECRET), transaction });
}

#[tokio::test]
async fn a_refund_waits_for_the_clock() {
    let world = World::new(Network::mainnet());
    let (registry, nodes, order, policy) = (world.registry(), world.nodes(), world.order(), Policy::default());
    let all = verify_record(order.proposal(), &registry, &policy).unwrap().terms;
    let record = OrderRecord::from_json(order.record.as_bytes()).unwrap();
    let terms = world.terms(true);
    world.on(|chain| {
        chain.lock(&terms).unwrap();
        chain.mine(1);
        assert!(chain.refund(&terms).unwrap_err().contains("abort code: 2"));
    });
    let key = Key::Sui(hex::encode(accounts::key(USER)).parse().unwrap());
    let with = SettlementKey::new(key, Some(world.user())).unwrap();
    let refund = recover::refund(&record, Leg::Source, &registry).unwrap();
    assert!(nodes.settle(&refund, "sui", Attempt::First(Speed::Normal), &with, &policy).await.is_err(), "too early");
    world.clock.advance(24 * HOUR + 1_000);
    world.on(|chain| chain.mine(200_000));
    let before = world.balance();
    let signed = nodes.settle(&refund, "sui", Attempt::First(Speed::Normal), &with, &policy).await.unwrap();
    let transaction = Some(send(&nodes, "sui", signed).await.to_base58());
    world.on(|chain| chain.mine(1));
    assert_eq!(state(&nodes, &all.source).await.0, HtlcState::Refunded { transaction });
    let after = world.balance();
    assert!(after > before + u128::from(AMOUNT) - 10_000_000, "{before} {after}");
    assert_eq!(world.on(|chain| chain.lock(&terms)).unwrap_err().split(", in").next(), Some("MoveAbort in command 1, abort code: 7"));
}

/// Moves all of the user's coins into the address balance.
async fn gather(world: &World, nodes: &Nodes<Wire>) -> Address {
    let user = world.user();
    world.on(|chain| chain.fund_balance(&user, &format!("{}:sui", world.name), 0)).unwrap();
    let (sui, owner) = (nodes.sui(&world.name).unwrap(), user.parse().unwrap());
    assert_eq!(sui.coins(owner).await.unwrap(), []);
    let held = sui.holdings(owner, &htlc::sui()).await.unwrap();
    assert_eq!((held.coins, held.address_balance), (0, AMOUNT + 1_000_000_000));
    owner
}

#[tokio::test]
async fn an_owner_without_a_coin_pays_and_redeems() {
    let world = World::new(Network::testnet());
    let (registry, nodes, order, policy, user) = (world.registry(), world.nodes(), world.order(), Policy::default(), world.user());
    let owner = gather(&world, &nodes).await;
    let verified: Verified = verify(order.proposal(), &registry, &policy).unwrap();
    let all = verify_record(order.proposal(), &registry, &policy).unwrap().terms;
    let record = OrderRecord::from_json(order.record.as_bytes()).unwrap();
    let key = Key::Sui(hex::encode(accounts::key(USER)).parse().unwrap());

    // The amount is split from the gas coin. Here, a reservation of the balance replaces that coin.
    let mut unsigned: Unsigned = nodes.prepare(&verified, "sui_testnet", &user, Speed::Normal, &policy).await.unwrap();
    let summary = unsigned.summary().to_string();
    assert!(summary.contains("SUI of the sender's address balance, reserved in epoch"), "{summary}");
    let Unsigned::Sui(sui) = &unsigned else { panic!("{unsigned:?}") };
    let [reservation] = sui.payloads().gas_payment.objects.as_slice() else { panic!("{unsigned:?}") };
    let (reserved, _) = balance::reserved(reservation).unwrap();
    assert_eq!(reserved, AMOUNT + sui.payloads().gas_payment.budget);
    unsigned.sign(&key).unwrap();
    send(&nodes, "sui_testnet", unsigned.finish().unwrap()).await;
    world.on(|chain| chain.mine(1));
    assert!(matches!(state(&nodes, &all.source).await, (HtlcState::Locked(_), 1)));
    let left = nodes.sui("sui_testnet").unwrap().holdings(owner, &htlc::sui()).await.unwrap();
    assert_eq!(left.coins, 0, "what the reservation did not need is in the balance again");
    assert!((990_000_000..1_000_000_000).contains(&left.address_balance), "{left}");

    // The solver pays, and the user redeems with an empty payment.
    let terms = world.terms(false);
    world.on(|chain| {
        chain.lock(&terms).unwrap();
        chain.mine(1);
    });
    let redeem = recover::redeem(&record, Leg::Destination, &SECRET, &registry).unwrap();
    let with = SettlementKey::new(key, Some(user)).unwrap();
    let signed = nodes.settle(&redeem, "sui_testnet", Attempt::First(Speed::Normal), &with, &policy).await.unwrap();
    let Signed::Sui(sui) = &signed else { panic!("Sui") };
    assert!(sui.payloads().payloads().gas_payment.objects.is_empty());
    let redeemed = send(&nodes, "sui_testnet", signed).await;
    world.on(|chain| chain.mine(1));
    let transaction = Some(redeemed.to_base58());
    assert_eq!(state(&nodes, &all.destination).await.0, HtlcState::Redeemed { secret: Some(SECRET), transaction });
}

#[tokio::test]
async fn an_owner_without_a_coin_refunds() {
    let world = World::new(Network::mainnet());
    let (registry, nodes, order, policy) = (world.registry(), world.nodes(), world.order(), Policy::default());
    let all = verify_record(order.proposal(), &registry, &policy).unwrap().terms;
    let record = OrderRecord::from_json(order.record.as_bytes()).unwrap();
    let terms = world.terms(true);
    world.on(|chain| {
        chain.lock(&terms).unwrap();
        chain.mine(1);
    });
    gather(&world, &nodes).await;
    world.clock.advance(24 * HOUR + 1_000);
    world.on(|chain| chain.mine(200_000));
    let key = Key::Sui(hex::encode(accounts::key(USER)).parse().unwrap());
    let with = SettlementKey::new(key, Some(world.user())).unwrap();
    let refund = recover::refund(&record, Leg::Source, &registry).unwrap();
    let signed = nodes.settle(&refund, "sui", Attempt::First(Speed::Normal), &with, &policy).await.unwrap();
    let transaction = Some(send(&nodes, "sui", signed).await.to_base58());
    world.on(|chain| chain.mine(1));
    assert_eq!(state(&nodes, &all.source).await.0, HtlcState::Refunded { transaction });
}

#[tokio::test]
async fn coins_and_the_balance_pay_together() {
    let world = World::new(Network::testnet());
    let (registry, nodes, order, policy, user) = (world.registry(), world.nodes(), world.order(), Policy::default(), world.user());
    // Neither place holds the amount.
    world.on(|chain| {
        chain.fund_balance(&user, "sui_testnet:sui", 0).unwrap();
        chain.fund(&user, "sui_testnet:sui", 20_000_000).unwrap();
    });
    let verified: Verified = verify(order.proposal(), &registry, &policy).unwrap();
    let all = verify_record(order.proposal(), &registry, &policy).unwrap().terms;
    let pay = |policy: Policy| {
        let (nodes, verified, user) = (&nodes, &verified, &user);
        async move { nodes.prepare(verified, "sui_testnet", user, Speed::Normal, &policy).await }
    };
    let mut unsigned = pay(policy.clone()).await.unwrap();
    let key = Key::Sui(hex::encode(accounts::key(USER)).parse().unwrap());
    unsigned.sign(&key).unwrap();
    send(&nodes, "sui_testnet", unsigned.finish().unwrap()).await;
    world.on(|chain| chain.mine(1));
    assert!(matches!(state(&nodes, &all.source).await, (HtlcState::Locked(_), 1)));
    // Both together hold too little. The refusal states both amounts.
    let error = pay(policy).await.unwrap_err();
    assert!(matches!(&error, NodeError::Refused(refusal) if refusal.to_string().contains("and the address balance 9")), "{error:?}");
}

#[tokio::test]
async fn a_wallet_finds_the_package_prices_and_coins() {
    let world = World::new(Network::mainnet());
    let (nodes, user) = (world.nodes(), world.user());
    let sui = nodes.sui("sui").unwrap();
    let package = sui.describe_package(world.on(|chain| chain.package())).await.unwrap();
    assert_eq!((package.version, package.newest_version, package.original), (1, 1, world.on(|chain| chain.package())));
    assert!(package.upgrade_authority.unwrap().owner.is_some());
    assert_eq!(sui.gas_price(Speed::Slow).await.unwrap(), 500);
    let coins = sui.coins(user.parse().unwrap()).await.unwrap();
    assert_eq!(coins.iter().map(|coin| coin.balance).sum::<u64>(), AMOUNT + 1_000_000_000);
    let (registry, version) = world.on(|chain| chain.registry());
    assert_eq!(sui.initial_shared_version(registry).await.unwrap(), version);
    let head = nodes.head("sui", 0).await.unwrap();
    assert_eq!(head.height.get(), world.on(|chain| chain.height()));
    let height = head.height.get();
    world.on(|chain| chain.mine(200_000));
    assert_eq!(nodes.head("sui", 0).await.unwrap().height.get(), height + 200_000);
    assert!(nodes.sui("sui").unwrap().balance(user.parse().unwrap(), &"0x7::usdc::USDC".parse().unwrap()).await.unwrap() == 0);
}

/// Needs Node.js, and the packages of `fixtures/generate` (or of the folder in `SANDBOX_NODE_PACKAGES`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Node.js and its packages"]
async fn the_client_of_mysten_pays() {
    let world = World::new(Network::mainnet());
    let (listener, served) = (tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::clone(&world));
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = move |call: axum::extract::Request| {
        let world = Arc::clone(&served);
        async move {
            let (parts, body) = call.into_parts();
            let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
            let body = axum::body::to_bytes(body, 1 << 22).await.unwrap().to_vec();
            let path = parts.uri.path().to_owned();
            let request = Request { method: parts.method.to_string(), path, query: String::new(), headers, body };
            let reply = world.on(|chain| chain.answer(&request));
            let head = axum::http::Response::builder().status(reply.status);
            let head = reply.headers.iter().fold(head, |head, (name, value)| head.header(name, value));
            head.body(axum::body::Body::from(reply.body)).unwrap()
        }
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    let mined = Arc::clone(&world);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            mined.on(|chain| chain.mine(1));
        }
    });
    let (terms, registry) = (world.terms(true), world.on(|chain| chain.registry()).0);
    let contract = world.on(|chain| chain.package()).to_string();
    let kind = world.on(|chain| chain.payloads(&terms)).unwrap()["ptb_bytes"].clone();
    let given =
        json!({"url": url, "key": hex::encode(accounts::key(USER)), "kind": kind, "contract": contract, "registry": registry.to_string()})
            .to_string();
    let packages =
        std::env::var("SANDBOX_NODE_PACKAGES").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/generate").to_owned());
    let run = move || {
        let mut node = std::process::Command::new("node");
        node.args(["--input-type=module", "-e", include_str!("client.mjs"), "--", &given]).current_dir(packages).output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "owner": world.user(), "paid": 2, "balance": "1000000", "events": ["AtomicSwap::Initiated"], "fields": [["vector<u8>", 209]],
        "objects": ["Shared", "notExists"], "price": "500", "coins": 1, "created": shown["created"], "failure": shown["failure"], "instant": shown["instant"],
    });
    assert_eq!(shown, expected);
    for (what, words) in [
        ("created", "::AtomicSwap::create_orders_registry with these arguments"),
        ("failure", "0x0000000000000000000000000000000000000000000000000000000000000002::nothing::here with these arguments"),
    ] {
        let refusal = shown[what].as_str().unwrap();
        assert!(refusal.starts_with("the model does not execute calls of 0x") && refusal.ends_with(words), "{shown}");
    }
    assert!(shown["instant"].as_str().unwrap().contains("abort code: 16"), "{shown}");
}
