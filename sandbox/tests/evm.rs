//! Tests the sandbox's EVM chains. countersign pays, reads and redeems through their JSON-RPC interface.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

mod rpc;
mod wallet;

use std::sync::Arc;

use alloy_trie::proof::verify_proof;
use alloy_trie::{Nibbles, TrieAccount};
use countersign_proofs_evm::alloy_consensus::Header;
use countersign_proofs_evm::alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use countersign_sandbox::chains::Engine;
use countersign_sandbox::chains::evm::{Evm, Network};
use countersign_sandbox::clock::Clock;
use rpc::{GWEI, Node};
use serde_json::{Value, json};
use wallet::{Swap, post, raw};

fn own(network: Network, clock: Arc<Clock>) -> Box<dyn Engine> {
    Box::new(Evm::new(network, clock).unwrap())
}

fn node(chain: &str, id: u64) -> Node {
    Node::new(own, chain, id)
}

#[test]
fn a_token_is_swapped_without_gas() {
    rpc::a_token_is_swapped_without_gas(own);
}

#[test]
fn coins_are_swapped_by_transactions() {
    rpc::coins_are_swapped_by_transactions(own);
    let (chains, coins) = (rpc::chains(own, &[("arbitrum", 42161), ("bnbchain", 56)]), 1_000_000_000_000_000);
    Swap::new(&chains, ("arbitrum:wbtc", 50_000), ("bnbchain:bnb", coins)).run(false);
    Swap::new(&chains, ("bnbchain:bnb", coins), ("arbitrum:eth", coins)).run(false);
}

#[test]
fn a_token_that_resets_its_allowance_is_swapped() {
    rpc::a_token_that_resets_its_allowance_is_swapped(own);
}

#[test]
fn a_contract_is_allowed_without_the_owners_key() {
    rpc::a_contract_is_allowed_without_the_owners_key(own);
}

#[test]
fn the_owner_takes_it_back_after_the_timelock() {
    rpc::the_owner_takes_it_back_after_the_timelock(own);
    let chains = rpc::chains(own, &[("base", 8453), ("ethereum", 1)]);
    Swap::new(&chains, ("base:usdc", 1_500_000), ("ethereum:wbtc", 50_000)).refund();
}

#[test]
fn a_delegate_pays() {
    let chains = rpc::chains(own, &[("base", 8453), ("ethereum", 1)]);
    let delegate = "0x35A026182A63fb0Dc4578cF1C89bEa754Bad72f4".to_owned();
    let swap = Swap::new(&chains, ("base:usdc", 1_500_000), ("ethereum:wbtc", 50_000)).with_delegate(delegate);
    let line = swap.line();
    assert_eq!(line["response"]["result"]["typed_data"], Value::Null);
    assert!(line["response"]["result"]["initiate_transaction"]["data"].as_str().unwrap().starts_with("0x13d4a787"));
    swap.record();
}

// ---- the node

#[test]
fn blocks_follow_each_other() {
    rpc::blocks_follow_each_other(own);
}

#[test]
fn a_reorganization_takes_back_what_blocks_held() {
    let gone = rpc::a_reorganization_takes_back_what_blocks_held(own);
    assert_eq!(gone, (-32_000, "header for hash not found".to_owned()));
}

#[test]
fn events_of_blocks_that_were_taken_back_are_not_told() {
    rpc::events_of_blocks_that_were_taken_back_are_not_told(own);
}

