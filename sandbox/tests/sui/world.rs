//! A chain, a funded user, and a swap of SUI for SUI. The registry lists SUI twice, because a swap needs two assets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::{CreateOrder, Proposal, Registry, chains::UnixTime};
use countersign_client::{Request as Call, Response, Transport, TransportError};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use countersign_sandbox::accounts::{self, USER};
use countersign_sandbox::chains::sui::{Network, Sui};
use countersign_sandbox::chains::{Engine, Terms};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::http::Request;
use serde_json::{Value, json};
use sha2::Digest as _;

/// A secret that cannot be guessed. A wallet refuses the hash of one like 7, 7, 7, ...
pub(crate) const SECRET: [u8; 32] = *b"kCq0-8xJw_3nZ5tBv9LhRfY2uEoGs7aM";
pub(crate) const AMOUNT: u64 = 3_000_000_000;
pub(crate) const HOUR: u64 = 3_600_000;

pub(crate) struct World {
    pub(crate) clock: Arc<Clock>,
    /// The chain's name.
    pub(crate) name: String,
    chain: Mutex<Sui>,
}

#[derive(Clone)]
pub(crate) struct Wire(pub(crate) Arc<World>);

impl Transport for Wire {
    async fn send(&self, call: &Call) -> Result<Response, TransportError> {
        let headers = call.headers.iter().map(|(name, value)| (name.to_string(), value.as_str().to_owned())).collect();
        let body = call.body.as_ref().map(|body| body.to_vec()).unwrap_or_default();
        let request = Request { method: "POST".to_owned(), path: call.url.path().to_owned(), query: String::new(), headers, body };
        let reply = self.0.on(|chain| chain.answer(&request));
        Ok(Response::new(reply.status, reply.body))
    }

    async fn sleep(&self, _: Duration) {
        tokio::task::yield_now().await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_millis(self.0.clock.millis())
    }
}

impl World {
    pub(crate) fn new(network: Network) -> Arc<Self> {
        let (clock, name) = (Arc::new(Clock::default()), network.chain.clone());
        let mut chain = Sui::new(network, Arc::clone(&clock));
        let account = chain.address_of(&accounts::key(USER));
        // Two coins, so that the payment needs both.
        for amount in [AMOUNT, 1_000_000_000] {
            chain.fund(&account, &format!("{name}:sui"), u128::from(amount)).unwrap();
        }
        Arc::new(Self { clock, name, chain: Mutex::new(chain) })
    }

    pub(crate) fn on<R>(&self, then: impl FnOnce(&mut Sui) -> R) -> R {
        then(&mut self.chain.lock().unwrap())
    }

    pub(crate) fn user(&self) -> String {
        self.on(|chain| chain.address_of(&accounts::key(USER)))
    }

    pub(crate) fn balance(&self) -> u128 {
        let user = self.user();
        self.on(|chain| chain.balance(&user, &self.asset(true))).unwrap()
    }

    fn asset(&self, is_source: bool) -> String {
        format!("{}:{}", self.name, if is_source { "sui" } else { "again" })
    }

    pub(crate) fn registry(&self) -> Registry {
        let listing = self.on(|chain| chain.listing());
        let mut again = listing.assets[0].clone();
        again["id"] = self.asset(false).into();
        let text = json!({"chains": [listing.chain], "assets": [listing.assets[0], again], "solvers": []}).to_string();
        Registry::from_json(text.as_bytes()).unwrap()
    }

    pub(crate) fn nodes(self: &Arc<Self>) -> Nodes<Wire> {
        let endpoints = Endpoints::new(vec![Endpoint::parse("https://node.example").unwrap()]).unwrap();
        Nodes::new(Wire(Arc::clone(self)), NodeConfig::new().with(&self.name, endpoints), &self.registry())
    }

    pub(crate) fn terms(&self, is_source: bool) -> Terms {
        Terms {
            asset: self.asset(true),
            amount: u128::from(AMOUNT),
            owner: self.user(),
            delegate: None,
            is_source,
            timelock: if is_source { 24 * HOUR } else { 2 * HOUR },
            secret_hash: sha2::Sha256::digest(SECRET).into(),
        }
    }

    pub(crate) fn swap(&self, is_source: bool) -> Value {
        let terms = self.terms(is_source);
        let leg = self.on(|chain| chain.leg(&terms)).unwrap();
        json!({
            "created_at": "2026-03-04T05:06:07Z", "swap_id": leg.swap_id, "chain": self.name, "asset": self.asset(is_source),
            "initiator": leg.initiator, "redeemer": leg.redeemer, "timelock": terms.timelock, "filled_amount": "0", "asset_price": 4,
            "amount": terms.amount.to_string(), "secret_hash": hex::encode(terms.secret_hash), "secret": "", "initiate_tx_hash": "",
            "redeem_tx_hash": "", "refund_tx_hash": "", "initiate_block_number": "0", "redeem_block_number": "0",
            "refund_block_number": "0", "required_confirmations": 1, "current_confirmations": 0, "initiate_timestamp": null,
            "redeem_timestamp": null, "refund_timestamp": null,
        })
    }

    pub(crate) fn order(&self) -> Order {
        let (terms, user) = (self.terms(true), self.user());
        let request = json!({
            "source": {"asset": self.asset(true), "owner": user, "amount": AMOUNT.to_string()},
            "destination": {"asset": self.asset(false), "owner": user, "amount": AMOUNT.to_string()},
            "secret_hash": hex::encode(terms.secret_hash),
        });
        let id = "96bcfe83c50a40328ad31a2cc3b136bd66f74a102091416c6d9482301b10402d";
        let mut result = self.on(|chain| chain.payloads(&terms)).unwrap();
        result.insert("order_id".to_owned(), id.into());
        let record = json!({
            "created_at": "2026-03-04T05:06:07Z", "source_swap": self.swap(true), "destination_swap": self.swap(false), "nonce": "1",
            "order_id": id, "affiliate_fees": [], "version": "v3", "solver_id": "0x01", "integrator": "tests", "deadline": 4_000_000_000_u64,
        });
        Order {
            request: CreateOrder::from_json(request.to_string().as_bytes()).unwrap(),
            response: json!({"status": "Ok", "result": result}).to_string(),
            record: record.to_string(),
        }
    }
}

pub(crate) struct Order {
    pub(crate) request: CreateOrder,
    pub(crate) response: String,
    pub(crate) record: String,
}

impl Order {
    pub(crate) fn proposal(&self) -> Proposal<'_> {
        Proposal::new(&self.request, self.response.as_bytes()).with_record(self.record.as_bytes())
    }
}
