//! What is sent: a transaction once, and only the one that was kept. Receipts.

use countersign::evm::Evm;
use countersign::evm::alloy_primitives::{B256, hex, keccak256};
use countersign::{BroadcastTransaction, Code};
use countersign_node::NodeError;
use serde_json::{Value, json};

use crate::evm_wallet::{WITH_APPROVAL, chain, refused, unsigned};
use crate::support::{case, hash_of, nodes};

fn kept() -> (BroadcastTransaction, B256) {
    let case = case(WITH_APPROVAL);
    let mut order = unsigned(WITH_APPROVAL);
    order.sign(&countersign_testkit::key::<Evm>(&case)).unwrap();
    let signed = order.finish().unwrap();
    let [_, initiate] = signed.transactions().try_into().unwrap();
    let kept = BroadcastTransaction {
        chain: "ethereum".to_owned(),
        role: countersign::Role::Initiate,
        id: initiate.id.clone(),
        payload: hex::encode_prefixed(&initiate.bytes),
        spends: Vec::new(),
    };
    assert_eq!(keccak256(&initiate.bytes).to_string(), initiate.id);
    let id = initiate.id.parse().unwrap();
    (kept, id)
}

/// How an endpoint answers a broadcast, and the lookup of the transaction.
async fn broadcast(answers: &'static [(&'static str, i64, bool)]) -> Result<(), NodeError> {
    let (kept, id) = kept();
    let lie = move |host: &str, method: &str, _: &Value| {
        let (kind, code, knows) = answers[usize::from(host.as_bytes()[0] - b'a')];
        match method {
            "eth_sendRawTransaction" => Some(match kind {
                "ok" => json!(id),
                "other" => json!(hash_of(3)),
                _ => json!({"error": {"code": code, "message": kind}}),
            }),
            "eth_getTransactionByHash" => Some(if knows { json!({"hash": id}) } else { Value::Null }),
            _ => None,
        }
    };
    nodes(chain().lying(lie), answers.len()).evm("ethereum").unwrap().broadcast(&kept.id, &kept.payload).await
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_accepted_if_enough_endpoints_have_it() {
    assert!(broadcast(&[("ok", 0, false)]).await.is_ok());
    assert!(broadcast(&[("insufficient funds", -32_000, false), ("ok", 0, false), ("ok", 0, false)]).await.is_ok());
    // One endpoint alone may keep the transaction to itself.
    let error = broadcast(&[("insufficient funds", -32_000, false), ("ok", 0, false)]).await.unwrap_err();
    assert_eq!(error.code().name(), "transaction_rejected");
    assert_eq!(broadcast(&[("ok", 0, false), ("rate limit", -32_005, false)]).await.unwrap_err().code().name(), "node_disagree");
    assert!(broadcast(&[("already known", -32_000, true)]).await.is_ok());
    assert!(broadcast(&[("nonce too low", -32_000, true)]).await.is_ok());
    let error = broadcast(&[("nonce too low", -32_000, false), ("nonce too low", -32_003, false)]).await.unwrap_err();
    assert_eq!((error.code().name(), error.is_transient()), ("transaction_rejected", false));
    // It is unknown what the endpoints did with the transaction: they may have relayed it.
    for answers in [[("rate limit", -32_005, false), ("rate limit", -32_005, false)], [("other", 0, false), ("other", 0, false)]] {
        let answers: &'static [_] = Box::leak(Box::new(answers));
        assert!(!matches!(broadcast(answers).await, Ok(()) | Err(NodeError::Rejected { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_kept_transaction_is_sent() {
    let (kept, _) = kept();
    let nodes = nodes(chain(), 1);
    let ethereum = nodes.evm("ethereum").unwrap();
    for wrong in [
        BroadcastTransaction { id: hash_of(1).to_string(), ..kept.clone() },
        BroadcastTransaction { payload: format!("{}00", kept.payload), ..kept.clone() },
        BroadcastTransaction { payload: "0x".to_owned(), ..kept.clone() },
        BroadcastTransaction { payload: "zz".to_owned(), ..kept.clone() },
    ] {
        let error = ethereum.broadcast(&wrong.id, &wrong.payload).await.unwrap_err();
        assert_eq!(refused(&error).0, Code::TransactionMismatch);
    }
    assert!(nodes.transport().seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn receipts_are_of_the_transaction_and_agreed_upon() {
    let id = hash_of(77);
    let good = json!({"transactionHash": id, "blockNumber": "0x10", "blockHash": hash_of(16), "status": "0x1"});
    let receipt = async |answers: Vec<Value>| {
        let count = answers.len();
        let lie = move |host: &str, method: &str, _: &Value| {
            (method == "eth_getTransactionReceipt").then(|| answers[usize::from(host.as_bytes()[0] - b'a')].clone())
        };
        nodes(chain().lying(lie), count).evm("ethereum").unwrap().receipt(id).await
    };
    let found = receipt(vec![good.clone(), good.clone()]).await.unwrap().unwrap();
    assert_eq!((found.block.get(), found.hash, found.success), (16, hash_of(16), true));
    assert_eq!(receipt(vec![Value::Null]).await.unwrap(), None);
    assert_eq!(receipt(vec![Value::Null, good.clone()]).await.unwrap_err().code().name(), "node_disagree");
    for (member, value) in [("transactionHash", json!(hash_of(1))), ("status", json!("0x2")), ("blockNumber", Value::Null)] {
        let mut forged = good.clone();
        forged[member] = value;
        assert_eq!(receipt(vec![forged]).await.unwrap_err().code().name(), "node_malformed");
    }
    let mut failed = good;
    failed["status"] = json!("0x0");
    assert!(!receipt(vec![failed]).await.unwrap().unwrap().success);
}
