//! Tests `countersign match --id`, which reads a transaction of any of the six families from its chain. The endpoints
//! must agree.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::matches::{Line, ORDERS, World, field};
use crate::support::{Reply, Seen, Server};

/// A frame of gRPC-web.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

/// A node of the chain of a line that has one transaction: the one that pays for `line`, under any id.
fn node(line: &Line) -> Server {
    let (bytes, id) = line.paying();
    let value = match line.family {
        "evm" => evm_json(&bytes),
        "tron" => line.tron(),
        "starknet" => line.invoke(),
        "solana" => json!({"slot": 1, "transaction": [STANDARD.encode(&bytes), "base64"], "meta": {"err": null}, "version": "legacy"}),
        _ => Value::Null,
    };
    let (transaction, signature) = if line.family == "sui" { line.sui() } else { (Vec::new(), Vec::new()) };
    Server::start(move |seen| answer(seen, &value, &bytes, &id, &transaction, &signature))
}

fn grpc(message: &[u8]) -> Reply {
    let body = [frame(0, message), frame(0x80, b"grpc-status:0\r\n")].concat();
    Reply::Whole(200, vec![("content-type", "application/grpc-web+proto".into())], body)
}

/// A Sui node's answer: its network, or the transaction of a line with this `ExecutionStatus`.
pub(crate) fn sui_answer(seen: &Seen, id: &str, [transaction, signature, status]: [&[u8]; 3]) -> Option<Reply> {
    match seen.path() {
        "/sui.rpc.v2.LedgerService/GetServiceInfo" => Some(grpc(&field(1, b"69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD"))),
        "/sui.rpc.v2.LedgerService/GetTransaction" => {
            let encoded = |bytes: &[u8]| field(1, &field(2, bytes));
            let effects = field(4, &field(4, status));
            let executed = [field(1, id.as_bytes()), field(2, &encoded(transaction)), field(3, &encoded(signature)), effects].concat();
            Some(grpc(&field(1, &executed)))
        }
        _ => None,
    }
}

/// The `ExecutionStatus` of a success.
pub(crate) const SUCCEEDED: &[u8] = &[8, 1];

fn answer(seen: &Seen, value: &Value, bytes: &[u8], id: &str, transaction: &[u8], signature: &[u8]) -> Reply {
    if let Some(reply) = sui_answer(seen, id, [transaction, signature, SUCCEEDED]) {
        return reply;
    }
    match seen.path() {
        "/wallet/getblockbynum" => {
            return Reply::json(200, format!(r#"{{"blockID":"{}2b6653dc","block_header":{{"raw_data":{{}}}}}}"#, "0".repeat(56)));
        }
        "/wallet/gettransactioninfobyid" => return Reply::json(200, "{}"),
        "/wallet/gettransactionbyid" => return Reply::json(200, value.to_string()),
        "/block-height/0" => {
            let genesis = "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943";
            return Reply::Whole(200, vec![("content-type", "text/plain".into())], genesis.as_bytes().to_vec());
        }
        path if path.ends_with("/raw") => {
            return Reply::Whole(200, vec![("content-type", "application/octet-stream".into())], bytes.to_vec());
        }
        _ => {}
    }
    let result = |call: &Value| {
        let result = match call["method"].as_str().unwrap() {
            "eth_chainId" => json!("0x2105"),
            "getGenesisHash" => json!("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"),
            "starknet_chainId" => json!("0x534e5f4d41494e"),
            "starknet_specVersion" => json!("0.9.0"),
            _ => value.clone(),
        };
        json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
    };
    let reply = match serde_json::from_str(&seen.text()).unwrap() {
        Value::Array(calls) => Value::Array(calls.iter().map(result).collect()),
        call => result(&call),
    };
    Reply::json(200, reply.to_string())
}

/// The JSON form of a transaction of type 2, as nodes return it.
pub(crate) fn evm_json(bytes: &[u8]) -> Value {
    use countersign::evm::alloy_consensus::Transaction as _;

    let transaction = countersign::evm::received::from_bytes(bytes).unwrap();
    let signature = transaction.signature();
    json!({
        "type": "0x2", "chainId": format!("{:#x}", transaction.chain_id().unwrap()), "nonce": format!("{:#x}", transaction.nonce()),
        "gas": format!("{:#x}", transaction.gas_limit()), "maxFeePerGas": format!("{:#x}", transaction.max_fee_per_gas()),
        "maxPriorityFeePerGas": format!("{:#x}", transaction.max_priority_fee_per_gas().unwrap()), "to": transaction.to().unwrap().to_string(),
        "value": format!("{:#x}", transaction.value()), "input": transaction.input().to_string(), "accessList": [],
        "r": format!("{:#x}", signature.r()), "s": format!("{:#x}", signature.s()), "yParity": if signature.v() { "0x1" } else { "0x0" },
        "hash": transaction.tx_hash().to_string(), "blockNumber": "0x10",
    })
}

/// A transaction by its id, from endpoints that must agree. An endpoint that shows another one counts as silent.
#[test]
fn a_transaction_is_read_from_the_chain_by_its_id() {
    let world = World::new("id");
    for (family, id, other) in ORDERS {
        let (line, other) = (Line::load(family, id), Line::load(family, other));
        let chain = line.value["request"]["source"]["asset"].as_str().unwrap().split(':').next().unwrap().to_owned();
        let (honest, second, lying) = (node(&line), node(&line), node(&other));
        let (_, paid) = line.paying();
        let nodes = |servers: &[&Server]| {
            let urls: Vec<_> =
                servers.iter().enumerate().map(|(at, server)| json!({"url": server.base, "provider": format!("p{at}")})).collect();
            world.home.file("nodes.json", &json!({&chain: urls}).to_string())
        };
        for servers in [&[&honest][..], &[&honest, &second], &[&honest, &lying, &second]] {
            let (code, shown) = world.run(&line, &["--id", &paid, "--nodes", &nodes(servers)]);
            assert_eq!((code, &shown["role"], &shown["transaction"]), (0, &json!("initiate"), &json!(paid)), "{family}: {shown}");
        }
        let (code, shown) = world.run(&line, &["--id", &paid, "--nodes", &nodes(&[&lying])]);
        assert_eq!((code, &shown["ok"]), (3, &json!(false)), "{family}: {shown}");
        // The transaction of another order is read, and differs.
        let (code, shown) = world.run(&line, &["--id", &other.paying().1, "--nodes", &nodes(&[&lying])]);
        let is_other_chain = shown["error"]["code"] == "node_wrong_chain";
        assert!(code == 1 && shown["error"]["code"] == "transaction_mismatch" || is_other_chain, "{family}: {shown}");
        let (code, shown) = world.run(&line, &["--id", "zz", "--nodes", &nodes(&[&honest])]);
        assert_eq!((code, &shown["error"]["code"]), (1, &json!("transaction_id_malformed")), "{family}: {shown}");
        assert_eq!(world.run(&line, &["--id", &paid]).0, 2, "{family}");
    }
}

#[test]
fn a_transaction_that_no_endpoint_knows_is_said_to_be_unknown() {
    let world = World::new("unknown");
    let line = Line::load("evm", "evm-native-record-v2");
    let server = Server::start(|seen| answer(seen, &Value::Null, b"", "", b"", b""));
    let nodes = world.home.file("nodes.json", &json!({"base": [server.base]}).to_string());
    let (code, shown) = world.run(&line, &["--id", &line.paying().1, "--nodes", &nodes]);
    assert_eq!((code, &shown["error"]["code"]), (3, &json!("transaction_unknown")), "{shown}");
}
