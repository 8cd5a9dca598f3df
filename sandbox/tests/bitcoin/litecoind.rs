//! Tests the same with Litecoin's node in place of the engine's own rules. Skipped if there is no litecoind.

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bitcoin::{Amount, Sequence};
use countersign::{Policy, Registry};
use countersign_node::{NodeConfig, NodeError, Nodes, Speed};
use countersign_sandbox::accounts;
use countersign_sandbox::chains::bitcoin::Bitcoin;
use countersign_sandbox::chains::{self, Engine, engines};
use countersign_sandbox::clock::Clock;
use serde_json::{Value, json};

use super::front::climb;
use super::mempool::{Spoil, follows_litecoin, solvers_payment};
use super::{Through, World, call, endpoints, nodes, swaps};

const CHAIN: &str = "litecoin_regtest";
const OTHER: &str = "bitcoin_regtest";

/// Returns both chains, Litecoin's with a node. The user has a few coins.
fn world() -> Option<World> {
    let (program, clock) = (nodes::litecoind()?, Arc::new(Clock::default()));
    let node = Bitcoin::beside_litecoind(&program, Arc::clone(&clock)).unwrap();
    let own = Bitcoin::new(OTHER, "bitcoin:regtest", Arc::clone(&clock)).unwrap();
    Some(World::of(vec![(CHAIN.to_owned(), node), (OTHER.to_owned(), own)], clock).funded())
}

/// Returns the result of a call to the node's own RPC, made through the chain's URL.
fn rpc(world: &World, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let reply = world.on(CHAIN, |engine| engine.answer(&call("POST", "/", body.as_bytes())));
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    serde_json::from_slice::<Value>(&reply.body).unwrap()["result"].clone()
}

/// Checks that the index agrees with the node's chain and mempool.
fn assert_follows(world: &World) {
    let info = rpc(world, "getblockchaininfo", &json!([]));
    assert_eq!(info["bestblockhash"], world.text(CHAIN, "/blocks/tip/hash"));
    assert_eq!(info["blocks"].to_string(), world.text(CHAIN, "/blocks/tip/height"));
    let mut waiting = [rpc(world, "getrawmempool", &json!([])), world.json(CHAIN, "/mempool/txids")];
    waiting.iter_mut().for_each(|list| list.as_array_mut().unwrap().sort_by_key(ToString::to_string));
    assert_eq!(waiting[0], waiting[1]);
}

/// Each way to reach the node, and each direction.
fn ways() -> impl Iterator<Item = (World, &'static str, &'static str)> {
    let directions = [(CHAIN, OTHER), (OTHER, CHAIN)];
    let ways =
        [Through::Esplora, Through::Rpc, Through::Both].into_iter().flat_map(move |way| directions.map(|(from, to)| (way, from, to)));
    ways.map_while(|(way, from, to)| Some((World { other: Some((CHAIN, way)), ..world()? }, from, to)))
}

#[tokio::test]
async fn a_swap_completes_in_both_directions() {
    for (world, from, to) in ways() {
        swaps::completes(&world, from, to).await;
        assert_follows(&world);
    }
}

#[tokio::test]
async fn the_node_judges_timelocks_and_replacements() {
    for (world, from, to) in ways() {
        swaps::are_refunded(&world, from, to).await;
        assert_follows(&world);
    }
}

