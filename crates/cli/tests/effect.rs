//! `countersign match`: the transaction of another account, which paid for the owner, on Tron, Starknet and Solana. Bundled calls of EVM are in
//! `matches.rs`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::solana::solana_instruction::{AccountMeta, Instruction};
use countersign::solana::solana_message::{Message, VersionedMessage};
use countersign::solana::solana_signature::Signature;
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{Address, read};
use countersign::tron;
use serde_json::{Value, json};

use crate::matches::{Line, World, field};
use crate::matches_by_id::{SUCCEEDED, evm_json, sui_answer};
use crate::support::{Reply, Server};

/// Returns a Tron node's answer about a transaction of a contract with several owners that pays for an order.
fn info(line: &Line, id: &str, more: u64) -> Value {
    let swap = &line.value["order"]["source_swap"];
    let amount = swap["amount"].as_str().unwrap().parse::<u64>().unwrap() + more;
    let contract = line.value["response"]["result"]["initiate_transaction"]["to"].as_str().unwrap();
    let contract = tron::Address::parse(contract).unwrap();
    let log = |name: &str, data: &str| {
        let topics = json!([name, swap["swap_id"], swap["secret_hash"], format!("{amount:064x}")]);
        json!({"address": hex::encode(contract.bytes()), "topics": topics, "data": data})
    };
    // The destination data is empty: its offset and its length.
    let logs = [
        log("01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65", ""),
        log("380328b26f928a9e51ec19f8e2199a2bce34db266d093d1e0104bce139ed7555", &format!("{:064x}{:064x}", 32, 0)),
    ];
    json!({"id": id, "blockNumber": 60_000_000, "contractResult": [""], "receipt": {"result": "SUCCESS"}, "log": logs})
}

/// Returns a Starknet node's answer about a transaction of a paymaster that pays for an order.
fn receipt(line: &Line, id: &str, more: u64) -> Value {
    let swap = &line.value["order"]["source_swap"];
    let amount = swap["amount"].as_str().unwrap().parse::<u64>().unwrap() + more;
    let hash = swap["secret_hash"].as_str().unwrap();
    let words = (0..8).map(|word| format!("0x{}", &hash[8 * word..8 * word + 8]));
    let data: Vec<_> = words.chain([format!("{amount:#x}"), "0x0".to_owned()]).collect();
    let initiated = "0xebf924f11f1ca1dec8c58c339f9ee9d29f63da2478b85366a1a80ca432b972";
    let keys = json!([initiated, format!("0x{}", swap["swap_id"].as_str().unwrap())]);
    let event = json!({"from_address": line.value["response"]["result"]["initiate_transaction"]["to"], "keys": keys, "data": data});
    json!({
        "type": "INVOKE", "transaction_hash": id, "finality_status": "ACCEPTED_ON_L2", "execution_status": "SUCCEEDED",
        "block_number": 9, "events": [event],
    })
}

/// Returns a Solana node's answer about a program's transaction that calls the instruction of an order's own
/// transaction for the owner.
fn called(line: &Line, encoding: &str, change: impl FnOnce(&mut Vec<u8>)) -> (Value, String) {
    let own = read::transaction(&line.paying().0).unwrap().message;
    let keys = own.static_account_keys();
    let program = |index: u8| keys[usize::from(index)];
    let instruction = own.instructions().iter().find(|each| each.accounts.len() > 1).unwrap();
    let metas = instruction.accounts.iter().map(|index| AccountMeta::new(program(*index), false));
    let called = program(instruction.program_id_index);
    let accounts = metas.chain([AccountMeta::new_readonly(called, false)]).collect();
    let outer = Instruction { program_id: Address::from([0x77; 32]), accounts, data: vec![1] };
    let message = Message::new(&[outer], Some(&Address::from([9; 32])));
    let index = |key: &Address| message.account_keys.iter().position(|other| other == key).unwrap();
    let accounts: Vec<_> = instruction.accounts.iter().map(|at| index(&program(*at))).collect();
    let mut data = instruction.data.clone();
    change(&mut data);
    let inner = json!({"programIdIndex": index(&called), "accounts": accounts, "data": bs58::encode(data).into_string(), "stackHeight": 2});
    let meta = json!({"err": null, "innerInstructions": [{"index": 0, "instructions": [inner]}]});
    let signature = Signature::from([5; 64]);
    let transaction = if encoding == "json" {
        let keys: Vec<_> = message.account_keys.iter().map(ToString::to_string).collect();
        let outer = &message.instructions[0];
        let outer = json!({"programIdIndex": outer.program_id_index, "accounts": outer.accounts, "data": "2"});
        json!({"signatures": [signature.to_string()], "message": {"accountKeys": keys, "instructions": [outer]}})
    } else {
        let transaction = VersionedTransaction { signatures: vec![signature], message: VersionedMessage::Legacy(message) };
        json!([STANDARD.encode(read::transaction_bytes(&transaction)), "base64"])
    };
    (json!({"slot": 1, "transaction": transaction, "meta": meta, "version": "legacy"}), signature.to_string())
}

