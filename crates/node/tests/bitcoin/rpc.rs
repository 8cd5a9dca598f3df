//! A node's own RPC that lies.

use countersign::chains::UnixTime;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use countersign::bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign::{Policy, Registry};
use countersign_client::{Request, Response, Transport, TransportError};
use countersign_core::reader::{Answer, Request as ReadRequest};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes, Speed};
use serde_json::{Value, json};

use super::fake::{AMOUNT, Ledger, NOW, funding, terms};
use super::{Funded, RULE};

/// Changes a result: the method, and the honest result.
type Lie = fn(&str, Value) -> Value;

struct Rpc {
    ledger: Arc<Mutex<Ledger>>,
    lie: Lie,
    /// The number of scans that fail because the node is busy with another one.
    busy: AtomicU32,
}

impl Rpc {
    fn result(&self, method: &str, params: &Value) -> Value {
        let method: &'static str = Box::leak(method.to_owned().into_boxed_str());
        match self.ledger.lock().unwrap().answer(&ReadRequest::json_rpc(method, params)) {
            Answer::Result(text) => json!({"result": serde_json::from_slice::<Value>(&text).unwrap(), "error": null}),
            Answer::Error(error) => json!({"result": null, "error": {"code": error.code, "message": error.message}}),
            other => panic!("{other:?}"),
        }
    }
}

impl Transport for Rpc {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        assert!(request.headers.iter().any(|(name, value)| *name == "authorization" && value.starts_with("Basic ")));
        let body: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        let reply = |call: &Value| {
            let method = call["method"].as_str().unwrap();
            let less = |left: u32| left.checked_sub(1);
            if method == "scantxoutset" && self.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
                let error = json!({"code": -8, "message": "Scan already in progress, use action \"abort\" or \"status\""});
                return json!({"result": null, "error": error, "id": call["id"]});
            }
            let mut reply = self.result(method, &call["params"]);
            reply["result"] = (self.lie)(method, reply["result"].take());
            reply["id"] = call["id"].clone();
            reply
        };
        let reply = body.as_array().map_or_else(|| reply(&body), |calls| calls.iter().map(reply).collect());
        Ok(Response::new(200, reply.to_string()))
    }

    async fn sleep(&self, duration: std::time::Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}

fn connect(lie: Lie, busy: u32) -> Nodes<Rpc> {
    let mut ledger = Ledger::new();
    ledger.mempool.push(funding(1, AMOUNT));
    ledger.mine(3);
    let registry = json!({"chains": [{"chain": "bitcoin_regtest", "id": "bitcoin:regtest"}], "assets": []});
    let registry = Registry::from_json(registry.to_string().as_bytes()).unwrap();
    let endpoint = Endpoint::parse("rpc+http://user:password@127.0.0.1:1").unwrap();
    let config = NodeConfig::new().with("bitcoin_regtest", Endpoints::new(vec![endpoint]).unwrap());
    Nodes::new(Rpc { ledger: Arc::new(Mutex::new(ledger)), lie, busy: AtomicU32::new(busy) }, config, &registry)
}

async fn judge(lie: Lie) -> Result<Funded, String> {
    judge_when(lie, 0).await
}

async fn judge_when(lie: Lie, busy: u32) -> Result<Funded, String> {
    let (nodes, terms) = (connect(lie, busy), terms());
    let quorum = nodes.bitcoin("bitcoin_regtest").unwrap().htlc(&terms.destination).await.map_err(|error| {
        assert!(!error.to_string().contains("password"), "{error}");
        error.code().name().to_owned()
    })?;
    Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).map_err(|hold| hold.code().name().to_owned())
}

#[tokio::test(start_paused = true)]
async fn no_lie_of_a_node_proves_a_funding() {
    assert!(judge(|_, honest| honest).await.is_ok());
    let lies: [(&str, Lie, &str); 7] = [
        ("another chain", |method, honest| if method == "getblockhash" { json!("00".repeat(32)) } else { honest }, "node_wrong_chain"),
        (
            "another transaction",
            |method, honest| if method == "getrawtransaction" { json!(serialize_hex(&funding(9, AMOUNT))) } else { honest },
            "node_malformed",
        ),
        (
            "another amount",
            |method, mut honest| {
                if method == "scantxoutset" {
                    honest["unspents"][0]["amount"] = json!(0.006);
                }
                honest
            },
            "node_malformed",
        ),
        (
            "an incomplete scan",
            |method, mut honest| {
                if method == "scantxoutset" {
                    honest["success"] = json!(false);
                }
                honest
            },
            "node_malformed",
        ),
        (
            "another height",
            |method, mut honest| {
                if method == "scantxoutset" {
                    honest["unspents"][0]["height"] = json!(2);
                }
                honest
            },
            "node_error",
        ),
        (
            "a wrong Merkle path",
            |method, honest| {
                if method == "gettxoutproof" {
                    let text = honest.as_str().unwrap();
                    return json!(format!("{}00{}", &text[..200], &text[202..]));
                }
                honest
            },
            "node_malformed",
        ),
        ("another header", |method, honest| if method == "getblockheader" { json!("00".repeat(80)) } else { honest }, "node_malformed"),
    ];
    for (name, lie, code) in lies {
        assert_eq!(judge(lie).await.unwrap_err(), code, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_estimates_in_coins_per_thousand_bytes() {
    let nodes = connect(|_, honest| honest, 0);
    let estimate = nodes.bitcoin("bitcoin_regtest").unwrap().fee_rate(Speed::Normal, &Policy::default()).await.unwrap();
    assert_eq!((estimate.rate.to_string().as_str(), estimate.is_floor), ("2.5", false));
}

/// A node runs only one scan at a time.
#[tokio::test(start_paused = true)]
async fn a_node_that_scans_for_somebody_else_is_asked_again() {
    assert!(judge_when(|_, honest| honest, 3).await.is_ok());
    assert_eq!(judge_when(|_, honest| honest, u32::MAX).await.unwrap_err(), "node_error");
}
