//! The HTTP interface of an in-memory chain.

use countersign::chains::UnixTime;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
pub use countersign_testkit::chain::starknet::*;
use countersign_testkit::registry;
use serde_json::{Value, json};

type Body = Box<dyn Fn(&str, &[u8]) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync>;

/// Serves a chain to every host.
pub struct Front {
    chain: Chain,
    /// Overrides a whole response.
    body: Body,
    /// The number of requests to each host.
    pub requests: Mutex<BTreeMap<String, usize>>,
    /// The host that answers after five seconds.
    pub slow: Option<&'static str>,
}

impl From<Chain> for Front {
    fn from(chain: Chain) -> Self {
        Self { chain, body: Box::new(|_, _| None), requests: Mutex::default(), slow: None }
    }
}

impl Deref for Front {
    type Target = Chain;

    fn deref(&self) -> &Chain {
        &self.chain
    }
}

impl Front {
    pub fn answering(
        chain: Chain,
        body: impl Fn(&str, &[u8]) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static,
    ) -> Self {
        Self { body: Box::new(body), ..chain.into() }
    }

    fn reply_to(&self, host: &str, call: &Value) -> Value {
        let result = self.chain.reply(host, call["method"].as_str().unwrap(), &call["params"]);
        match result.get("error") {
            Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        }
    }
}

impl Transport for Front {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        *self.requests.lock().unwrap().entry(host.clone()).or_default() += 1;
        if self.slow == Some(&*host) {
            self.sleep(Duration::from_secs(5)).await;
        }
        let body = request.body.as_ref().unwrap();
        let (status, body) = match (self.body)(&host, body) {
            Some(answer) => answer.map_err(|kind| TransportError::new(kind, "scripted"))?,
            None => {
                let calls: Value = serde_json::from_slice(body).unwrap();
                let reply = match &calls {
                    Value::Array(calls) => Value::Array(calls.iter().map(|call| self.reply_to(&host, call)).collect()),
                    call => self.reply_to(&host, call),
                };
                (200, reply.to_string().into_bytes())
            }
        };
        Ok(Response::new(status, body))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}

/// Connects endpoints `https://a.example`, `https://b.example` and so on. Their paths are keys of accounts.
pub fn nodes(chain: impl Into<Front>, count: usize) -> Nodes<Front> {
    let hosts = ["a", "b", "c", "d", "e"];
    let all = hosts[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}.example/the-key")).unwrap()).collect();
    Nodes::new(chain.into(), NodeConfig::new().with("starknet", Endpoints::new(all).unwrap()), registry())
}
