//! A chain, a wallet connected to it, and the documents of orders.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::recover::Recovery;
use countersign::starknet::recover::{self};
use countersign::starknet::{Felt, Key, UnsignedOrder};
use countersign::{
    BroadcastTransaction, CreateOrder, Funded, Policy, Proposal, Registry, SecretHash, Signed, Unsigned, Verified, VerifiedRecord,
    chains::{Finality, FinalityRule, UnixTime},
    evidence::{Hold, HtlcState},
    verify_record,
};
use countersign_client::{Request, Response, Transport, TransportError};
use countersign_node::starknet::TransactionStatus;
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_sandbox::accounts::{self, USER};
use countersign_sandbox::chains::starknet::Starknet;
use countersign_sandbox::chains::{Engine, Terms};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::home::pinned;
use countersign_sandbox::http;
use serde_json::{Value, json};

pub const CHAIN: &str = "starknet";
pub const SECRET: [u8; 32] = *b"the secret of the sandbox's test";
pub const STRK: &str = "0x4718f5a0fc34cc1af16a1cdee98ffb20c31f5cd61d6ab07201858f4287c938d";

/// The chain's interface as an HTTP transport.
pub struct Wire {
    pub engine: Mutex<Starknet>,
    pub clock: Arc<Clock>,
}

impl Transport for Wire {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let reply = post(&mut self.engine.lock().unwrap(), request.body.as_deref().map_or(&[][..], Vec::as_slice));
        Ok(Response::new(reply.status, reply.body))
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.clock.seconds())
    }
}

pub fn post(engine: &mut Starknet, body: &[u8]) -> http::Reply {
    let (method, path) = ("POST".to_owned(), "/".to_owned());
    engine.answer(&http::Request { method, path, query: String::new(), headers: Vec::new(), body: body.to_vec() })
}

/// A chain, and a wallet connected to it.
pub struct Stage {
    pub nodes: Nodes<Wire>,
    pub registry: &'static Registry,
    pub user: String,
}

pub fn engine() -> Starknet {
    Starknet::new(CHAIN, "SN_MAIN", Arc::new(Clock::default()))
}

pub fn felt(text: &str) -> Felt {
    Felt::from_hex(text).unwrap()
}

pub fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

impl Stage {
    pub fn new() -> Self {
        let clock = Arc::new(Clock::default());
        let mut engine = Starknet::new(CHAIN, "SN_MAIN", clock.clone());
        let user = engine.address_of(&accounts::key(USER));
        engine.fund(&user, "starknet:strk", 1_000_000_000_000_000_000_000).unwrap();
        engine.fund(&user, "starknet:wbtc", 500_000_000).unwrap();
        let listing = engine.listing();
        let balances: Vec<_> =
            listing.assets.iter().map(|asset| json!({"asset": asset["id"], "balance": "1", "virtual_balance": "1"})).collect();
        let solver = json!({"solver_id": "0x1", "chain": CHAIN, "address": listing.solver, "assets": balances});
        let registry = json!({"chains": [pinned(&engine)], "assets": listing.assets, "solvers": [solver]});
        let registry: &'static Registry = Box::leak(Box::new(registry.to_string().parse().unwrap()));
        let endpoints = Endpoints::new(vec![Endpoint::parse("http://127.0.0.1:5050").unwrap()]).unwrap();
        let wire = Wire { engine: Mutex::new(engine), clock };
        Self { nodes: Nodes::new(wire, NodeConfig::new().with(CHAIN, endpoints), registry), registry, user }
    }

    pub fn engine<R>(&self, act: impl FnOnce(&mut Starknet) -> R) -> R {
        act(&mut self.nodes.transport().engine.lock().unwrap())
    }

    pub fn rpc(&self, method: &str, params: &Value) -> Value {
        let reply = self.raw(method, params);
        assert!(reply["error"].is_null(), "{method}: {reply}");
        reply["result"].clone()
    }

    pub fn raw(&self, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        serde_json::from_slice(&self.engine(|engine| post(engine, body.as_bytes())).body).unwrap()
    }

    pub fn terms(&self, is_source: bool, hash: [u8; 32]) -> Terms {
        let (asset, amount, timelock) = if is_source { ("wbtc", 1_250_000, 2_880) } else { ("strk", 6_000_000_000_000_000_000, 1_440) };
        let asset = format!("{CHAIN}:{asset}");
        Terms { asset, amount, owner: self.user.clone(), delegate: None, is_source, timelock, secret_hash: hash }
    }

