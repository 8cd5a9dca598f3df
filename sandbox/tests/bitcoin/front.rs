//! Tests the answers that Esplora clients receive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bitcoin::consensus::encode::{deserialize, deserialize_hex};
use bitcoin::hashes::{Hash, sha256};
use bitcoin::{Block, BlockHash, MerkleBlock, Transaction, TxMerkleNode, block};
use countersign_sandbox::accounts;
use countersign_sandbox::chains::bitcoin::Bitcoin;
use countersign_sandbox::chains::{Engine, Terms};
use serde_json::{Value, json};

use super::{AMOUNT, CHAINS, World, call, world};

/// The hashes of block 0, as explorers show them.
#[tokio::test]
async fn every_network_has_its_identity() {
    const MAIN: &str = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
    let networks = [
        ("bitcoin", "bitcoin:mainnet", MAIN, "bc1q"),
        ("bitcoin_testnet", "bitcoin:testnet", "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943", "tb1q"),
        ("bitcoin_testnet4", "bitcoin:testnet4", "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043", "tb1q"),
        ("bitcoin_signet", "bitcoin:signet", "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6", "tb1q"),
        ("bitcoin_regtest", "bitcoin:regtest", "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206", "bcrt1q"),
        ("litecoin", "litecoin:mainnet", "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2", "ltc1q"),
        ("litecoin_testnet", "litecoin:testnet", "4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0", "tltc1q"),
        ("litecoin_regtest", "litecoin:regtest", "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9", "rltc1q"),
    ];
    for (name, id, genesis, prefix) in networks {
        let world = World::new(&[(name, id)]);
        assert_eq!(world.text(name, "/block-height/0"), genesis, "{name}");
        let header: block::Header = deserialize_hex(&world.text(name, &format!("/block/{genesis}/header"))).unwrap();
        assert_eq!(header.block_hash().to_string(), genesis);
        assert!(world.owner(name).starts_with(prefix));
        assert!(world.on(name, |engine| engine.height()) >= 1);
        let head = world.nodes().head(name, 0).await;
        match name {
            // This rule alone cannot be met, because the headers of Bitcoin's main network have far more work.
            "bitcoin" => assert!(head.unwrap_err().to_string().contains("work")),
            _ => assert_eq!(head.unwrap().height.get(), world.on(name, |engine| engine.height())),
        }
    }
    assert!(Bitcoin::new("ethereum", "evm:1", Arc::default()).is_err());
}

#[tokio::test]
async fn blocks_are_those_that_a_validating_client_accepts() {
    let (world, chain) = (world(), "bitcoin_regtest");
    for amount in [1, 2, 3] {
        let terms = Terms { amount: AMOUNT * amount, ..world.terms(chain, false) };
        world.on(chain, |engine| engine.lock(&terms).unwrap());
    }
    world.mine(chain, 20);
    let mut before: Option<block::Header> = None;
    for height in 1..=world.on(chain, |engine| engine.height()) {
        let hash = world.text(chain, &format!("/block-height/{height}"));
        let whole: Block = deserialize(&world.get(chain, &format!("/block/{hash}/raw")).body).unwrap();
        assert!(whole.check_merkle_root() && whole.check_witness_commitment());
        // The library does not parse small numbers, which are encoded as opcodes.
        assert!(height <= 16 || whole.bip34_block_height() == Ok(height));
        assert!(whole.header.validate_pow(whole.header.target()).is_ok());
        assert!(before.is_none_or(|before| before.block_hash() == whole.header.prev_blockhash && before.time <= whole.header.time));
        before = Some(whole.header);
        for transaction in &whole.txdata {
            let txid = transaction.compute_txid();
            let proof: MerkleBlock = deserialize_hex(&world.text(chain, &format!("/tx/{txid}/merkleblock-proof"))).unwrap();
            let (mut matches, mut indexes) = (Vec::new(), Vec::new());
            proof.extract_matches(&mut matches, &mut indexes).unwrap();
            assert_eq!((proof.header, matches), (whole.header, vec![txid]));
            assert_eq!(climb(&world.json(chain, &format!("/tx/{txid}/merkle-proof")), &txid.to_string()), whole.header.merkle_root);
        }
    }
    let listed = world.json(chain, "/blocks");
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (10, &json!(world.text(chain, "/blocks/tip/hash"))));
    let tip: BlockHash = world.text(chain, "/blocks/tip/hash").parse().unwrap();
    assert_eq!(world.json(chain, &format!("/block/{tip}"))["height"].to_string(), world.text(chain, "/blocks/tip/height"));
}