#[test]
fn the_pool_has_the_rules_of_geth() {
    let mut node = node("ethereum", 1);
    let first = node.payment(0, 3 * GWEI, 1);
    let id = node.send(&first).unwrap();
    assert_eq!(node.send(&first).unwrap_err(), "already known");
    assert_eq!(node.send(&node.payment(0, 3 * GWEI + 1, 2)).unwrap_err(), "replacement transaction underpriced");
    let replaced = node.send(&node.payment(0, 4 * GWEI, 2)).unwrap();
    assert_eq!(node.ask("eth_getTransactionByHash", json!([id])).unwrap(), Value::Null);
    assert_eq!(node.ask("eth_getTransactionByHash", json!([replaced])).unwrap()["blockHash"], Value::Null);
    // A transaction after a nonce gap is pending.
    let last = node.send(&node.payment(2, 3 * GWEI, 3)).unwrap();
    let account = node.user.address().to_string();
    assert_eq!(node.ask("eth_getTransactionCount", json!([account, "pending"])).unwrap(), json!("0x1"));
    assert_eq!(node.ask("eth_getTransactionCount", json!([account, "latest"])).unwrap(), json!("0x0"));
    node.evm.mine(1);
    assert_eq!(node.evm.pending(), 1);
    assert_eq!(node.ask("eth_getTransactionReceipt", json!([replaced])).unwrap()["status"], "0x1");
    assert_eq!(node.ask("eth_getTransactionReceipt", json!([last])).unwrap(), Value::Null);
    assert_eq!(node.send(&first).unwrap_err(), "nonce too low: next nonce 1, tx nonce 0");
    node.send(&node.payment(1, 3 * GWEI, 3)).unwrap();
    node.evm.mine(1);
    assert_eq!(node.evm.pending(), 0);
    // A transaction that offers less than the base fee stays pending until it is replaced.
    node.send(&node.payment(3, GWEI - 1, 3)).unwrap();
    node.evm.mine(2);
    assert_eq!(node.evm.pending(), 1);

    let refused = [
        (node.payment(3, 10 * GWEI, u64::MAX), "insufficient funds for gas * price + value: balance"),
        ("0x02f8".to_owned(), "rlp: "),
        ("0x".to_owned(), "rlp: "),
        (node.payment(3, 0, 1), "transaction underpriced: gas tip cap 0, minimum needed 50000000"),
    ];
    for (raw, message) in refused {
        assert!(node.send(&raw).unwrap_err().starts_with(message), "{message}");
    }
    let mut base = Node::new(own, "base", 8453);
    let other = base.payment(0, GWEI, 1);
    assert_eq!(base.send(&other).unwrap_err(), "invalid chain id for signer: have 1 want 8453");
}

#[test]
fn blocks_follow_each_other_and_hash_as_on_ethereum() {
    let mut node = node("ethereum", 1);
    node.send(&node.payment(0, 3 * GWEI, 1)).unwrap();
    node.evm.mine(1);
    let head = node.evm.height();
    node.evm.mine(100_000);
    assert_eq!(node.evm.height(), head + 100_000);
    node.evm.mine(1);
    let mut child: Option<Value> = None;
    let numbers = (0..40).chain(99_950..100_002).map(|offset| head - 5 + offset);
    for number in numbers.rev() {
        let block = node.ask("eth_getBlockByNumber", json!([format!("{number:#x}"), false])).unwrap();
        if let Some(child) = child.filter(|child| child["number"] == format!("{:#x}", number + 1)) {
            assert_eq!(child["parentHash"], block["hash"], "{number}");
            let time = |block: &Value| u64::from_str_radix(&block["timestamp"].as_str().unwrap()[2..], 16).unwrap();
            assert!(time(&child) >= time(&block));
        }
        let by_hash = node.ask("eth_getBlockByHash", json!([block["hash"], false])).unwrap();
        assert_eq!(by_hash["number"], block["number"]);
        child = Some(block);
    }
    let marks = ["latest", "safe", "finalized"].map(|tag| {
        let block = node.ask("eth_getBlockByNumber", json!([tag, true])).unwrap();
        u64::from_str_radix(&block["number"].as_str().unwrap()[2..], 16).unwrap()
    });
    let head = node.evm.height();
    assert_eq!(marks, [head, head - 32, head - 64]);
    assert_eq!(node.ask("eth_getBlockByNumber", json!([format!("{:#x}", head + 1), false])).unwrap(), Value::Null);
    assert_eq!(node.ask("eth_getBlockByNumber", json!(["earliest", false])).unwrap()["number"], "0x0");
}

/// Returns a block's header, computed from its members by independent code.
fn header(block: &Value) -> Header {
    let number = |name: &str| u64::from_str_radix(&block[name].as_str().unwrap()[2..], 16).unwrap();
    let word = |name: &str| block[name].as_str().unwrap().parse::<B256>().unwrap();
    Header {
        parent_hash: word("parentHash"),
        ommers_hash: word("sha3Uncles"),
        beneficiary: block["miner"].as_str().unwrap().parse().unwrap(),
        state_root: word("stateRoot"),
        transactions_root: word("transactionsRoot"),
        receipts_root: word("receiptsRoot"),
        logs_bloom: block["logsBloom"].as_str().unwrap().parse().unwrap(),
        number: number("number"),
        gas_limit: number("gasLimit"),
        gas_used: number("gasUsed"),
        timestamp: number("timestamp"),
        extra_data: block["extraData"].as_str().unwrap().parse().unwrap(),
        base_fee_per_gas: Some(number("baseFeePerGas")),
        ..Header::default()
    }
}

