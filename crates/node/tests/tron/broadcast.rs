//! What is sent: a transaction once, only the one that was kept, and none that expires. Receipts.

use countersign::chains::UnixMillis;
use countersign::tron::alloy_primitives::{B256, hex};
use countersign::tron::{FundingPath, SignedTronTransaction, Tron as Family, TxContext, UnsignedOrder};
use countersign::{ApprovalStep, BroadcastTransaction, Code};
use countersign_node::NodeError;
use countersign_node::tron::Receipt;
use serde_json::{Value, json};

use crate::tron::fake::{LATEST, Lying as _, bare, case, nodes};
use crate::tron::wallet::{NATIVE, order, tron};

fn signed() -> (BroadcastTransaction, B256) {
    let case = case(countersign::Family::Tron, NATIVE);
    let calls = TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_800_003_600_000), UnixMillis::from_millis(1_800_000_000_000))
        .with_approval(ApprovalStep::AsVerified);
    let mut unsigned: UnsignedOrder = order(NATIVE).prepare(FundingPath::SelfFunded(calls)).unwrap();
    unsigned.sign(&countersign_testkit::key::<Family>(&case)).unwrap();
    let signed = countersign::Signed::from(unsigned.finish().unwrap());
    let [kept] = signed.broadcasts().try_into().unwrap();
    let bytes = hex::decode(&kept.payload).unwrap();
    assert_eq!(bare(SignedTronTransaction::from_bytes(&bytes).unwrap().tx_id()), kept.id);
    let id = kept.id.parse().unwrap();
    (kept, id)
}

/// How each endpoint answers a broadcast, and whether it knows the transaction.
async fn broadcast(answers: &[(Value, bool)]) -> Result<(), NodeError> {
    let (kept, id) = signed();
    let answers = answers.to_vec();
    let count = answers.len();
    let payload = kept.payload.clone();
    let lie = move |host: &str, path: &str, question: &Value| {
        let (answer, knows) = &answers[usize::from(host.as_bytes()[0] - b'a')];
        match path {
            "/wallet/broadcasthex" => {
                assert_eq!(question["transaction"], payload);
                Some(answer.clone())
            }
            "/wallet/gettransactionbyid" => {
                assert_eq!(question["value"], bare(id));
                Some(if *knows { json!({"txID": bare(id)}) } else { json!({}) })
            }
            _ => None,
        }
    };
    nodes(tron(NATIVE).lying(lie), count).tron("tron").unwrap().broadcast(&kept.id, &kept.payload).await
}

fn says(code: &str) -> Value {
    json!({"code": code, "message": bare("why"), "transaction": "{}"})
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_accepted_if_enough_endpoints_have_it() {
    let taken = || json!({"result": true, "code": "SUCCESS", "message": "", "txid": bare(signed().1)});
    assert!(broadcast(&[(taken(), false)]).await.is_ok());
    assert!(broadcast(&[(json!({"result": true}), false)]).await.is_ok());
    assert!(broadcast(&[(says("DUP_TRANSACTION_ERROR"), false)]).await.is_ok(), "it is there already");
    assert!(broadcast(&[(says("SIGERROR"), false), (taken(), false), (taken(), false)]).await.is_ok());
    // One endpoint alone may keep it to itself.
    for others in [vec![says("SIGERROR")], vec![says("SIGERROR"), says("TAPOS_ERROR")], vec![says("SIGERROR"), says("SERVER_BUSY")]] {
        let answers: Vec<_> = others.into_iter().chain([taken()]).map(|answer| (answer, false)).collect();
        assert_eq!(broadcast(&answers).await.unwrap_err().code().name(), "transaction_rejected");
    }
    // In a block already, and expired since.
    assert!(broadcast(&[(says("TRANSACTION_EXPIRATION_ERROR"), true)]).await.is_ok());
    for code in [
        "SIGERROR",
        "CONTRACT_VALIDATE_ERROR",
        "CONTRACT_EXE_ERROR",
        "BANDWITH_ERROR",
        "TAPOS_ERROR",
        "TOO_BIG_TRANSACTION_ERROR",
        "TRANSACTION_EXPIRATION_ERROR",
    ] {
        let error = broadcast(&[(says(code), false), (says("TAPOS_ERROR"), false)]).await.unwrap_err();
        assert_eq!((error.code().name(), error.is_transient()), ("transaction_rejected", false), "{code}");
        assert!(error.to_string().contains(code) && error.to_string().contains("why"), "{error}");
    }
    // It is unknown what one endpoint did with the transaction: it may have relayed it.
    let other = json!({"result": true, "txid": bare([7; 32])});
    for unknown in
        [says("SERVER_BUSY"), says("NO_CONNECTION"), says("OTHER_ERROR"), says("NEW_ERROR"), json!({}), json!({"Error": "x"}), other]
    {
        let outcome = broadcast(&[(taken(), false), (unknown.clone(), false)]).await;
        assert!(!matches!(outcome, Ok(()) | Err(NodeError::Rejected { .. })), "{unknown}");
    }
}

/// The endpoints say themselves how late it is, and none gets what no block will contain.
#[tokio::test(start_paused = true)]
async fn a_quorum_says_whether_a_transaction_expires() {
    const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];
    let (kept, id) = signed();
    let sent = async |late: &'static [&'static str]| {
        let lie = move |host: &str, path: &str, _: &Value| match path {
            "/wallet/getnowblock" if late.contains(&host) => {
                let mut block = tron(NATIVE).block(LATEST);
                block["block_header"]["raw_data"]["timestamp"] = json!(1_800_003_590_000_u64);
                Some(block)
            }
            "/wallet/broadcasthex" => Some(json!({"result": true, "txid": bare(id)})),
            "/wallet/gettransactionbyid" => Some(json!({})),
            _ => None,
        };
        let nodes = nodes(tron(NATIVE).lying(lie), 3);
        let outcome = nodes.tron("tron").unwrap().broadcast(&kept.id, &kept.payload).await;
        let seen = nodes.transport().seen.lock().unwrap();
        let got: Vec<_> =
            HOSTS.into_iter().filter(|host| seen.iter().any(|(to, path, _)| to == host && path.ends_with("/broadcasthex"))).collect();
        (outcome, got)
    };
    assert!(matches!(sent(&[]).await, (Ok(()), got) if got.len() >= 2));
    // One that is ahead, or lies, neither stops it nor gets it.
    for (place, late) in [&HOSTS[..1], &HOSTS[1..2], &HOSTS[2..]].into_iter().enumerate() {
        let (outcome, got) = sent(late).await;
        assert!(outcome.is_ok() && !got.contains(&HOSTS[place]), "{outcome:?} {got:?}");
    }
    let (outcome, got) = sent(&HOSTS).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.code().name(), got), ("transaction_rejected", vec![]));
    assert!(error.to_string().contains("expiration_passed") && error.to_string().contains("take the expiration"), "{error}");
    let (outcome, got) = sent(&HOSTS[..2]).await;
    assert!(matches!(outcome, Err(NodeError::Rejected { .. })) && !got.contains(&"a.example") && !got.contains(&"b.example"));
}

