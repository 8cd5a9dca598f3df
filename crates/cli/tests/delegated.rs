//! An account with a delegate (EIP-7702) whose code refuses the signature of the gasless message: it can still pay with transactions.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use countersign_client::countersign::evm::alloy_consensus::Transaction as _;
use countersign_client::countersign::evm::received;
use countersign_client::countersign::{Policy, Proposal, Registry, verify_record};
use countersign_testkit::chain::evm::Evm;
use serde_json::{Value, json};

use crate::home::said;
use crate::support::{Reply, Seen, Server, Step};
use crate::whole::Whole;

/// A node of Base that keeps what was sent, and shows no payment.
fn node(whole: &Whole) -> (Server, Arc<Mutex<Vec<String>>>) {
    let fixture = &whole.service.fixture;
    let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
    let (request, response, record) = (fixture.create(), fixture.response.to_string(), fixture.at(Step::Created).to_string());
    let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
    let terms = verify_record(proposal, &registry, &Policy::default()).unwrap().terms.source;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sent);
    let server = Server::start(move |seen: &Seen| {
        let mut chain = Evm::funded(&terms);
        (chain.chain_id, chain.time) = (8_453, u64::try_from(chrono::Utc::now().timestamp()).unwrap());
        chain.order = None;
        chain.logs.clear();
        let result = |call: &Value| {
            let (method, params) = (call["method"].as_str().unwrap(), &call["params"]);
            let result = match method {
                "eth_getCode" => json!("0xef01000000000000000000000000000000000000000001"),
                "eth_getBalance" => json!("0x8ac7230489e80000"),
                "eth_sendRawTransaction" => {
                    let payload = params[0].as_str().unwrap();
                    kept.lock().unwrap().push(payload.to_owned());
                    json!(received::from_bytes(&hex::decode(payload).unwrap()).unwrap().tx_hash())
                }
                "eth_feeHistory" => json!({"baseFeePerGas": ["0x1", "0x1"], "reward": [["0x1", "0x1", "0x1"]]}),
                // Coins that are paid to an account.
                "eth_call" if params[0]["data"].is_null() => json!("0x"),
                _ => chain.result(method, params),
            };
            // Nothing reverts, and no answer is the selector of ERC-1271.
            match result.get("error") {
                Some(_) if method == "eth_call" => json!({"jsonrpc": "2.0", "id": call["id"], "result": "0x"}),
                Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
                None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
            }
        };
        let reply = match serde_json::from_str(&seen.text()).unwrap() {
            Value::Array(calls) => Value::Array(calls.iter().map(result).collect()),
            call => result(&call),
        };
        Reply::json(200, reply.to_string())
    });
    (server, sent)
}

#[test]
fn a_refused_message_is_paid_with_transactions_by_command() {
    let whole = Whole::new("delegated");
    let server = whole.service.start();
    whole.create(&server.base);
    let (node, sent) = node(&whole);
    let mut resume = whole.resume.clone();
    let wallet = resume.iter().position(|argument| argument == "--wallet").unwrap();
    drop(resume.drain(wallet..wallet + 2));
    let policy = whole.home.file("policy.json", r#"{"accepted_warnings": ["redeem_key_not_yours", "trusts_the_service"]}"#);
    resume.extend(["--node".to_owned(), format!("base={}", node.base), "--policy".to_owned(), policy]);
    // `--yes` was given before anybody knew that gas has to be paid.
    let refused = whole.run(&server.base, &resume);
    assert!(refused.status.code() == Some(1) && said(&refused).contains("contract_signature_refused"), "{}", said(&refused));
    let offered = format!("--resume {}", whole.service.fixture.order_id());
    assert!(said(&refused).contains(&offered) && said(&refused).contains("--own-transactions"), "{}", said(&refused));
    assert!(sent.lock().unwrap().is_empty() && server.seen().iter().all(|seen| seen.method != "PATCH"));

    resume.push("--own-transactions".to_owned());
    let arguments: Vec<_> = resume.iter().map(String::as_str).collect();
    let (code, told) = whole.home.watched(&server.base, &arguments, "paying", |child| {
        let end = Instant::now() + Duration::from_secs(30);
        while sent.lock().unwrap().is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
    });
    assert!(code.is_none(), "{told}");
    let sent = sent.lock().unwrap();
    let payload = sent.first().unwrap_or_else(|| panic!("{told}"));
    let transaction = received::from_bytes(&hex::decode(payload).unwrap()).unwrap();
    let call = &whole.service.fixture.response["result"]["initiate_transaction"];
    assert_eq!(json!(transaction.input().to_string()), call["data"]);
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"), "no message is submitted beside it");
}