#[test]
fn headers_hash_and_the_state_of_any_of_them_is_proven() {
    let mut node = node("ethereum", 1);
    let assets = node.evm.listing().assets;
    let token: Address = assets[1]["token"]["address"].as_str().unwrap().parse().unwrap();
    let mut supplies = Vec::new();
    for round in 0..3_u32 {
        node.evm.fund(&Address::repeat_byte(0x77).to_string(), "ethereum:usdc", 1_000).unwrap();
        node.send(&node.payment(round.into(), 3 * GWEI, 1)).unwrap();
        node.evm.mine(2);
        supplies.push(node.evm.height());
    }
    let mut proven = Vec::new();
    for number in supplies {
        let block = node.ask("eth_getBlockByNumber", json!([format!("{number:#x}"), false])).unwrap();
        let header = header(&block);
        assert_eq!(block["hash"], header.hash_slow().to_string());
        let at = json!({"blockHash": block["hash"], "requireCanonical": true});
        // The slot of the total supply, and an empty one.
        let proof = node.ask("eth_getProof", json!([token, ["0x2", format!("0x{:064x}", 99)], at])).unwrap();
        let nodes = |nodes: &Value| serde_json::from_value::<Vec<Bytes>>(nodes.clone()).unwrap();
        let word = |value: &Value| value.as_str().unwrap().parse::<U256>().unwrap();
        let storage_root: B256 = proof["storageHash"].as_str().unwrap().parse().unwrap();
        #[allow(clippy::needless_update, reason = "a feature that another crate may turn on adds a member")]
        let account = TrieAccount {
            nonce: 1,
            balance: U256::ZERO,
            storage_root,
            code_hash: proof["codeHash"].as_str().unwrap().parse().unwrap(),
            ..TrieAccount::default()
        };
        let key = |bytes: &[u8]| Nibbles::unpack(keccak256(bytes));
        let leaf = Some(alloy_rlp::encode(account));
        verify_proof(header.state_root, key(token.as_slice()), leaf, &nodes(&proof["accountProof"])).unwrap();
        for (slot, entry) in [2_u64, 99].into_iter().zip(proof["storageProof"].as_array().unwrap()) {
            let value = word(&entry["value"]);
            let leaf = (!value.is_zero()).then(|| alloy_rlp::encode(value));
            verify_proof(storage_root, key(&U256::from(slot).to_be_bytes::<32>()), leaf, &nodes(&entry["proof"])).unwrap();
            proven.push(value);
        }
    }
    let [first, _, second, _, third, _] = proven.try_into().unwrap();
    assert_eq!((second - first, third - second), (U256::from(1_000), U256::from(1_000)));
}

#[test]
fn arbitrum_shows_the_height_of_ethereum() {
    let mut node = node("arbitrum", 42_161);
    let block = node.ask("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    assert!(block["l1BlockNumber"].as_str().unwrap().len() > 6);
}

#[test]
fn calls_take_overrides_and_say_why_they_fail() {
    let mut node = node("ethereum", 1);
    let assets = node.evm.listing().assets;
    let htlc = assets[1]["htlc"]["address"].as_str().unwrap().to_owned();
    // Redeems an order that does not exist.
    let data = format!("0xf7ff7207{}{:064x}{:064x}{}", "11".repeat(32), 64, 32, "22".repeat(32));
    let answer = post(node.evm.as_mut(), "/", &json!({"id": 1, "method": "eth_call", "params": [{"to": htlc, "data": data}, "latest"]}));
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(3), &json!("execution reverted")));
    // The contract's custom error.
    let selector = hex::encode_prefixed(&keccak256(b"HTLC__OrderNotInitiated()")[..4]);
    assert_eq!(answer["error"]["data"], selector);
    let error = node.ask("eth_estimateGas", json!([{"to": htlc, "data": data}])).unwrap_err();
    assert_eq!(error.0, 3);
    // Code that returns its own account's balance.
    let overrides = json!({htlc.clone(): {"code": "0x4760005260206000f3", "balance": "0x2a"}});
    let answer = node.ask("eth_call", json!([{"to": htlc}, "latest", overrides])).unwrap();
    assert_eq!(answer, format!("0x{:064x}", 42));
    // Code that returns its storage slot 1.
    let overrides =
        json!({htlc.clone(): {"code": "0x60015460005260206000f3", "stateDiff": {format!("0x{:064x}", 1): format!("0x{:064x}", 9)}}});
    assert_eq!(node.ask("eth_call", json!([{"to": htlc}, "latest", overrides])).unwrap(), format!("0x{:064x}", 9));
    let gas = node.ask("eth_estimateGas", json!([{"from": node.user.address(), "to": Address::repeat_byte(5), "value": "0x1"}])).unwrap();
    assert_eq!(gas, "0x5208");
    let poor = node.ask("eth_estimateGas", json!([{"from": Address::repeat_byte(6), "to": Address::repeat_byte(5), "value": "0x1"}]));
    assert_eq!(poor.unwrap_err().1, "insufficient funds for gas * price + value");
}