#[tokio::test(start_paused = true)]
async fn only_the_kept_transaction_is_sent() {
    let (kept, _) = signed();
    let nodes = nodes(tron(NATIVE), 1);
    let chain = nodes.tron("tron").unwrap();
    for wrong in [
        BroadcastTransaction { id: bare([1; 32]), ..kept.clone() },
        BroadcastTransaction { payload: format!("{}00", kept.payload), ..kept.clone() },
        BroadcastTransaction { payload: String::new(), ..kept.clone() },
        BroadcastTransaction { payload: "zz".to_owned(), ..kept.clone() },
    ] {
        let error = chain.broadcast(&wrong.id, &wrong.payload).await.unwrap_err();
        assert!(matches!(&error, NodeError::Refused(refusal) if refusal.code() == Code::TransactionMismatch), "{error}");
    }
    assert!(nodes.transport().seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn receipts_are_of_the_transaction_and_agreed_upon() {
    let id = B256::repeat_byte(0x42);
    let good = json!({"id": bare(id), "blockNumber": 16, "receipt": {"result": "SUCCESS"}});
    let receipt = async |newest: Value, solid: Value| -> Result<Option<Receipt>, NodeError> {
        let lie = move |_: &str, path: &str, question: &Value| match path {
            "/wallet/gettransactioninfobyid" => Some(newest.clone()).filter(|_| question["value"] == bare(id)),
            "/walletsolidity/gettransactioninfobyid" => Some(solid.clone()),
            _ => None,
        };
        nodes(tron(NATIVE).lying(lie), 1).tron("tron").unwrap().receipt(id).await
    };
    assert_eq!(receipt(json!({}), json!({})).await.unwrap(), None);
    let found = receipt(good.clone(), json!({})).await.unwrap().unwrap();
    assert_eq!((found.block.get(), found.success, found.is_final), (16, true, false));
    assert!(receipt(json!({}), good.clone()).await.unwrap().unwrap().is_final);
    for (member, value) in
        [("id", json!(bare([1; 32]))), ("blockNumber", json!(0)), ("receipt", Value::Null), ("receipt", json!("SUCCESS"))]
    {
        let mut forged = good.clone();
        forged[member] = value;
        assert_eq!(receipt(forged, json!({})).await.unwrap_err().code().name(), "node_malformed");
    }
    for (member, value) in [("result", json!("FAILED")), ("receipt", json!({"result": "OUT_OF_ENERGY"})), ("receipt", json!({}))] {
        let mut failed = good.clone();
        failed[member] = value;
        assert!(!receipt(failed, json!({})).await.unwrap().unwrap().success);
    }
}
