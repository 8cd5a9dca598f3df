//! The HTTP front of Tron nodes in memory, honest or lying on request. No time passes.

use countersign::chains::UnixTime;
use std::sync::Mutex;
use std::time::Duration;

use countersign::{Policy, SecretHash, evidence::VerifiedTerms, json, verify_record};
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_json::line::Case as JsonCase;
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
pub(crate) use countersign_testkit::chain::tron::{
    INITIATED, LATEST, NOW, SECRET, SOLID, Tron, bare, id, id_of, info, log, redeemed, returned, reverted,
};
use countersign_testkit::{Case, fixtures_of, registry};
use serde_json::Value;

/// Overrides an endpoint's answer to a request at a path.
type Lie = Box<dyn Fn(&str, &str, &Value) -> Option<Value> + Send + Sync>;
type Body = Box<dyn Fn(&str, &str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync>;

/// The endpoints of a chain.
pub(crate) struct Fake {
    chain: Tron,
    lie: Lie,
    body: Body,
    pub(crate) seen: Mutex<Vec<(String, String, Value)>>,
}

impl From<Tron> for Fake {
    fn from(chain: Tron) -> Self {
        Self { chain, lie: Box::new(|_, _, _| None), body: Box::new(|_, _| None), seen: Mutex::default() }
    }
}

/// An endpoint's false answer.
pub(crate) trait Lying: Into<Fake> {
    fn lying(self, lie: impl Fn(&str, &str, &Value) -> Option<Value> + Send + Sync + 'static) -> Fake {
        Fake { lie: Box::new(lie), ..self.into() }
    }

    fn answering(self, body: impl Fn(&str, &str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static) -> Fake {
        Fake { body: Box::new(body), ..self.into() }
    }
}

impl<T: Into<Fake>> Lying for T {}

impl Transport for Fake {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        let path = request.url.path().strip_prefix("/the-key").expect("the endpoint's own path").to_owned();
        let question: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        self.seen.lock().unwrap().push((host.clone(), path.clone(), question.clone()));
        if let Some(body) = (self.body)(&host, &path) {
            let (status, body) = body.map_err(|kind| TransportError::new(kind, "scripted"))?;
            return Ok(Response::new(status, body));
        }
        let answer = (self.lie)(&host, &path, &question).unwrap_or_else(|| self.chain.reply(&path, &question));
        Ok(Response::new(200, answer.to_string().into_bytes()))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}

/// Connects endpoints `https://a.example`, `https://b.example` and so on. Their paths are keys of accounts.
pub(crate) fn nodes(tron: impl Into<Fake>, count: usize) -> Nodes<Fake> {
    let hosts = ["a", "b", "c", "d", "e"];
    let all = hosts[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}.example/the-key")).unwrap()).collect();
    Nodes::new(tron.into(), NodeConfig::new().with("tron", Endpoints::new(all).unwrap()), registry())
}

/// An order of the fixtures.
pub(crate) fn case(family: countersign::Family, id: &str) -> Case {
    fixtures_of(family).unwrap().into_iter().find(|case| case.id == id).expect(id)
}

/// The terms of an order whose destination is on Tron, with the secret of these tests.
pub(crate) fn terms() -> VerifiedTerms {
    let case = case(countersign::Family::Evm, "evm-record-tron");
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    let mut terms = verify_record(proposal, registry(), &Policy::default()).unwrap().terms;
    terms.source.secret_hash = SecretHash::of(&SECRET);
    terms.destination.secret_hash = SecretHash::of(&SECRET);
    terms
}
