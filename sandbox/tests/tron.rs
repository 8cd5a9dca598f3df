//! Tests Tron in the sandbox. countersign pays, reads and redeems through the HTTP interface of its nodes.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

mod wallet;

use std::sync::Arc;

use countersign::SecretHash;
use countersign_sandbox::accounts;
use countersign_sandbox::chains::Engine;
use countersign_sandbox::chains::evm::{Evm, Network as EvmNetwork};
use countersign_sandbox::chains::tron::Tron;
use countersign_sandbox::clock::Clock;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wallet::{Chains, Swap, post, raw, ready, secret_hash};

const MAIN: u32 = 728_126_428;

fn chains() -> Arc<Chains> {
    let clock = Arc::new(Clock::default());
    let base = Evm::new(EvmNetwork::new("base", 8453), Arc::clone(&clock)).unwrap();
    let tron = Tron::new("tron", MAIN, Arc::clone(&clock)).unwrap();
    Chains::new(Arc::clone(&clock), vec![("base", Box::new(base)), ("tron", Box::new(tron))])
}

#[test]
fn a_token_is_swapped_without_gas() {
    Swap::new(&chains(), ("tron:usdt", 2_000_000), ("base:usdc", 1_900_000)).run(true);
}

#[test]
fn a_token_is_swapped_by_transactions() {
    Swap::new(&chains(), ("tron:usdt", 2_000_000), ("base:usdc", 1_900_000)).run(false);
}

#[test]
fn the_solver_pays_on_tron() {
    let swap = Swap::new(&chains(), ("base:usdc", 2_000_000), ("tron:usdt", 1_900_000));
    let done = swap.run(true);
    // Evidence from the first irreversible block on.
    let depth = swap.chains.with("tron", |tron| tron.depth());
    assert_eq!((depth, done.funded.left().units), (19, swap.destination.timelock - depth));
    assert_eq!(done.locked.secret_hash, Some(SecretHash(secret_hash())));
    let receipt = ready(swap.nodes.tron("tron").unwrap().receipt(done.redemption.parse().unwrap())).unwrap();
    assert!(receipt.expect("a receipt").success);
    Swap::new(&chains(), ("base:eth", 1_000_000_000_000_000), ("tron:trx", 10_000_000)).run(false);
}

#[test]
fn an_order_with_other_terms_is_held_back() {
    Swap::new(&chains(), ("base:usdc", 2_000_000), ("tron:usdt", 1_900_000)).holds_back_other_terms();
}

#[test]
fn the_owner_takes_it_back_after_the_timelock() {
    Swap::new(&chains(), ("tron:usdt", 2_000_000), ("base:usdc", 1_900_000)).refund();
    Swap::new(&chains(), ("tron:trx", 20_000_000), ("base:usdc", 1_900_000)).refund();
}

// ---- the node

fn node() -> (Tron, String) {
    let mut tron = Tron::new("tron", MAIN, Arc::new(Clock::default())).unwrap();
    let user = tron.address_of(&accounts::key(accounts::USER));
    tron.fund(&user, "tron:trx", 1_000_000_000).unwrap();
    (tron, user)
}

/// Signs a transaction that the node has built, as some clients do.
fn sign(mut built: Value) -> Value {
    let bytes = hex::decode(built["raw_data_hex"].as_str().unwrap()).unwrap();
    let id: [u8; 32] = Sha256::digest(bytes).into();
    assert_eq!(built["txID"], hex::encode(id));
    let account = countersign_proofs_evm::Account::from_secret(&accounts::key(accounts::USER)).unwrap();
    built["signature"] = json!([hex::encode(account.sign_digest(id.into()).as_bytes())]);
    built
}