#[test]
fn a_payment_of_another_account_is_proven_by_its_effect() {
    let world = World::new("effect");
    let envelope = |result: &Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let tron = Line::load("tron", "tron-record-native-v3");
    let id = "77".repeat(32);
    let solana = Line::load("solana", "solana-native-legacy");
    let [(base64, signature), (decoded, _)] = ["base64", "json"].map(|encoding| called(&solana, encoding, |_| {}));
    let starknet = Line::load("starknet", "starknet-2025-11");
    let hash = format!("0x7{}", "07".repeat(31));
    let proven = [
        (&tron, info(&tron, &id, 0), &id),
        (&starknet, receipt(&starknet, &hash, 0), &hash),
        (&starknet, envelope(&receipt(&starknet, &hash, 0)), &hash),
        (&solana, base64.clone(), &signature),
        (&solana, envelope(&base64), &signature),
        (&solana, decoded.clone(), &signature),
        (&solana, envelope(&decoded), &signature),
    ];
    for (line, effect, id) in proven {
        let (code, shown) = world.of(line, effect.to_string().as_bytes());
        assert_eq!((code, &shown["role"], &shown["form"]), (0, &json!("initiate"), &json!("calls")), "{effect}: {shown}");
        assert_eq!(&shown["transaction"], &json!(id), "{shown}");
        let not_proven = shown["not_proven"].as_str().unwrap();
        assert!(not_proven.contains("wallet or node states the truth") && not_proven.contains("what else the transaction did"), "{shown}");
    }
    let mut failed = info(&tron, &id, 0);
    failed["receipt"]["result"] = json!("OUT_OF_ENERGY");
    let mut reverted = decoded;
    reverted["meta"]["err"] = json!({"InstructionError": [0, {"Custom": 1}]});
    let amount = |data: &mut Vec<u8>| data[8] ^= 1;
    let [(other, _), (other_decoded, _)] = ["base64", "json"].map(|encoding| called(&solana, encoding, amount));
    for (line, effect, at) in [
        (&tron, info(&tron, &id, 1), "/calls/log/0"),
        (&tron, failed, "/calls/receipt/result"),
        (&starknet, receipt(&starknet, &hash, 1), "/calls/events/0"),
        (&solana, reverted, "/calls/meta/err"),
        (&solana, other_decoded, "/calls/meta/innerInstructions/0/instructions/0/data"),
        // With the bytes that were signed, it is the difference from the owner's own transaction.
        (&solana, other, "/transaction/message/account_keys/0"),
    ] {
        let (code, shown) = world.of(line, effect.to_string().as_bytes());
        assert_eq!((code, &shown["error"]["code"]), (1, &json!("transaction_mismatch")), "{effect}: {shown}");
        assert_eq!(&shown["error"]["at"], &json!(at), "{shown}");
        assert!(!shown.to_string().contains("do not sign"), "{shown}");
    }
}

