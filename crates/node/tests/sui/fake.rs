//! Sui nodes in memory, behind HTTP.

use countersign::chains::UnixTime;
use std::sync::Mutex;
use std::time::Duration;

use countersign::{Family, OrderRecord, Policy, Registry, VerifiedRecord, evidence::VerifiedTerms, json, verify_record};
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_json::line::Case as JsonCase;
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
pub(crate) use countersign_testkit::chain::sui::*;
use countersign_testkit::{Case, registry};

const HOSTS: [&str; 4] = ["a.example", "b.example", "c.example", "d.example"];

type Answer = Result<Response, TransportErrorKind>;
/// Overrides a whole response, by host and method.
type Override = Box<dyn Fn(&str, &str, &[u8]) -> Option<Answer> + Send + Sync>;

/// The nodes `https://a.example/the-key` and so on: their paths are keys of accounts.
pub(crate) struct Network {
    pub(crate) ledgers: Mutex<Vec<Ledger>>,
    pub(crate) instead: Override,
    /// Host, URL and body of each request.
    pub(crate) seen: Mutex<Vec<(String, String, Vec<u8>)>>,
}

impl Network {
    pub(crate) fn new(ledgers: &[Ledger]) -> Self {
        Self { ledgers: Mutex::new(ledgers.to_vec()), instead: Box::new(|_, _, _| None), seen: Mutex::default() }
    }

    pub(crate) fn answering(mut self, instead: impl Fn(&str, &str, &[u8]) -> Option<Answer> + Send + Sync + 'static) -> Self {
        self.instead = Box::new(instead);
        self
    }

    pub(crate) fn connect(self) -> Nodes<Self> {
        self.connect_to("sui_testnet")
    }

    pub(crate) fn connect_to(self, chain: &str) -> Nodes<Self> {
        self.connect_with(chain, registry())
    }

    pub(crate) fn connect_with(self, chain: &str, registry: &Registry) -> Nodes<Self> {
        let count = self.ledgers.lock().unwrap().len();
        let all = HOSTS[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}/the-key")).unwrap()).collect();
        Nodes::new(self, NodeConfig::new().with(chain, Endpoints::new(all).unwrap()), registry)
    }

    /// The methods that were called on a host, in order.
    pub(crate) fn methods(&self, host: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let of_host = seen.iter().filter(|(of, _, _)| of == host);
        of_host.map(|(_, url, _)| url.rsplit('/').next().unwrap().to_owned()).collect()
    }
}

impl Transport for Network {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        let body = request.body.as_ref().unwrap().to_vec();
        self.seen.lock().unwrap().push((host.clone(), request.url.to_string(), body.clone()));
        let content_type = request.headers.iter().find(|(name, _)| *name == "content-type").map(|(_, value)| value.as_str());
        assert_eq!(content_type, Some("application/grpc-web+proto"));
        let (head, message) = body.split_first_chunk::<5>().unwrap();
        assert_eq!((head[0], &head[1..]), (0, &u32::try_from(message.len()).unwrap().to_be_bytes()[..]));
        let method = request.url.path().rsplit('/').next().unwrap();
        if let Some(answer) = (self.instead)(&host, method, message) {
            return answer.map_err(|kind| TransportError::new(kind, "scripted"));
        }
        let index = HOSTS.iter().position(|other| *other == host).unwrap();
        Ok(Response::new(200, self.ledgers.lock().unwrap()[index].respond(method, message)))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}

/// A case of the fixtures.
pub(crate) fn case(family: Family, id: &str) -> Case {
    countersign_testkit::fixtures_of(family).unwrap().into_iter().find(|case| case.id == id).expect(id)
}

fn verified() -> VerifiedRecord {
    let case = case(Family::Evm, "evm-record-sui-testnet");
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    verify_record(proposal, registry(), &Policy::default()).unwrap()
}

/// The record of an order whose destination is on Sui.
pub(crate) fn record() -> OrderRecord {
    verified().record
}

/// Verified terms whose destination is the order that @mysten/sui encoded.
pub(crate) fn terms() -> VerifiedTerms {
    let mut terms = verified().terms;
    set_order(&mut terms.destination);
    terms
}