#[tokio::test]
async fn another_chain_and_missing_estimates_are_recognized() {
    let Some(world) = world() else { return };
    let registry = Registry::from_json(br#"{"chains": [{"chain": "litecoin", "id": "litecoin:mainnet"}], "assets": []}"#).unwrap();
    for through in [Through::Esplora, Through::Rpc] {
        let config = NodeConfig::new().with("litecoin", endpoints(CHAIN, through));
        let error = Nodes::new(world.clone(), config, &registry).head("litecoin", 0).await.unwrap_err();
        assert!(matches!(error, NodeError::WrongChain { .. }), "{error}");
    }
    let world = World { other: Some((CHAIN, Through::Rpc)), ..world };
    let estimate = world.nodes().bitcoin(CHAIN).unwrap().fee_rate(Speed::Fast, &Policy::default()).await.unwrap();
    assert!(estimate.is_floor, "a regtest node has no estimate");
}

#[tokio::test]
async fn refunds_before_the_timelock_and_without_a_delegate() {
    let Some(world) = world() else { return };
    swaps::is_refunded_instantly(&world, CHAIN, OTHER).await;
    swaps::is_held_by_the_service(&world, CHAIN);
    assert_follows(&world);
}

#[tokio::test]
async fn the_index_follows_a_reorganization() {
    let Some(world) = world() else { return };
    let world = World { other: Some((CHAIN, Through::Both)), ..world };
    swaps::starts_again(&world, CHAIN, OTHER).await;
    assert_follows(&world);
    // The blocks that fund the accounts cannot be rolled back.
    let depth = world.on(CHAIN, |engine| engine.height()) - 432;
    assert!(world.on(CHAIN, |engine| engine.reorganize(depth + 1)).is_err());
    world.on(CHAIN, |engine| engine.reorganize(depth).unwrap());
    world.mine(CHAIN, 1);
    assert_follows(&world);
}

#[test]
fn two_hundred_swaps_fit_into_one_block() {
    let Some(world) = world() else { return };
    swaps::fit_into_one_block(&world, CHAIN);
    assert_follows(&world);
}

#[test]
fn a_payment_is_seen_and_a_refusal_has_the_words_of_the_node() {
    let Some(world) = world() else { return };
    follows_litecoin(&world);
    world.mine(CHAIN, 1);
    let cases: [(&str, Spoil); 3] = [
        ("bad-txns-inputs-missingorspent", |tx| tx.input[0].previous_output.vout = 9_999),
        ("min relay fee not met, 0 < 110", |tx| tx.output[0].value += Amount::from_sat(1_000)),
        ("non-BIP68-final", |tx| tx.input[0].sequence = Sequence::from_height(100)),
    ];
    for (text, spoil) in cases {
        let refused = world.post(CHAIN, &solvers_payment(&world, CHAIN, spoil)).unwrap_err();
        let code = if text.contains("missing") { -25 } else { -26 };
        assert_eq!(refused, format!(r#"sendrawtransaction RPC error: {{"code":{code},"message":"{text}"}}"#));
    }
    let garbage = world.on(CHAIN, |engine| engine.answer(&call("POST", "/tx", b"zz")));
    assert!(String::from_utf8(garbage.body).unwrap().contains(r#""code":-22,"message":"TX decode failed"#));

    let payment = solvers_payment(&world, CHAIN, |_| {});
    let address = world.on(CHAIN, |engine| engine.address_of(&accounts::key(accounts::SOLVER)));
    let txid = world.post(CHAIN, &payment).unwrap();
    assert_eq!(world.post(CHAIN, &payment).unwrap(), txid, "again is not an error");
    for is_confirmed in [false, true] {
        let utxo = world.json(CHAIN, &format!("/address/{address}/utxo"));
        let found = utxo.as_array().unwrap().iter().find(|coin| coin["txid"] == txid.as_str()).unwrap().clone();
        assert_eq!((&found["value"], &found["status"]["confirmed"]), (&json!(payment.output[0].value.to_sat()), &json!(is_confirmed)));
        world.mine(CHAIN, 1);
    }
    let unknown = world.on(CHAIN, |engine| engine.answer(&call("POST", "/", br#"{"method":"stop"}"#)));
    assert_eq!(unknown.status, 403);
    assert_follows(&world);
}

#[tokio::test]
async fn blocks_have_extension_blocks() {
    let Some(world) = world() else { return };
    let begun = Instant::now();
    let height = world.on(CHAIN, |engine| engine.height());
    world.on(CHAIN, |engine| engine.mine(200_000));
    assert_eq!(world.on(CHAIN, |engine| engine.height()), height + 1_000, "as many as at once");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    world.nodes().head(CHAIN, 0).await.unwrap();

    let txid = world.post(CHAIN, &solvers_payment(&world, CHAIN, |_| {})).unwrap();
    world.mine(CHAIN, 1);
    let hash = world.text(CHAIN, "/blocks/tip/hash");
    let txs = world.json(CHAIN, &format!("/block/{hash}/txs"));
    assert_eq!((txs.as_array().unwrap().len(), &txs[1]["txid"]), (3, &json!(txid)));
    // The balance of the extension block is an output with a witness program of version 8.
    assert!(txs[2]["vout"][0]["scriptpubkey"].as_str().unwrap().starts_with("5820"));
    assert_eq!(txs[2]["vin"][0]["prevout"]["value"], txs[2]["vout"][0]["value"]);
    let raw = world.get(CHAIN, &format!("/block/{hash}/raw")).body;
    assert_eq!(json!(hex::encode(&raw)), rpc(&world, "getblock", &json!([hash, 0])));
    let header: bitcoin::block::Header = bitcoin::consensus::deserialize(&raw[..80]).unwrap();
    for tx in txs.as_array().unwrap() {
        let txid = tx["txid"].as_str().unwrap();
        assert_eq!(climb(&world.json(CHAIN, &format!("/tx/{txid}/merkle-proof")), txid), header.merkle_root);
    }
    assert_follows(&world);
}

#[test]
fn litecoind_needs_its_chain() {
    let nodes = chains::Nodes { litecoind: Some("litecoind".into()), ..chains::Nodes::default() };
    let names = ["base_sepolia".to_owned()];
    let error = engines(&names, &Arc::default(), &nodes).err().unwrap();
    assert!(error.contains("add it to the chains, for example `--chains base_sepolia,litecoin_regtest`"), "{error}");
    let missing = Bitcoin::beside_litecoind(Path::new("/nonexistent/litecoind"), Arc::default());
    assert!(missing.unwrap_err().starts_with("/nonexistent/litecoind: "));
}

#[cfg(unix)]
#[test]
fn a_node_that_dies_gives_errors() {
    use std::os::unix::fs::PermissionsExt;
    let Some(program) = nodes::litecoind() else { return };
    let folder = env::temp_dir().join(format!("countersign-litecoind-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (script, pid) = (folder.join("litecoind"), folder.join("pid"));
    let libraries = program.parent().unwrap().join(format!("../{}-linux-gnu", env::consts::ARCH));
    let text = format!(
        "#!/bin/sh\necho $$ > '{}'\nLD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n",
        pid.display(),
        libraries.display(),
        program.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let clock = Arc::new(Clock::default());
    let world = World::of(vec![(CHAIN.to_owned(), Bitcoin::beside_litecoind(&script, Arc::clone(&clock)).unwrap())], clock);
    world.mine(CHAIN, 1);
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    std::fs::remove_dir_all(&folder).unwrap();

    let begun = Instant::now();
    let (terms, height) = (world.terms(CHAIN, false), world.on(CHAIN, |engine| engine.height()));
    assert!(world.on(CHAIN, |engine| engine.lock(&terms)).unwrap_err().contains("the node does not answer"));
    let refused = world.post(CHAIN, &solvers_payment(&world, CHAIN, |_| {})).unwrap_err();
    assert!(refused.contains(r#""code":-32603,"message":"the node does not answer"#), "{refused}");
    assert!(world.on(CHAIN, |engine| engine.fund(&engine.address_of(&[5; 32]), &terms.asset, 10_000)).is_err());
    assert!(world.on(CHAIN, |engine| engine.reorganize(1)).is_err());
    world.mine(CHAIN, 10);
    let info = world.on(CHAIN, |engine| engine.answer(&call("POST", "/", br#"{"method":"getblockcount"}"#)));
    assert_eq!((world.on(CHAIN, |engine| engine.height()), info.status), (height, 502));
    assert_eq!(world.text(CHAIN, "/blocks/tip/height"), height.to_string());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