#[test]
fn old_blocks_are_dropped_and_coins_are_not() {
    let (world, chain) = (world(), "bitcoin_regtest");
    let (owner, terms) = (world.owner(chain), world.terms(chain, false));
    world.on(chain, |engine| {
        engine.lock(&terms).unwrap();
        (0..22).for_each(|_| engine.mine(1_000));
    });
    assert_eq!(world.get(chain, "/block-height/300").status, 404);
    assert_eq!(world.get(chain, "/block-height/0").status, 200);
    assert_eq!(world.balance(chain, &owner), 3_000_000);
    let utxo = world.json(chain, &format!("/address/{owner}/utxo"));
    assert!(utxo.as_array().unwrap().iter().all(|coin| coin["status"]["confirmed"] == true));
    world.on(chain, |engine| engine.refund(&terms).unwrap());
}

/// Returns the root that an Electrum proof yields.
pub(super) fn climb(proof: &Value, txid: &str) -> TxMerkleNode {
    let mut position = proof["pos"].as_u64().unwrap();
    let mut node: TxMerkleNode = txid.parse().unwrap();
    for beside in proof["merkle"].as_array().unwrap() {
        let beside: TxMerkleNode = beside.as_str().unwrap().parse().unwrap();
        let pair = if position.is_multiple_of(2) { [node, beside] } else { [beside, node] };
        node = TxMerkleNode::hash(&pair.iter().flat_map(|node| node.to_byte_array()).collect::<Vec<_>>());
        position /= 2;
    }
    node
}

#[test]
fn many_empty_blocks_take_no_time() {
    for (chain, id) in CHAINS {
        let world = World::new(&[(chain, id)]);
        let terms = world.terms(chain, false);
        world.on(chain, |engine| {
            engine.lock(&terms).unwrap();
            let (height, begun) = (engine.height(), Instant::now());
            engine.mine(200_000);
            assert_eq!((engine.height(), engine.pending()), (height + 200_000, 0));
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
            engine.refund(&terms).unwrap();
            engine.mine(1);
        });
        let time = world.json(chain, "/blocks")[0]["timestamp"].as_u64().unwrap();
        assert!(time.abs_diff(world.clock.seconds()) < 60, "the head is new");
    }
}