#[test]
fn calls_are_simulated_on_top_of_each_other() {
    let mut node = node("ethereum", 1);
    let assets = node.evm.listing().assets;
    let (token, htlc) = (&assets[1]["token"]["address"], &assets[1]["htlc"]["address"]);
    let (user, to) = (node.user.address(), Address::repeat_byte(5));
    let approve = format!("0x095ea7b3{:0>64}{:064x}", htlc.as_str().unwrap()[2..].to_owned(), 9);
    let allowance = format!("0xdd62ed3e{:0>64}{:0>64}", hex::encode(user), htlc.as_str().unwrap()[2..].to_owned());
    let calls = json!([
        {"from": user, "to": to, "value": "0x7"},
        {"from": user, "to": token, "data": approve},
        {"from": user, "to": token, "data": allowance},
        {"from": user, "to": htlc, "data": "0x12345678"},
    ]);
    let request = json!({"blockStateCalls": [{"calls": calls}, {"calls": []}], "traceTransfers": true, "validation": false});
    let blocks = node.ask("eth_simulateV1", json!([request, "latest"])).unwrap();
    let outcomes = blocks[0]["calls"].as_array().unwrap();
    assert_eq!(outcomes.iter().map(|outcome| outcome["status"].as_str().unwrap()).collect::<Vec<_>>(), ["0x1", "0x1", "0x1", "0x0"]);
    let traced = &outcomes[0]["logs"][0];
    assert_eq!((&traced["address"], &traced["data"]), (&json!(Address::repeat_byte(0xee)), &json!(format!("0x{:064x}", 7))));
    assert_eq!(outcomes[2]["returnData"], format!("0x{:064x}", 9));
    assert_eq!(outcomes[3]["error"]["code"], 3);
    assert_eq!(blocks[1]["parentHash"], blocks[0]["hash"]);
    // The simulation changed nothing.
    assert_eq!(node.ask("eth_getBalance", json!([to, "latest"])).unwrap(), "0x0");
}

#[test]
fn any_bytes_get_an_answer() {
    let mut node = node("ethereum", 1);
    let bodies: [&[u8]; 9] = [
        b"",
        b"\xff\xfe",
        b"{",
        b"[]",
        b"null",
        b"[1, {}, [], \"x\"]",
        br#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":{"to":1}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        br#"{"jsonrpc":"2.0","id":{"a":[1]},"method":"debug_traceTransaction","params":[]}"#,
    ];
    for body in bodies {
        let reply = raw(node.evm.as_mut(), "POST", "/", body);
        assert_eq!(reply.status, 200);
        assert!(String::from_utf8(reply.body).unwrap().contains("\"error\""), "{}", String::from_utf8_lossy(body));
    }
    assert_eq!(raw(node.evm.as_mut(), "GET", "/", b"").status, 405);
    let methods = [
        "eth_getBlockByNumber",
        "eth_getBlockByHash",
        "eth_getTransactionByHash",
        "eth_getTransactionReceipt",
        "eth_getTransactionCount",
        "eth_getBalance",
        "eth_getCode",
        "eth_call",
        "eth_estimateGas",
        "eth_simulateV1",
        "eth_getLogs",
        "eth_getProof",
        "eth_feeHistory",
        "eth_sendRawTransaction",
    ];
    let account = format!("0x{}", "00".repeat(20));
    let values = [
        json!([]),
        json!([null]),
        json!([1]),
        json!(["0x"]),
        json!(["0xzz", "0x00"]),
        json!([{}]),
        json!(["latest", "latest", "latest"]),
        json!([{"blockStateCalls": [{"calls": [{"gas": "0xffffffffffffffff"}]}, {"blockOverrides": {"number": "0xffffffffffffffff"}}]}]),
        json!([{"fromBlock": "0x0", "toBlock": "0xffffffffffffffff", "topics": [null, [], ["0x11"]]}]),
        json!([{"fromBlock": "latest", "toBlock": "earliest"}]),
        json!(["0xffffffffffffffff", "latest", [1, 2]]),
        json!([account, [format!("0x{}", "f".repeat(65))], "latest"]),
        json!([account, "0x0", "0x1"]),
        json!([{"to": account, "value": format!("0x{}", "f".repeat(64))}, "pending", {account.clone(): {"state": {"0x1": "0x2"}, "balance": "0xff"}}]),
    ];
    for (method, params) in methods.iter().flat_map(|method| values.iter().map(move |params| (method, params))) {
        let _ = node.ask(method, params.clone());
    }
    let batch: Vec<_> = (0..3).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "eth_blockNumber"})).collect();
    let answers = post(node.evm.as_mut(), "/", &json!(batch));
    assert_eq!(answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
}