    /// Returns the documents of an order, built by a service from the engine's answers.
    pub fn documents(&self, secret: &[u8; 32]) -> (CreateOrder, String, String) {
        let hash = SecretHash::of(secret).0;
        let [source, destination] = [true, false].map(|is_source| self.terms(is_source, hash));
        let leg = |terms: &Terms| json!({"asset": terms.asset, "owner": terms.owner, "amount": terms.amount.to_string()});
        let request = json!({"source": leg(&source), "destination": leg(&destination), "secret_hash": hash_text(&hash)});
        let id = "ce6025dca9cf3ff1ecb29d2da7d7f6ce08d5abcd59e6c165cc059b4dd0e0f983";
        let mut result = self.engine(|engine| engine.payloads(&source)).unwrap();
        result.insert("order_id".to_owned(), json!(id));
        let created = "2026-03-04T05:06:07.123456Z";
        let record = |terms: &Terms| {
            let leg = self.engine(|engine| engine.leg(terms)).unwrap();
            json!({
                "created_at": created, "swap_id": leg.swap_id, "chain": CHAIN, "asset": terms.asset, "initiator": leg.initiator,
                "redeemer": leg.redeemer, "timelock": terms.timelock, "filled_amount": "0", "asset_price": 1.0,
                "amount": terms.amount.to_string(), "secret_hash": &hash_text(&hash)[2..], "secret": "", "initiate_tx_hash": "",
                "redeem_tx_hash": "", "refund_tx_hash": "", "initiate_block_number": "0", "redeem_block_number": "0",
                "refund_block_number": "0", "required_confirmations": 1, "current_confirmations": 0, "initiate_timestamp": null,
                "redeem_timestamp": null, "refund_timestamp": null,
            })
        };
        let order = json!({
            "created_at": created, "source_swap": record(&source), "destination_swap": record(&destination), "nonce": "1",
            "order_id": id, "affiliate_fees": [], "version": "v3", "solver_id": "0x1", "integrator": "test",
        });
        let response = json!({"status": "Ok", "result": result});
        (request.to_string().parse().unwrap(), response.to_string(), order.to_string())
    }

    pub fn record(&self, secret: &[u8; 32]) -> VerifiedRecord {
        let (request, response, record) = self.documents(secret);
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        verify_record(proposal, self.registry, &Policy::default()).unwrap()
    }

    pub async fn prepare(&self, secret: &[u8; 32]) -> Result<UnsignedOrder, NodeError> {
        let (request, response, record) = self.documents(secret);
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        let order = countersign::starknet::verify(proposal, self.registry, &Policy::default()).unwrap();
        self.nodes.prepare(&Verified::Starknet(order), CHAIN, "", Speed::Normal, &Policy::default()).await.map(native)
    }

    pub async fn recover(&self, recovery: recover::Recovery) -> Result<BroadcastTransaction, NodeError> {
        let (recovery, user) = (Recovery::Starknet(recovery), self.user.clone());
        let prepared = self.nodes.prepare_recovery(&recovery, CHAIN, &user, Speed::Normal, &Policy::default()).await?;
        let sent = signed(native(prepared));
        self.send(&sent).await.map(|()| sent)
    }

    pub async fn send(&self, sent: &BroadcastTransaction) -> Result<(), NodeError> {
        self.nodes.starknet(CHAIN).unwrap().broadcast(&sent.id, &sent.payload).await.map(drop)
    }

    pub async fn status(&self, id: &str) -> Option<TransactionStatus> {
        self.nodes.starknet(CHAIN).unwrap().status(felt(id)).await.unwrap()
    }

    pub async fn state(&self, terms: &countersign::evidence::HtlcTerms) -> HtlcState {
        self.nodes.starknet(CHAIN).unwrap().htlc(terms).await.unwrap().state().unwrap().0
    }

    /// Judges the payment by the strictest rule.
    pub async fn judge(&self, record: &VerifiedRecord) -> Result<Funded, Hold> {
        let quorum = self.nodes.starknet(CHAIN).unwrap().htlc(&record.terms.destination).await.unwrap();
        let rule = FinalityRule::new(Finality::Finalized, 900, 450);
        Funded::judge(&record.terms, &quorum, &rule, self.nodes.transport().now())
    }
}

pub fn hash_text(hash: &[u8; 32]) -> String {
    format!("0x{}", SecretHash(*hash))
}

pub fn native(unsigned: Unsigned) -> UnsignedOrder {
    match unsigned {
        Unsigned::Starknet(order) => order,
        other => panic!("{other:?}"),
    }
}

pub fn key() -> Key {
    hex(Felt::from_bytes_be(&accounts::key(USER))).trim_start_matches("0x").parse().unwrap()
}

pub fn signed(mut order: UnsignedOrder) -> BroadcastTransaction {
    order.sign(&key()).unwrap();
    Signed::Starknet(order.finish().unwrap()).broadcasts().pop().unwrap()
}
