//! In-memory endpoints of an EVM chain, honest or lying on request. No time passes.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    missing_debug_implementations,
    missing_docs,
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "a test ends by panicking, and uses the parts it needs"
)]

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign::reader::HtlcQuorum;
use countersign::{
    Funded,
    chains::{FinalityRule, UnixTime},
    evidence::{HtlcTerms, VerifiedTerms},
};
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes};
pub use countersign_testkit::chain::evm::{Evm, INITIATED, LATEST, NOW, SECRET, hash_of, id, log, redeemed_data, terms};
use countersign_testkit::{Case, registry};
use serde_json::{Value, json};

/// Overrides what an endpoint returns: the whole body of a response and its status, or `None` to be honest.
type Lie = Box<dyn Fn(&str, &str, &Value) -> Option<Value> + Send + Sync>;
type Body = Box<dyn Fn(&str, &[u8]) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync>;

/// A chain with one order, and its endpoints.
pub struct Chain {
    evm: Evm,
    /// Overrides the result of a method on a host; an object with `error` is an error.
    pub lie: Lie,
    /// Overrides a whole response.
    pub body: Body,
    pub seen: Mutex<Vec<(String, String, Value)>>,
    pub requests: Mutex<BTreeMap<String, usize>>,
    /// Seconds that have passed.
    pub clock: AtomicU64,
    /// The number of concurrent requests: the current one and the maximum so far.
    pub under_way: Mutex<(usize, usize)>,
}

impl Deref for Chain {
    type Target = Evm;

    fn deref(&self) -> &Evm {
        &self.evm
    }
}

impl DerefMut for Chain {
    fn deref_mut(&mut self) -> &mut Evm {
        &mut self.evm
    }
}

impl Chain {
    /// Creates a chain with an order that is funded according to its terms.
    pub fn funded(terms: &HtlcTerms) -> Self {
        Self {
            evm: Evm::funded(terms),
            lie: Box::new(|_, _, _| None),
            body: Box::new(|_, _| None),
            seen: Mutex::default(),
            requests: Mutex::default(),
            clock: AtomicU64::new(0),
            under_way: Mutex::default(),
        }
    }

    /// Changes the chain.
    pub fn with(mut self, change: impl FnOnce(&mut Evm)) -> Self {
        change(&mut self.evm);
        self
    }

    pub fn lying(mut self, lie: impl Fn(&str, &str, &Value) -> Option<Value> + Send + Sync + 'static) -> Self {
        self.lie = Box::new(lie);
        self
    }

    pub fn answering(
        mut self,
        body: impl Fn(&str, &[u8]) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static,
    ) -> Self {
        self.body = Box::new(body);
        self
    }

    pub fn redeemed(self, terms: &HtlcTerms, secret: [u8; 32]) -> Self {
        self.with(|evm| *evm = evm.clone().redeemed(terms, secret))
    }

    pub fn refunded(self, terms: &HtlcTerms) -> Self {
        self.with(|evm| *evm = evm.clone().refunded(terms))
    }

    pub fn reply_to(&self, host: &str, call: &Value) -> Value {
        let (method, params) = (call["method"].as_str().unwrap(), &call["params"]);
        self.seen.lock().unwrap().push((host.to_owned(), method.to_owned(), params.clone()));
        let result = (self.lie)(host, method, params).unwrap_or_else(|| self.evm.result(method, params));
        match result.get("error") {
            Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        }
    }
}

/// A request in progress. It also ends if the caller gives up.
struct UnderWay<'c>(&'c Mutex<(usize, usize)>);

impl<'c> UnderWay<'c> {
    fn new(count: &'c Mutex<(usize, usize)>) -> Self {
        let mut under_way = count.lock().unwrap();
        under_way.0 += 1;
        under_way.1 = under_way.1.max(under_way.0);
        drop(under_way);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().0 -= 1;
    }
}

impl Transport for Chain {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        *self.requests.lock().unwrap().entry(host.clone()).or_default() += 1;
        let under_way = UnderWay::new(&self.under_way);
        tokio::task::yield_now().await;
        drop(under_way);
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
        UnixTime::from_secs(NOW + self.clock.load(Ordering::SeqCst))
    }
}

/// Connects endpoints `https://a.example`, `https://b.example` and so on. Their paths are keys of accounts.
pub fn nodes(chain: Chain, count: usize) -> Nodes<Chain> {
    let hosts = ["a", "b", "c", "d", "e"];
    let all = hosts[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}.example/the-key")).unwrap()).collect();
    Nodes::new(chain, NodeConfig::new().with("ethereum", Endpoints::new(all).unwrap()), registry())
}

/// An order of the fixtures.
pub fn case(id: &str) -> Case {
    countersign_testkit::fixtures_of(countersign::Family::Evm).unwrap().into_iter().find(|case| case.id == id).expect(id)
}

/// Requires that an error does not show the key in an endpoint's URL, and returns the result.
pub fn shows_no_key<T>(read: Result<T, NodeError>) -> Result<T, NodeError> {
    if let Err(error) = &read {
        assert!(!error.to_string().contains("the-key"), "{error}");
        assert!(!format!("{error:?}").contains("the-key"), "{error:?}");
    }
    read
}

/// Returns the evidence, or the name of the code of whatever is missing.
pub fn judged(read: Result<HtlcQuorum, NodeError>, terms: &VerifiedTerms, rule: &FinalityRule, now: u64) -> Result<Funded, String> {
    let quorum = read.map_err(|error| error.code().name().to_owned())?;
    Funded::judge(terms, &quorum, rule, UnixTime::from_secs(now)).map_err(|hold| hold.code().name().to_owned())
}