/// A Tron node that shows one transaction and its effects.
fn tron_node(sent: Value, info: Value) -> Server {
    Server::start(move |seen| match seen.path() {
        "/wallet/getblockbynum" => {
            Reply::json(200, format!(r#"{{"blockID":"{}2b6653dc","block_header":{{"raw_data":{{}}}}}}"#, "0".repeat(56)))
        }
        "/wallet/gettransactioninfobyid" => Reply::json(200, info.to_string()),
        _ => Reply::json(200, sent.to_string()),
    })
}

/// A node that answers every method of JSON-RPC but those for its identity with `result`.
fn rpc(result: impl Fn(&str) -> Value + Send + Sync + 'static) -> Server {
    Server::start(move |seen| {
        let reply = |call: &Value| {
            let result = match call["method"].as_str().unwrap() {
                "eth_chainId" => json!("0x2105"),
                "getGenesisHash" => json!("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"),
                "starknet_chainId" => json!("0x534e5f4d41494e"),
                "starknet_specVersion" => json!("0.9.0"),
                method => result(method),
            };
            json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
        };
        let reply = match serde_json::from_str(&seen.text()).unwrap() {
            Value::Array(calls) => Value::Array(calls.iter().map(reply).collect()),
            call => reply(&call),
        };
        Reply::json(200, reply.to_string())
    })
}

/// A Sui node that shows the transaction of a line with this `ExecutionStatus`.
fn sui_node(line: &Line, status: &[u8]) -> Server {
    let ((transaction, signature), (_, id), status) = (line.sui(), line.paying(), status.to_vec());
    Server::start(move |seen| sui_answer(seen, &id, [&transaction, &signature, &status]).unwrap())
}

/// The owner's own transaction, in an answer that reports failure: it locked nothing.
#[test]
fn an_own_transaction_that_failed_is_refused() {
    let world = World::new("failed");
    let solana = Line::load("solana", "solana-native-legacy");
    let encoded = STANDARD.encode(solana.paying().0);
    let in_block = |error: Value| json!({"slot": 1, "transaction": [encoded, "base64"], "meta": {"err": error}, "version": "legacy"});
    let error = json!({"InstructionError": [2, {"Custom": 1}]});
    let tron = Line::load("tron", "tron-token-approval-exact");
    let with_outcome = |outcome: &str| {
        let mut sent = tron.tron();
        sent["ret"] = json!([{"contractRet": outcome}]);
        sent
    };
    let sui = Line::load("sui", "sui-native");
    let encoded = STANDARD.encode(sui.paying().0);
    let executed = |status: Value| json!({"digest": "", "rawTransaction": encoded, "effects": {"status": status}});
    let evm = Line::load("evm", "evm-native-record-v2");
    let with_status = |status: &str| {
        let mut sent = evm_json(&evm.paying().0);
        sent["status"] = json!(status);
        sent
    };
    let starknet = Line::load("starknet", "starknet-2025-11");
    let with_receipt = |status: &str| {
        let mut sent = starknet.invoke();
        sent["execution_status"] = json!(status);
        sent
    };
    let with_status_of_both = |status: &str| {
        let mut sent = starknet.invoke();
        sent["status"] = json!(status);
        sent
    };
    let envelope = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    // What is around a transaction of another form states it as well.
    let around = |mut outer: Value, member: &str, sent: Value| {
        outer[member] = sent;
        outer
    };
    let solana_text = json!(STANDARD.encode(solana.paying().0));
    let in_words = |status: Value| around(json!({"meta": {"status": status}}), "transaction", solana_text.clone());
    let broadcast = |answer: Value| around(answer, "transaction", tron.tron());
    let raw = |status: Value| around(json!({"status": status}), "raw", json!(format!("0x{}", hex::encode(evm.paying().0))));
    let returned = |effects: &[u8]| {
        let (bytes, signature) = sui.sui();
        let [bytes, signature, effects] = [&bytes, &signature, effects].map(|bytes| STANDARD.encode(bytes));
        json!({"bytes": bytes, "signature": signature, "digest": "", "effects": effects})
    };
    let bitcoin = Line::load("bitcoin", "bitcoin-p2wpkh");
    let in_wallet =
        |confirmations: i64| around(json!({"amount": -0.5, "confirmations": confirmations}), "hex", json!(hex::encode(bitcoin.paying().0)));
    for (line, succeeded, failed, at) in [
        (&solana, in_block(Value::Null), in_block(error.clone()), "/calls/meta/err"),
        (&solana, envelope(in_block(Value::Null)), envelope(in_block(error.clone())), "/calls/meta/err"),
        (&solana, in_words(json!({"Ok": null})), in_words(json!({"Err": error})), "/calls/meta/status/Err"),
        (&tron, broadcast(json!({"result": true})), broadcast(json!({"code": "SIGERROR", "message": ""})), "/calls/code"),
        (
            &tron,
            broadcast(json!({"code": "DUP_TRANSACTION_ERROR", "result": false})),
            broadcast(json!({"code": "?", "result": false})),
            "/calls/result",
        ),
        (&evm, raw(json!("0x1")), raw(json!("0x0")), "/calls/status"),
        (&evm, envelope(raw(json!("later"))), envelope(raw(json!("dropped"))), "/calls/status"),
        (&starknet, envelope(with_status_of_both("PENDING")), envelope(with_status_of_both("REVERTED")), "/transaction/status"),
        (&sui, returned(&[1, 0, 9]), returned(&[1, 1, 9]), "/calls/effects"),
        (&bitcoin, in_wallet(3), in_wallet(-3), "/calls/confirmations"),
        (&tron, with_outcome("SUCCESS"), with_outcome("OUT_OF_ENERGY"), "/transaction/ret/0/contractRet"),
        (&evm, with_status("0x1"), with_status("0x0"), "/transaction/status"),
        (&starknet, with_receipt("SUCCEEDED"), with_receipt("REVERTED"), "/transaction/execution_status"),
        (
            &sui,
            executed(json!({"status": "success"})),
            executed(json!({"status": "failure", "error": "MoveAbort"})),
            "/calls/effects/status/status",
        ),
    ] {
        let (code, shown) = world.of(line, succeeded.to_string().as_bytes());
        assert_eq!((code, &shown["role"], &shown["form"]), (0, &json!("initiate"), &json!("transaction")), "{succeeded}: {shown}");
        let (code, shown) = world.of(line, failed.to_string().as_bytes());
        assert_eq!((code, &shown["error"]["code"]), (1, &json!("transaction_mismatch")), "{failed}: {shown}");
        assert_eq!(&shown["error"]["at"], &json!(at), "{shown}");
        assert!(shown["error"]["message"].as_str().unwrap().contains("the transaction failed"), "{shown}");
    }
}

/// The owner's own transaction by its id, of which the endpoints show that it failed. Without a receipt, it is only the order's. One of Bitcoin
/// does not fail: it has the output of the order, or no node takes it.
#[test]
fn an_own_payment_that_failed_is_refused_by_the_id() {
    let world = World::new("failed-id");
    let (evm, tron) = (Line::load("evm", "evm-native-record-v2"), Line::load("tron", "tron-record-native-v3"));
    let (starknet, solana) = (Line::load("starknet", "starknet-2025-11"), Line::load("solana", "solana-native-legacy"));
    let (sui, unpinned) = (Line::load("sui", "sui-native"), Line::load("starknet", "starknet-strk"));
    let aborted = [&[8, 0][..], &field(2, &field(1, b"MoveAbort"))].concat();
    let reverted = json!({
        "transactionHash": evm.paying().1, "status": "0x0", "logs": [], "blockNumber": "0x10", "blockHash": format!("0x{}", "0b".repeat(32)),
    });
    let mut out_of_energy = info(&tron, &tron.paying().1, 0);
    out_of_energy["receipt"]["result"] = json!("OUT_OF_ENERGY");
    let mut refused = receipt(&starknet, &starknet.paying().1, 0);
    refused["execution_status"] = json!("REVERTED");
    let failed = json!({
        "slot": 1, "transaction": [STANDARD.encode(solana.paying().0), "base64"], "version": "legacy",
        "meta": {"err": {"InstructionError": [2, {"Custom": 1}]}},
    });
    let (sent_evm, sent_tron) = (evm_json(&evm.paying().0), tron.tron());
    // The events of this contract are not known, so they prove no payment. That it reverted is shown nevertheless.
    let mut succeeded = receipt(&starknet, &unpinned.paying().1, 0);
    succeeded["events"] = json!([]);
    let mut reverted_too = succeeded.clone();
    reverted_too["execution_status"] = json!("REVERTED");
    let evm_node = |effect: Value| {
        let sent = sent_evm.clone();
        rpc(move |method| if method == "eth_getTransactionReceipt" { effect.clone() } else { sent.clone() })
    };
    let starknet_node = |line: &Line, effect: Value| {
        let sent = line.invoke();
        rpc(move |method| if method == "starknet_getTransactionReceipt" { effect.clone() } else { sent.clone() })
    };
    for (line, node, expected) in [
        (&evm, evm_node(reverted), Some("/calls/")),
        (&evm, evm_node(Value::Null), None),
        (&tron, tron_node(sent_tron.clone(), out_of_energy), Some("/calls/receipt/result")),
        (&tron, tron_node(sent_tron, json!({})), None),
        (&starknet, starknet_node(&starknet, refused), Some("/calls/execution_status")),
        (&starknet, starknet_node(&starknet, Value::Null), None),
        (&unpinned, starknet_node(&unpinned, succeeded), None),
        (&unpinned, starknet_node(&unpinned, reverted_too), Some("/calls/execution_status")),
        (&solana, rpc(move |_| failed.clone()), Some("/calls/meta/err")),
        (&sui, sui_node(&sui, &aborted), Some("/transaction/effects/status")),
        (&sui, sui_node(&sui, SUCCEEDED), None),
    ] {
        let chain = line.value["request"]["source"]["asset"].as_str().unwrap().split(':').next().unwrap();
        let nodes = world.home.file("nodes.json", &json!({chain: [node.base]}).to_string());
        let (code, shown) = world.run(line, &["--id", &line.paying().1, "--nodes", &nodes]);
        match expected {
            None => assert_eq!((code, &shown["form"]), (0, &json!("transaction")), "{shown}"),
            Some(at) => {
                assert_eq!((code, &shown["error"]["code"]), (1, &json!("transaction_mismatch")), "{shown}");
                assert!(shown["error"]["at"].as_str().unwrap().starts_with(at), "{at}: {shown}");
            }
        }
    }
}

/// A transaction of another account in a form that no order has. Its effects still show the payment.
#[test]
fn a_payment_in_a_transaction_that_cannot_be_read_is_found_by_the_id() {
    let world = World::new("effect-unread");
    let (line, other) = (Line::load("starknet", "starknet-2025-11"), Line::load("starknet", "starknet-amount-one"));
    let id = format!("0x7{}", "07".repeat(31));
    let node = |change: fn(&mut Value), more: u64| {
        let (mut sent, receipt) = (other.invoke(), receipt(&line, &id, more));
        change(&mut sent);
        rpc(move |method| if method == "starknet_getTransactionReceipt" { receipt.clone() } else { sent.clone() })
    };
    let changes: [fn(&mut Value); 3] = [
        |sent| sent["nonce_data_availability_mode"] = json!("L3"),
        |sent| drop(sent.as_object_mut().unwrap().remove("tip")),
        |sent| sent["type"] = json!("L1_HANDLER"),
    ];
    for change in changes {
        for (more, count, expected) in [(0, 1, 0), (0, 2, 0), (1, 1, 1), (1, 2, 1)] {
            let servers: Vec<_> = (0..count).map(|_| node(change, more)).collect();
            let urls: Vec<_> =
                servers.iter().enumerate().map(|(at, server)| json!({"url": server.base, "provider": format!("p{at}")})).collect();
            let nodes = world.home.file("nodes.json", &json!({"starknet": urls}).to_string());
            let (code, shown) = world.run(&line, &["--id", &id, "--nodes", &nodes]);
            assert_eq!((code == 0, shown["form"].as_str()), (expected == 0, (expected == 0).then_some("receipt")), "{shown}");
        }
    }
}

/// Matches by the id of a transaction that is not the order's. Its effects show the payment, if enough endpoints
/// agree.
#[test]
fn a_payment_of_another_account_is_found_by_the_id() {
    let world = World::new("effect-id");
    let (line, other) = (Line::load("tron", "tron-record-native-v3"), Line::load("tron", "tron-native-large"));
    let (sent, id) = (other.tron(), other.paying().1);
    let node = |info: Value| tron_node(sent.clone(), info);
    let honest = || node(info(&line, &id, 0));
    let lying = || node(info(&line, &id, 1));
    for (servers, expected) in [
        (vec![honest()], 0),
        (vec![lying()], 1),
        (vec![honest(), lying(), honest()], 0),
        (vec![lying(), honest(), lying()], 1),
        (vec![honest(), lying(), node(json!({}))], 1),
    ] {
        let urls: Vec<_> =
            servers.iter().enumerate().map(|(at, server)| json!({"url": server.base, "provider": format!("p{at}")})).collect();
        let nodes = world.home.file("nodes.json", &json!({"tron": urls}).to_string());
        let (code, shown) = world.run(&line, &["--id", &id, "--nodes", &nodes]);
        assert_eq!(code, expected, "{shown}");
        let (form, error) = (shown["form"].as_str(), shown["error"]["code"].as_str());
        assert_eq!((form, error), if code == 0 { (Some("receipt"), None) } else { (None, Some("transaction_mismatch")) }, "{shown}");
    }
}