#[test]
fn clients_of_esplora_find_what_they_ask_for() {
    let (world, chain) = (world(), "litecoin_regtest");
    let owner = world.owner(chain);
    let terms = world.terms(chain, false);
    let locked = world.on(chain, |engine| engine.lock(&terms).unwrap());
    let address = world.on(chain, |engine| engine.leg(&terms).unwrap().swap_id);
    let waiting = world.json(chain, &format!("/address/{address}/txs/mempool"));
    assert_eq!((&waiting[0]["txid"], &waiting[0]["status"]), (&json!(locked), &json!({ "confirmed": false })));
    world.mine(chain, 2);

    let utxo = world.json(chain, &format!("/address/{owner}/utxo"));
    assert_eq!(utxo.as_array().unwrap().len(), 3);
    assert_eq!((&utxo[0]["value"], &utxo[0]["status"]["confirmed"]), (&json!(1_000_000), &json!(true)));
    let stats = world.json(chain, &format!("/address/{owner}"));
    assert_eq!((&stats["chain_stats"]["funded_txo_sum"], &stats["chain_stats"]["tx_count"]), (&json!(3_000_000), &json!(3)));
    let shown = world.json(chain, &format!("/tx/{locked}"));
    assert_eq!(shown["vout"][0]["scriptpubkey_address"], address);
    assert_eq!(shown["vout"][0]["scriptpubkey_type"], "v1_p2tr");
    let solver = world.on(chain, |engine| engine.address_of(&accounts::key(accounts::SOLVER)));
    assert_eq!(shown["vin"][0]["prevout"]["scriptpubkey_address"], solver);
    let script = hex::decode(shown["vout"][0]["scriptpubkey"].as_str().unwrap()).unwrap();
    let hash = sha256::Hash::hash(&script);
    assert_eq!(world.json(chain, &format!("/scripthash/{hash}/txs")), json!([shown]));
    assert_eq!(world.json(chain, &format!("/tx/{locked}/outspend/0")), json!({ "spent": false }));
    let from: Transaction = deserialize(&world.get(chain, &format!("/tx/{locked}/raw")).body).unwrap();
    let spent = from.input[0].previous_output;
    let spends = world.json(chain, &format!("/tx/{}/outspends", spent.txid));
    assert_eq!(spends[usize::try_from(spent.vout).unwrap()]["txid"], json!(locked));
    let block = shown["status"]["block_hash"].as_str().unwrap();
    assert_eq!(world.json(chain, &format!("/block/{block}/txids"))[1], json!(locked));
    assert_eq!(world.json(chain, &format!("/block/{block}/txs"))[1], shown);
    assert_eq!(world.json(chain, &format!("/block/{block}/status"))["in_best_chain"], true);
    assert!(world.json(chain, "/fee-estimates")["6"].as_f64().unwrap() >= 1.0);
    assert_eq!(world.json(chain, "/mempool")["count"], 0);
    assert_eq!(world.json(chain, &format!("/api/tx/{locked}/status")), shown["status"]);
    // The history continues after a page.
    let all = world.json(chain, &format!("/address/{owner}/txs"));
    let next = world.json(chain, &format!("/address/{owner}/txs/chain/{}", all[0]["txid"].as_str().unwrap()));
    assert_eq!(next.as_array().unwrap().len(), 2);
    // The solver has more coins than a server would list.
    let many = world.on(chain, |engine| {
        let (asset, address) = (engine.listing().assets[0]["id"].as_str().unwrap().to_owned(), engine.address_of(&[5; 32]));
        (0..501).for_each(|_| engine.fund(&address, &asset, 10_000).unwrap());
        address
    });
    assert_eq!(world.get(chain, &format!("/address/{many}/utxo")).status, 400);
}

#[test]
fn any_call_gets_an_answer() {
    let (world, chain) = (world(), "litecoin_regtest");
    let parts =
        ["", "tx", "block", "blocks", "tip", "address", "scripthash", "txs", "chain", "utxo", "hash", "-1", "0", "99999999999", "zz"];
    let long = "f".repeat(64);
    let words: Vec<&str> =
        parts.into_iter().chain(["outspend", "4294967296", "merkle-proof", "raw", "mempool", &long, "ltc1qé", "%00"]).collect();
    for first in &words {
        for second in &words {
            for third in &words {
                let path = format!("/{first}/{second}/{third}");
                let reply = world.get(chain, &path);
                assert!([200, 400, 404].contains(&reply.status), "{path}");
            }
        }
    }
    for (path, status, text) in [
        ("/nothing", 404, "endpoint does not exist \"/nothing\""),
        ("/tx/zz", 400, "Invalid hex string"),
        ("/address/bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", 400, "Address on invalid network"),
        ("/address/nonsense", 400, "Invalid Bitcoin address"),
        ("/block-height/77", 404, "Block not found"),
        ("/block-height/x", 400, "Invalid number"),
    ] {
        let reply = world.get(chain, path);
        assert_eq!((reply.status, String::from_utf8(reply.body).unwrap().as_str()), (status, text));
    }
    for method in ["POST", "PUT", "DELETE", ""] {
        for body in [&b""[..], &[0xff; 1_000], &b"00".repeat(2_000_000)] {
            let reply = world.on(chain, |engine| engine.answer(&call(method, "/tx", body)));
            assert!([400, 404].contains(&reply.status));
        }
    }
}
