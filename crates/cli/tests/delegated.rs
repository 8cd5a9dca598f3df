//! An account with a delegate (EIP-7702) whose code refuses the signature of the gasless message: it can still pay with transactions.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use countersign_client::countersign::evm::alloy_consensus::Transaction as _;
use countersign_client::countersign::evm::received;
use countersign_client::countersign::{Policy, Proposal, Registry, verify_record};
use countersign_testkit::chain::evm::Evm;
use serde_json::{Value, json};

use crate::home::{Home, said};
use crate::support::{Fixture, Reply, Seen, Server, Service, Step};

/// A node of Base that records what was sent, with this base fee. `shape` changes the chain, which shows the payment of an order.
pub fn node(
    fixture: &Fixture,
    base_fee: &'static str,
    shape: impl Fn(&mut Evm) + Send + Sync + 'static,
) -> (Server, Arc<Mutex<Vec<String>>>) {
    let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
    let (request, response, record) = (fixture.create(), fixture.response.to_string(), fixture.at(Step::Created).to_string());
    let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
    let terms = verify_record(proposal, &registry, &Policy::default()).unwrap().terms.source;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sent);
    let server = Server::start(move |seen: &Seen| {
        let mut chain = Evm::funded(&terms);
        (chain.chain_id, chain.time) = (8_453, u64::try_from(chrono::Utc::now().timestamp()).unwrap());
        shape(&mut chain);
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
                "eth_feeHistory" => json!({"baseFeePerGas": [base_fee, base_fee], "reward": [["0x1", "0x1", "0x1"]]}),
                // Coins that are paid to an account.
                "eth_call" if params[0]["data"].is_null() => json!("0x"),
                "eth_call" if params[0]["data"] == "0x313ce567" => json!(format!("{:#066x}", 6)),
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
    let home = Home::new("delegated");
    let mut fixture = Fixture::load("evm-record-bitcoin-v2");
    fixture.order["created_at"] = json!(chrono::Utc::now().to_rfc3339());
    fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 3_600);
    let (registry, request) = (home.file("registry.json", &fixture.registry), home.file("request.json", &fixture.request.to_string()));
    let key = home.file("key.txt", fixture.wallet["secret_key"].as_str().unwrap());
    let policy = home.file("policy.json", r#"{"accepted_warnings": ["redeem_key_not_yours", "trusts_the_service"]}"#);
    let server = Service::new(fixture.clone()).start();
    let create = ["order", "create", "--registry", &registry, "--request", &request, "--service-secret"];
    let created = home.run(&server.base, &create);
    assert!(created.status.success(), "{}", said(&created));
    // It shows no payment.
    let (node, sent) = node(&fixture, "0x1", |chain| chain.order = None);
    let node = format!("base={}", node.base);
    let mut resume = vec!["swap", "--resume", fixture.order_id(), "--registry", &registry, "--key-file", &key, "--node", &node];
    resume.extend(["--policy", &policy, "--yes", "--poll", "20", "--service-secret", "--trust-the-service"]);
    // `--yes` was given before it was known that gas has to be paid.
    let refused = home.run(&server.base, &resume);
    assert!(refused.status.code() == Some(1) && said(&refused).contains("contract_signature_refused"), "{}", said(&refused));
    let offered = format!("--resume {}", fixture.order_id());
    assert!(said(&refused).contains(&offered) && said(&refused).contains("--own-transactions"), "{}", said(&refused));
    assert!(sent.lock().unwrap().is_empty() && server.seen().iter().all(|seen| seen.method != "PATCH"));

    resume.push("--own-transactions");
    let (code, told) = home.watched(&server.base, &resume, "paying", |child| {
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
    let call = &fixture.response["result"]["initiate_transaction"];
    assert_eq!(json!(transaction.input().to_string()), call["data"]);
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"), "no message is submitted as well");
}
