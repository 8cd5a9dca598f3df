//! Tests what nodes refuse, and invalid requests.

use countersign::starknet::{Felt, InvokeTransaction, ResourceBound, ResourceBounds};
use countersign_node::starknet::TransactionStatus;
use countersign_sandbox::accounts::{self, RELAYER, USER};
use countersign_sandbox::chains::Engine;
use countersign_sandbox::http;
use serde_json::{Value, json};
use starknet_core::utils::get_selector_from_name;
use starknet_crypto::{get_public_key, rfc6979_generate_k, sign, verify};

use crate::stage::{STRK, Stage, engine, felt, hex, post};

/// Returns a transaction of the user with one call.
fn invoke(stage: &Stage, nonce: u64, amounts: [u64; 3], price: u128, call: &[Felt]) -> Value {
    let prices = [45_000_000_000_000, 3_000_000_000, 60_000].map(|least: u128| least * price / 10);
    let bound = |place: usize| ResourceBound::new(amounts[place], prices[place]);
    let bounds = ResourceBounds::new(bound(0), bound(1), bound(2));
    let mut transaction = InvokeTransaction::new(felt(&stage.user), call.to_vec(), Felt::from(nonce), bounds);
    transaction.tip = u64::try_from(price).unwrap();
    let key = Felt::from_bytes_be(&accounts::key(USER));
    let hash = transaction.hashes(Felt::from_bytes_be_slice(b"SN_MAIN")).tx_hash;
    let signature = sign(&key, &hash, &rfc6979_generate_k(&hash, &key, None)).unwrap();
    json!(transaction.with_signature(vec![signature.r, signature.s]))
}

const AMOUNTS: [u64; 3] = [0, 40_000_000, 5_000];

fn transfer(to: &str, amount: u64) -> Vec<Felt> {
    let selector = get_selector_from_name("transfer").unwrap();
    vec![Felt::ONE, felt(STRK), selector, Felt::THREE, felt(to), Felt::from(amount), Felt::ZERO]
}

/// Sends the user's first transaction, an approval for the asset's HTLC.
pub fn approve(stage: &Stage, asset: &str, amount: u128) {
    let listing = stage.engine(|engine| engine.listing());
    let listed = listing.assets.iter().find(|listed| listed["id"] == asset).unwrap();
    let address = |member: &str| felt(listed[member]["address"].as_str().unwrap());
    let selector = get_selector_from_name("approve").unwrap();
    let call = [Felt::ONE, address("token"), selector, Felt::THREE, address("htlc"), Felt::from(amount), Felt::ZERO];
    let sent = stage.rpc("starknet_addInvokeTransaction", &json!({"invoke_transaction": invoke(stage, 0, AMOUNTS, 20, &call)}));
    assert!(sent["transaction_hash"].is_string());
    stage.engine(|engine| engine.mine(1));
}

