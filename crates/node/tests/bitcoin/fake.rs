//! HTTP in front of Esplora servers with in-memory chains. They are honest, or some answers are replaced.

use countersign::chains::UnixTime;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::{CreateOrder, Family, Policy, Proposal, Registry, VerifiedRecord, evidence::VerifiedTerms, verify_record};
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_core::reader::{Answer, Format, Request as ReadRequest};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
pub(crate) use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, NOW, SECRET, TIMELOCK, chain, funding, outpoint, pay, spend, tree};
use serde_json::{Value, json};

/// Verified terms whose destination is the HTLC of these tests on Bitcoin.
pub(crate) fn terms() -> VerifiedTerms {
    terms_on("bitcoin")
}

pub(crate) fn terms_on(coin: &str) -> VerifiedTerms {
    let mut terms = verified().terms;
    terms.destination = countersign_testkit::chain::bitcoin::terms(coin);
    terms
}

/// A verified record whose destination is on a Bitcoin-like chain.
pub(crate) fn verified() -> VerifiedRecord {
    let registry = countersign_testkit::registry();
    let verified = countersign_testkit::fixtures_of(Family::Evm).unwrap().into_iter().find_map(|case| {
        let case = case.json();
        let record = case["order"].is_object().then(|| case["order"].to_string())?;
        let (request, response) = (CreateOrder::from_json(case["request"].to_string().as_bytes()).ok()?, case["response"].to_string());
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        let verified = verify_record(proposal, registry, &Policy::default()).ok()?;
        (verified.terms.destination.family == Family::Bitcoin).then_some(verified)
    });
    verified.unwrap()
}

/// Returns a server's response to a POST. A transaction that it accepts is in its mempool.
fn post(ledger: &mut Ledger, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let Answer::Http { status, body: response, .. } = ledger.answer(&ReadRequest::post(path, body, Format::Text)) else { panic!("{path}") };
    if status == 200 {
        ledger.send(std::str::from_utf8(body).unwrap());
    }
    (status, response.to_vec())
}

/// Returns a node's response to one or several calls.
fn json_rpc(ledger: &mut Ledger, body: &Value) -> Vec<u8> {
    let mut reply = |call: &Value| {
        let (method, params): (&'static str, _) =
            (Box::leak(call["method"].as_str().unwrap().to_owned().into_boxed_str()), &call["params"]);
        let (result, error) = match ledger.answer(&ReadRequest::json_rpc(method, params)) {
            Answer::Result(text) => (serde_json::from_slice::<Value>(&text).unwrap(), Value::Null),
            Answer::Error(error) => (Value::Null, json!({"code": error.code, "message": error.message})),
            other => panic!("{other:?}"),
        };
        if method == "sendrawtransaction" && error.is_null() {
            ledger.send(params[0].as_str().unwrap());
        }
        json!({"result": result, "error": error, "id": call["id"]})
    };
    let reply = match body.as_array() {
        Some(calls) => calls.iter().map(reply).collect(),
        None => reply(body),
    };
    reply.to_string().into_bytes()
}

/// Replaces a server's answer. It gets the path and the honest answer, and may return a failure of the transport.
pub(crate) type Lie = Arc<dyn Fn(&str, (u16, Vec<u8>)) -> Result<(u16, Vec<u8>), TransportErrorKind> + Send + Sync>;

/// Servers by their host.
#[derive(Clone, Default)]
pub(crate) struct Servers {
    ledgers: BTreeMap<String, Arc<Mutex<Ledger>>>,
    lies: BTreeMap<String, Lie>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    pub(crate) fn with(mut self, host: &str, ledger: &Arc<Mutex<Ledger>>) -> Self {
        self.ledgers.insert(host.to_owned(), Arc::clone(ledger));
        self
    }

    pub(crate) fn lying(
        mut self,
        host: &str,
        lie: impl Fn(&str, (u16, Vec<u8>)) -> Result<(u16, Vec<u8>), TransportErrorKind> + Send + Sync + 'static,
    ) -> Self {
        self.lies.insert(host.to_owned(), Arc::new(lie));
        self
    }

    /// Connects to every server, with an API key in each URL.
    pub(crate) fn connect(&self, quorum: u32) -> Nodes<Self> {
        self.connect_to("bitcoin", quorum)
    }

    pub(crate) fn connect_to(&self, coin: &str, quorum: u32) -> Nodes<Self> {
        // A host whose name begins with `rpc` is a node's own RPC.
        let url = |host: &String| format!("{}https://{host}/the-key/api", if host.starts_with("rpc") { "rpc+" } else { "" });
        let all = self.ledgers.keys().map(|host| Endpoint::parse(&url(host)).unwrap()).collect();
        let registry = json!({"chains": [{"chain": format!("{coin}_regtest"), "id": format!("{coin}:regtest")}], "assets": []});
        let registry = Registry::from_json(registry.to_string().as_bytes()).unwrap();
        let endpoints = Endpoints::new(all).unwrap().with_quorum(quorum).unwrap();
        Nodes::new(self.clone(), NodeConfig::new().with(format!("{coin}_regtest"), endpoints), &registry)
    }
}

impl Transport for Servers {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap();
        let path = request.url.path().strip_prefix("/the-key/api").unwrap();
        self.asked.lock().unwrap().push(format!("{} {path}", request.method));
        let honest = {
            let mut ledger = self.ledgers[host].lock().unwrap();
            match &request.body {
                Some(body) if host.starts_with("rpc") => (200, json_rpc(&mut ledger, &serde_json::from_slice(body).unwrap())),
                Some(body) => post(&mut ledger, path, body),
                None => ledger.get(path),
            }
        };
        let answer = match self.lies.get(host) {
            Some(lie) => lie(path, honest).map_err(|kind| TransportError::new(kind, "as the test says"))?,
            None => honest,
        };
        Ok(Response::new(answer.0, answer.1))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}
