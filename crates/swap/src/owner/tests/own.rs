//! An account whose code refuses the gasless message (ERC-1271): its own transactions cost gas, so the owner is asked anew.

use countersign::Role;
use countersign::evm::Gasless;
use serde_json::{Value, json};

use super::*;

/// Seconds after the order was made.
const AT: u64 = 1_772_600_900;

/// A delegate that accepts no signature.
const DELEGATED: &str = "0xef01000000000000000000000000000000000000000001";

/// What a node answers on whose chain all accounts have this code.
fn node(call: &Value, chain_id: &str, code: &str) -> Value {
    let word = |number: u128| json!(format!("{number:#066x}"));
    let result = match call["method"].as_str().unwrap() {
        "eth_chainId" => json!(chain_id),
        "eth_getCode" => json!(code),
        // No selector of ERC-1271 from a delegate; otherwise a balance, an allowance, or a fee on L1.
        "eth_call" => word(if code == DELEGATED { 0 } else { 1_000_000_000_000 }),
        "eth_getBalance" => json!("0x8ac7230489e80000"),
        "eth_getTransactionCount" => json!("0x1"),
        "eth_gasPrice" => json!("0x3b9aca00"),
        "eth_maxPriorityFeePerGas" => json!("0x1"),
        "eth_feeHistory" => json!({"baseFeePerGas": ["0x1", "0x1"], "reward": [["0x1", "0x1", "0x1"]]}),
        "eth_getBlockByNumber" => json!({
            "number": "0x10", "hash": format!("0x{}", "11".repeat(32)), "timestamp": format!("{:#x}", AT), "baseFeePerGas": "0x1",
        }),
        _ => return json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32601, "message": "no such method"}}),
    };
    json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
}

fn reply(need: &Need, code: &str) -> Reply {
    let Ask::Http(request) = &need.ask else { panic!("{need:?}") };
    let calls: Value = serde_json::from_slice(request.body.as_deref().unwrap()).unwrap();
    let chain_id = if request.url.contains("base") { "0x2105" } else { "0xa4b1" };
    let answer = |call: &Value| node(call, chain_id, code);
    let body: Value = calls.as_array().map_or_else(|| answer(&calls), |calls| calls.iter().map(answer).collect());
    Reply::Response { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
}

#[test]
fn an_owner_who_prefers_own_transactions_is_asked_for_them_at_once() {
    for (more, own) in [("", false), (r#","own_transactions":true"#, true)] {
        let owner = owner(BOTH, more);
        owner.host.set_now(AT * 1_000);
        let [request, response, record] = ["/request", "/response", "/order"].map(|at| document_of("evm-record-bitcoin-v2", at));
        let documents = Documents::new(&request, &response).with_record(Some(&record));
        let order = objects::verify(&documents, &owner.registry, &owner.policy).unwrap();
        let Verified::Evm(deposit) = &order else { panic!("not of an EVM chain") };
        let account = deposit.deposit().sender.to_string();
        let prepared = run(&owner.host, owner.prepare(&order, "base", &account), |need| reply(need, "0x"));
        let asked: Vec<_> = prepared.unwrap().requests().iter().map(|request| request.id.to_string()).collect();
        assert_eq!(asked, if own { ["initiate"] } else { ["typed_data"] });
    }
}

#[test]
fn a_refused_message_is_paid_with_transactions_only_after_a_second_yes() {
    for agrees in [true, false] {
        let owner = owner(BOTH, "");
        owner.host.set_now(AT * 1_000);
        let order = verified(&owner);
        let Verified::Evm(deposit) = &order else { panic!("not of an EVM chain") };
        let account = deposit.deposit().sender.to_string();
        let paying = Unsigned::Evm(deposit.prepare(Gasless).unwrap());
        let wallet: Value = serde_json::from_slice(&document("/wallet")).unwrap();
        let key = wallet["secret_key"].as_str().unwrap();
        let signing = signing(order.order_id(), Purpose::Funding, "base".to_owned(), account);
        let asked = Mutex::new(Vec::new());
        let paid = run(&owner.host, owner.sign(&order, signing, paying), |need| match &need.ask {
            Ask::Http(_) => reply(need, DELEGATED),
            Ask::Sign(_) => {
                let mut unsigned = owner.host.take_unsigned(need.id).unwrap();
                let payloads: Vec<_> = unsigned.requests().iter().map(|request| request.id.to_string()).collect();
                asked.lock().unwrap().push(payloads.join(" "));
                countersign_json::sign(&mut unsigned, key).unwrap();
                Reply::Signed(Box::new(unsigned))
            }
            Ask::Consent(consent) => {
                let codes: Vec<_> = consent.warnings.iter().map(|notice| notice.code.clone()).collect();
                assert!(codes.contains(&"contract_signature_refused".to_owned()), "{codes:?}");
                asked.lock().unwrap().push("consent".to_owned());
                Reply::Consent(agrees)
            }
            other => panic!("{other:?}"),
        });
        let asked = asked.into_inner().unwrap();
        if agrees {
            assert_eq!(asked, ["typed_data", "consent", "initiate"], "{paid:?}");
            let Ok(FundingReply::Signed(SignedFunding { transactions, gasless: None })) = paid else { panic!("{paid:?}") };
            assert_eq!(transactions.iter().map(|one| one.role).collect::<Vec<_>>(), [Role::Initiate]);
        } else {
            assert_eq!(asked, ["typed_data", "consent"]);
            assert!(matches!(paid, Err(OwnerError::Failed { code: DECLINED, .. })), "{paid:?}");
        }
    }
}
