//! The in-memory cluster behind an HTTP interface.

use countersign::chains::UnixTime;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
pub use countersign_testkit::chain::solana::*;
use serde_json::Value;

type Body = Box<dyn Fn(&str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync>;

/// A cluster, and the responses that are not its own.
pub struct Front {
    chain: Chain,
    body: Body,
    /// The number of requests to each host.
    pub requests: Mutex<BTreeMap<String, usize>>,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Front")
    }
}

impl Deref for Front {
    type Target = Chain;

    fn deref(&self) -> &Chain {
        &self.chain
    }
}

impl From<Chain> for Front {
    fn from(chain: Chain) -> Self {
        chain.answering(|_| None)
    }
}

pub trait Answering {
    /// Replaces whole responses of some hosts.
    fn answering(self, body: impl Fn(&str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static) -> Front;
}

impl Answering for Chain {
    fn answering(self, body: impl Fn(&str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static) -> Front {
        Front { chain: self, body: Box::new(body), requests: Mutex::default() }
    }
}

impl Transport for Front {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        *self.requests.lock().unwrap().entry(host.clone()).or_default() += 1;
        let (status, body) = match (self.body)(&host) {
            Some(answer) => answer.map_err(|kind| TransportError::new(kind, "scripted"))?,
            None => {
                let calls: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
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
pub fn nodes(front: impl Into<Front>, count: usize, form: &str) -> Nodes<Front> {
    let hosts = ["a", "b", "c", "d", "e"];
    let all = hosts[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}.example/the-key")).unwrap()).collect();
    let name = terms(form).destination.chain;
    Nodes::new(front.into(), NodeConfig::new().with(name, Endpoints::new(all).unwrap()), case(form).registry)
}