fn words(answer: &Value) -> String {
    String::from_utf8(hex::decode(answer["message"].as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn a_payment_arrives_and_is_irreversible_later() {
    let (mut tron, user) = node();
    let to = tron.listing().solver;
    let question = json!({"owner_address": user, "to_address": to, "amount": 5_000_000, "visible": true});
    let payment = sign(post(&mut tron, "/wallet/createtransaction", &question));
    let id = payment["txID"].clone();
    assert_eq!(post(&mut tron, "/wallet/broadcasttransaction", &payment), json!({"result": true, "txid": id}));
    let again = post(&mut tron, "/wallet/broadcasttransaction", &payment);
    assert_eq!((&again["code"], words(&again)), (&json!("DUP_TRANSACTION_ERROR"), "Dup transaction.".to_owned()));
    let by_id = json!({"value": id});
    assert_eq!(post(&mut tron, "/wallet/gettransactioninfobyid", &by_id), json!({}));
    tron.mine(1);
    let info = post(&mut tron, "/wallet/gettransactioninfobyid", &by_id);
    assert_eq!((&info["id"], info["blockNumber"].as_u64()), (&id, Some(tron.height())));
    assert_eq!(post(&mut tron, "/wallet/gettransactionbyid", &by_id)["ret"], json!([{"contractRet": "SUCCESS"}]));
    assert_eq!(tron.balance(&user, "tron:trx").unwrap(), 995_000_000 - u128::from(info["fee"].as_u64().unwrap()));
    for (blocks, is_there) in [(18, false), (1, true)] {
        tron.mine(blocks);
        let solid = post(&mut tron, "/walletsolidity/gettransactioninfobyid", &by_id);
        assert_eq!(solid != json!({}), is_there);
    }
}

#[test]
fn what_no_node_takes_is_refused() {
    let (mut tron, user) = node();
    let solver = tron.listing().solver;
    let htlc = tron.listing().assets[0]["htlc"]["address"].clone();
    let build = |tron: &mut Tron, to: &Value, amount: u64| {
        post(tron, "/wallet/createtransaction", &json!({"owner_address": user, "to_address": to, "amount": amount, "visible": true}))
    };
    let mut refuse = |change: fn(&mut Value), to: &Value, amount: u64, code: &str| {
        let mut payment = sign(build(&mut tron, to, amount));
        change(&mut payment);
        let answer = post(&mut tron, "/wallet/broadcasttransaction", &payment);
        assert_eq!(answer["code"], code, "{answer}");
    };
    let solver = json!(solver);
    refuse(|payment| payment["signature"] = json!([]), &solver, 1, "SIGERROR");
    refuse(|payment| payment["signature"] = json!(["11".repeat(65)]), &solver, 1, "SIGERROR");
    refuse(|_| {}, &solver, 2_000_000_000, "CONTRACT_VALIDATE_ERROR");
    refuse(|_| {}, &solver, 1_000_000_000, "BANDWITH_ERROR");
    refuse(|_| {}, &htlc, 1, "CONTRACT_VALIDATE_ERROR");
    let change = |payment: &mut Value, from: &str, to: &str| {
        let changed = payment["raw_data_hex"].as_str().unwrap().replacen(from, to, 1);
        let id: [u8; 32] = Sha256::digest(hex::decode(&changed).unwrap()).into();
        payment["raw_data_hex"] = json!(changed);
        payment["txID"] = json!(hex::encode(id));
    };
    let mut payment = build(&mut tron, &solver, 1);
    let reference = payment["raw_data"]["ref_block_hash"].as_str().unwrap().to_owned();
    change(&mut payment, &reference, "0011223344556677");
    let answer = post(&mut tron, "/wallet/broadcasttransaction", &sign(payment));
    assert_eq!((&answer["code"], words(&answer)), (&json!("TAPOS_ERROR"), "Tapos check error.".to_owned()));
    // The transaction expires a minute after its reference block.
    let clock = Arc::new(Clock::default());
    let mut tron = Tron::new("tron", MAIN, Arc::clone(&clock)).unwrap();
    tron.fund(&user, "tron:trx", 1_000_000_000).unwrap();
    let late = sign(build(&mut tron, &solver, 1));
    clock.advance(61_000);
    tron.mine(1);
    let answer = post(&mut tron, "/wallet/broadcasttransaction", &late);
    assert_eq!(answer["code"], "TRANSACTION_EXPIRATION_ERROR");
}

#[test]
fn blocks_name_the_chain_and_follow_each_other() {
    let (mut tron, _) = node();
    tron.mine(50_000);
    let head = tron.height();
    let genesis = post(&mut tron, "/wallet/getblockbynum", &json!({"num": 0}));
    assert_eq!(genesis["blockID"], "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc");
    let mut last: Option<Value> = None;
    for number in (head - 50_010..head - 49_990).chain(head - 40..=head) {
        let block = post(&mut tron, "/wallet/getblockbynum", &json!({"num": number}));
        assert!(block["blockID"].as_str().unwrap().starts_with(&format!("{number:016x}")));
        let raw = &block["block_header"]["raw_data"];
        if let Some(last) = last.filter(|last| last["block_header"]["raw_data"]["number"] == number - 1) {
            assert_eq!(raw["parentHash"], last["blockID"]);
            assert!(raw["timestamp"].as_u64() > last["block_header"]["raw_data"]["timestamp"].as_u64());
        }
        last = Some(block);
    }
    assert_eq!(post(&mut tron, "/wallet/getnowblock", &json!({}))["block_header"]["raw_data"]["number"], head);
    assert_eq!(post(&mut tron, "/walletsolidity/getnowblock", &json!({}))["block_header"]["raw_data"]["number"], head - 19);
    assert_eq!(post(&mut tron, "/walletsolidity/getblockbynum", &json!({"num": head})), json!({}));
    tron.reorganize(5).unwrap();
    tron.mine(1);
    let block = post(&mut tron, "/wallet/getblock", &json!({"id_or_num": (head - 4).to_string()}));
    assert_eq!(block["block_header"]["raw_data"]["number"], head - 4);
    assert!(tron.reorganize(19).is_err());
}

#[test]
fn any_bytes_get_an_answer() {
    let (mut tron, user) = node();
    let methods = [
        "getnowblock",
        "getblockbynum",
        "getblock",
        "gettransactionbyid",
        "gettransactioninfobyid",
        "gettransactioninfobyblocknum",
        "getaccount",
        "getaccountresource",
        "getchainparameters",
        "getcontractinfo",
        "triggerconstantcontract",
        "triggersmartcontract",
        "createtransaction",
        "broadcasthex",
        "broadcasttransaction",
        "nothing",
    ];
    let bodies = [
        "".to_owned(), "{".to_owned(), "[1]".to_owned(), "{}".to_owned(), "\u{0}\u{1}".to_owned(),
        json!({"num": u64::MAX, "startNum": u64::MAX, "endNum": 0, "value": "zz", "address": "41", "transaction": "0a"}).to_string(),
        json!({"num": -1, "startNum": 0, "endNum": u64::MAX, "value": 5, "address": user, "visible": true, "transaction": "0affffffffff7f"}).to_string(),
        json!({"id_or_num": {"a": 1}, "raw_data_hex": "00", "signature": [1, "zz"], "owner_address": user, "contract_address": user, "visible": true, "data": "00"}).to_string(),
    ];
    for (method, body) in methods.iter().flat_map(|method| bodies.iter().map(move |body| (method, body))) {
        for path in ["wallet", "walletsolidity"] {
            for verb in ["POST", "GET"] {
                let reply = raw(&mut tron, verb, &format!("/{path}/{method}"), body.as_bytes());
                assert!(matches!(reply.status, 200 | 404), "{method}");
            }
        }
    }
    let garbage = post(&mut tron, "/wallet/getaccount", &json!({"address": "x"}));
    assert!(garbage["Error"].as_str().unwrap().starts_with("class org.tron.core"));
}