#[tokio::test]
async fn transactions_are_refused_as_nodes_refuse_them() {
    let stage = Stage::new();
    let relayer = stage.engine(|engine| engine.address_of(&accounts::key(RELAYER)));
    let pay = transfer(&relayer, 5);
    let send = |transaction: &Value| stage.raw("starknet_addInvokeTransaction", &json!({"invoke_transaction": transaction}));
    let code = |transaction: Value| send(&transaction)["error"]["code"].clone();
    assert_eq!(code(invoke(&stage, 1, AMOUNTS, 20, &pay)), 52);
    assert_eq!(code(invoke(&stage, 0, AMOUNTS, 9, &pay)), 53);
    assert_eq!(code(invoke(&stage, 0, [0, 1, 1], 20, &pay)), 53);
    assert_eq!(code(invoke(&stage, 0, [u64::MAX; 3], 20, &pay)), 54);
    let honest = invoke(&stage, 0, AMOUNTS, 20, &pay);
    let changed = |member: &str, value: Value| {
        let mut other = honest.clone();
        other[member] = value;
        other
    };
    assert_eq!(code(changed("signature", json!(["0x1", "0x2"]))), 55);
    assert_eq!(code(changed("signature", json!([]))), 55);
    assert_eq!(code(changed("sender_address", json!("0x1234"))), 55);
    assert_eq!(code(changed("version", json!("0x100000000000000000000000000000003"))), 61);
    assert_eq!(code(changed("calldata", json!(vec!["0x0"; 5_001]))), -32602);
    for (member, value) in [("version", json!("0x1")), ("nonce", json!(0)), ("calldata", json!(["1"])), ("tip", Value::Null)] {
        assert_eq!(code(changed(member, value)), -32602, "{member}");
    }
    let id = send(&honest)["result"]["transaction_hash"].clone();
    assert_eq!(code(honest.clone()), 59);
    // A replacement must offer at least a tenth more.
    assert_eq!(code(invoke(&stage, 0, AMOUNTS, 21, &pay)), 64);
    let other = send(&invoke(&stage, 0, AMOUNTS, 22, &transfer(&relayer, 7)))["result"]["transaction_hash"].clone();
    // A reverted transaction is also in a block, and costs a fee.
    let bad = send(&invoke(&stage, 1, AMOUNTS, 20, &transfer("0x0", 1)))["result"]["transaction_hash"].clone();
    let malformed = send(&invoke(&stage, 2, AMOUNTS, 20, &[Felt::TWO]))["result"]["transaction_hash"].clone();
    let gas = send(&invoke(&stage, 3, [0, 600_000, 5_000], 20, &pay))["result"]["transaction_hash"].clone();
    let nonce = |block: &str| stage.rpc("starknet_getNonce", &json!({"block_id": block, "contract_address": stage.user}));
    assert_eq!((nonce("latest"), nonce("pre_confirmed")), (json!("0x0"), json!("0x4")));
    let had = stage.engine(|engine| engine.balance(&relayer, "starknet:strk")).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!((nonce("latest"), stage.engine(|engine| engine.balance(&relayer, "starknet:strk"))), (json!("0x4"), Ok(had + 7)));
    assert_eq!(stage.status(id.as_str().unwrap()).await, None);
    assert_eq!(stage.status(other.as_str().unwrap()).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    for (hash, why) in [(bad, "ERC20: transfer to 0"), (malformed, "deserialize"), (gas, "Insufficient max l2_gas")] {
        let receipt = stage.rpc("starknet_getTransactionReceipt", &json!({"transaction_hash": hash}));
        assert!(receipt["revert_reason"].as_str().unwrap().contains(why), "{receipt}");
        assert_eq!((&receipt["execution_status"], receipt["events"].as_array().unwrap().len()), (&json!("REVERTED"), 1));
        assert_ne!(receipt["actual_fee"]["amount"], "0x0");
    }
    // The transaction is found by hash, in the block, and through its events.
    let block = stage.rpc("starknet_getBlockWithReceipts", &json!({"block_id": "latest"}));
    assert_eq!(block["transactions"].as_array().unwrap().len(), 4);
    assert_eq!(stage.rpc("starknet_getTransactionByHash", &json!({"transaction_hash": other}))["type"], "INVOKE");
    let mut filter = json!({"from_block": {"block_number": 0}, "address": STRK, "chunk_size": 2});
    assert_eq!(stage.raw("starknet_getEvents", &json!({"filter": filter}))["error"]["code"], 24);
    filter["from_block"] = json!({"block_number": block["block_number"]});
    let mut count = 0;
    loop {
        let page = stage.rpc("starknet_getEvents", &json!({"filter": filter}));
        count += page["events"].as_array().unwrap().len();
        filter["continuation_token"] = page["continuation_token"].clone();
        if filter["continuation_token"].is_null() {
            break;
        }
    }
    assert_eq!(count, 5, "one transfer and four fees");
}

#[test]
fn what_the_model_does_not_execute_is_refused_by_name() {
    let stage = Stage::new();
    let selector = |name: &str| get_selector_from_name(name).unwrap();
    let user = felt(&stage.user);
    for (to, function, words) in [
        (felt(STRK), selector("burn"), "the model does not execute the selector"),
        (felt(STRK), selector("transfer"), "the model does not execute transfer of"),
        (user, selector("__execute__"), "the model does not execute __execute__ of"),
        (Felt::from(0x1234), selector("initiate"), "the model does not execute initiate of"),
    ] {
        let transaction = invoke(&stage, 0, AMOUNTS, 20, &[Felt::ONE, to, function, Felt::ONE, Felt::ZERO]);
        let params = json!({"request": [transaction], "simulation_flags": [], "block_id": "pre_confirmed"});
        let error = stage.raw("starknet_estimateFee", &params)["error"].clone();
        assert_eq!(error["code"], 41);
        assert!(error["data"]["execution_error"].as_str().unwrap().contains(words), "{error}");
    }
}

/// Tests signatures for which the library would divide by zero. Making them takes the key, which is public here.
#[test]
fn signatures_that_break_the_library_are_refused() {
    let stage = Stage::new();
    // R = k G with s = hash / k: the recovered key would be the point at infinity. With k = 1, s is the hash.
    let (hash, r) = (Felt::from(77), get_public_key(&Felt::ONE));
    assert!(verify(&r, &hash, &r, &Felt::ONE).is_ok());
    let selector = hex(get_selector_from_name("is_valid_signature").unwrap());
    for (r, s) in [(r, hash), (Felt::ONE, Felt::ONE), (Felt::MAX, Felt::MAX), (Felt::ZERO, Felt::ZERO)] {
        for hash in [hash, Felt::ZERO, Felt::MAX] {
            let calldata = json!([hex(hash), "0x2", hex(r), hex(s)]);
            let request = json!({"contract_address": stage.user, "entry_point_selector": selector, "calldata": calldata});
            assert_eq!(stage.rpc("starknet_call", &json!({"request": request, "block_id": "latest"})), json!(["0x0"]));
        }
    }
}

#[test]
fn any_bytes_are_answered_with_an_error() {
    let mut engine = engine();
    let mut code = |body: &str| {
        let reply = post(&mut engine, body.as_bytes());
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        (reply.status, body["error"]["code"].as_i64().unwrap_or_default())
    };
    for (body, expected) in [
        ("", -32_700),
        ("{", -32_700),
        ("\u{0}\u{1}", -32_700),
        ("[]", -32_600),
        ("7", -32_600),
        ("null", -32_600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_what"}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_call","params":7}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_call","params":{}}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_getNonce","params":["latest","0x1"]}"#, 20),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"starknet_getNonce","params":["latest","0xfffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"]}"#,
            -32_602,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_getTransactionReceipt","params":["0x1"]}"#, 29),
    ] {
        assert_eq!(code(body), (200, expected), "{body}");
    }
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"starknet_chainId","params":[]}"#), (200, 0));
    assert_eq!(code(r#"{"jsonrpc":"2.0","method":"starknet_chainId"}"#).0, 204);
    let many = format!("[{}]", vec!["1"; 200].join(","));
    assert_eq!(code(&many), (200, -32_600));
    let (method, path) = ("GET".to_owned(), "/".to_owned());
    let get = http::Request { method, path, query: String::new(), headers: Vec::new(), body: Vec::new() };
    assert_eq!(engine.answer(&get).status, 405);
    // Calls every method with parameters of every shape.
    let methods = ["getStorageAt", "getClass", "getClassAt", "call", "estimateFee", "simulateTransactions", "getEvents", "getNonce"];
    let shapes = [json!(null), json!(""), json!("latest"), json!(-1), json!([]), json!({}), json!({"block_number": -1}), json!([[[]]])];
    for method in methods.iter().chain(&["addInvokeTransaction", "getBlockWithTxs", "getTransactionStatus"]) {
        for one in &shapes {
            for other in &shapes {
                let filter = json!({"address": one, "keys": other, "chunk_size": one, "from_block": other, "continuation_token": one});
                for params in [json!([one, other, other]), json!({"block_id": one, "request": other, "filter": filter})] {
                    let call = json!({"jsonrpc": "2.0", "id": 1, "method": format!("starknet_{method}"), "params": params});
                    let reply = post(&mut engine, call.to_string().as_bytes());
                    assert_eq!(reply.status, 200);
                }
            }
        }
    }
}
