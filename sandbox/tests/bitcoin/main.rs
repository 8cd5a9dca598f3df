//! Tests swaps on Bitcoin and Litecoin with the program's own crates. They read and pay through the Esplora interface
//! or a node's RPC, and the engine judges what they sign.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

mod front;
mod litecoind;
mod mempool;
#[path = "../nodes/mod.rs"]
mod nodes;
mod swaps;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bitcoin::Transaction;
use bitcoin::consensus::encode::serialize_hex;
use bitcoin::hashes::{Hash, sha256};
use countersign::{CreateOrder, OrderRecord, Policy, Proposal, Registry, chains::UnixTime, evidence::VerifiedTerms};
use countersign_client::{Request as ClientRequest, Response, Transport, TransportError};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use countersign_sandbox::accounts;
use countersign_sandbox::chains::bitcoin::Bitcoin;
use countersign_sandbox::chains::{Engine, Terms};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::http::{Reply, Request};
use serde_json::{Value, json};

const SECRET: [u8; 32] = *b"thirty-two bytes of good secret!";
const AMOUNT: u128 = 500_000;

/// How a wallet reaches a chain: through an index server, through a node's own RPC, which only litecoind has, or through both, which have
/// to agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    Esplora,
    Rpc,
    Both,
}

/// The chains, by the host in their URL.
#[derive(Clone)]
struct World {
    chains: Arc<BTreeMap<String, Mutex<Bitcoin>>>,
    clock: Arc<Clock>,
    /// The chain that is not reached through Esplora.
    other: Option<(&'static str, Through)>,
}

impl Transport for World {
    async fn send(&self, request: &ClientRequest) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().trim_end_matches(".example").replace('-', "_");
        let mut chain = self.chains[&host].lock().unwrap();
        let body = request.body.as_ref().map(|body| body.to_vec()).unwrap_or_default();
        let reply = chain.answer(&call(&request.method.to_string(), request.url.path(), &body));
        Ok(Response::new(reply.status, reply.body))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.clock.seconds())
    }
}

fn call(method: &str, path: &str, body: &[u8]) -> Request {
    Request { method: method.to_owned(), path: path.to_owned(), query: String::new(), headers: Vec::new(), body: body.to_vec() }
}

/// Returns the endpoints of a chain, each with a provider of its own.
fn endpoints(chain: &str, through: Through) -> Endpoints {
    let prefixes: &[&str] = match through {
        Through::Esplora => &[""],
        Through::Rpc => &["rpc+"],
        Through::Both => &["", "rpc+"],
    };
    let url = format!("https://{}.example", chain.replace('_', "-"));
    let endpoint = |prefix: &&str| Endpoint::parse(&format!("{prefix}{url}")).unwrap().with_provider(format!("{prefix}{chain}"));
    Endpoints::new(prefixes.iter().map(endpoint).collect()).unwrap()
}

fn user() -> [u8; 32] {
    accounts::key(accounts::USER)
}

fn user_x_only() -> String {
    let pair = bitcoin::key::Keypair::from_seckey_slice(&bitcoin::key::Secp256k1::new(), &user()).unwrap();
    pair.x_only_public_key().0.to_string()
}

impl World {
    fn new(chains: &[(&str, &str)]) -> Self {
        let clock = Arc::new(Clock::default());
        let chain = |(name, id): &(&str, &str)| ((*name).to_owned(), Bitcoin::new(name, id, Arc::clone(&clock)).unwrap());
        Self::of(chains.iter().map(chain).collect(), clock)
    }

    fn of(chains: Vec<(String, Bitcoin)>, clock: Arc<Clock>) -> Self {
        Self { chains: Arc::new(chains.into_iter().map(|(name, chain)| (name, Mutex::new(chain))).collect()), clock, other: None }
    }

    /// Gives the user a few coins on each chain.
    fn funded(self) -> Self {
        for chain in self.chains.keys() {
            let (owner, asset) = (self.owner(chain), self.asset(chain));
            self.on(chain, |engine| (0..3).for_each(|_| engine.fund(&owner, &asset, 1_000_000).unwrap()));
            assert_eq!(self.balance(chain, &owner), 3_000_000);
        }
        self
    }

    fn on<R>(&self, chain: &str, act: impl FnOnce(&mut Bitcoin) -> R) -> R {
        act(&mut self.chains[chain].lock().unwrap())
    }

    /// Mines blocks at the chain's own pace.
    fn mine(&self, chain: &str, blocks: u64) {
        self.on(chain, |engine| {
            self.clock.advance(engine.interval() * blocks);
            engine.mine(blocks);
        });
    }

    fn get(&self, chain: &str, path: &str) -> Reply {
        self.on(chain, |engine| engine.answer(&call("GET", path, b"")))
    }

    fn text(&self, chain: &str, path: &str) -> String {
        let reply = self.get(chain, path);
        assert_eq!(reply.status, 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        String::from_utf8(reply.body).unwrap()
    }

    fn json(&self, chain: &str, path: &str) -> Value {
        serde_json::from_str(&self.text(chain, path)).unwrap()
    }

    fn post(&self, chain: &str, transaction: &Transaction) -> Result<String, String> {
        let reply = self.on(chain, |engine| engine.answer(&call("POST", "/tx", serialize_hex(transaction).as_bytes())));
        let text = String::from_utf8(reply.body).unwrap();
        if reply.status == 200 { Ok(text) } else { Err(text) }
    }

    fn registry(&self) -> Registry {
        let listings: Vec<_> = self.chains.values().map(|chain| chain.lock().unwrap().listing()).collect();
        let solver = |listing: &countersign_sandbox::chains::Listing| json!({ "solver_id": "solver", "chain": listing.chain["chain"], "address": listing.solver });
        let registry = json!({
            "chains": listings.iter().map(|listing| listing.chain.clone()).collect::<Vec<_>>(),
            "assets": listings.iter().flat_map(|listing| listing.assets.clone()).collect::<Vec<_>>(),
            "solvers": listings.iter().map(solver).collect::<Vec<_>>(),
        });
        Registry::from_json(registry.to_string().as_bytes()).unwrap()
    }

    fn nodes(&self) -> Nodes<Self> {
        let connect = |config: NodeConfig, name: &String| config.with(name.clone(), endpoints(name, self.through(name)));
        Nodes::new(self.clone(), self.chains.keys().fold(NodeConfig::new(), connect), &self.registry())
    }

    fn through(&self, chain: &str) -> Through {
        self.other.filter(|(other, _)| *other == chain).map_or(Through::Esplora, |(_, through)| through)
    }

    fn owner(&self, chain: &str) -> String {
        self.on(chain, |engine| engine.address_of(&user()))
    }

    fn asset(&self, chain: &str) -> String {
        self.on(chain, |engine| engine.listing().assets[0]["id"].as_str().unwrap().to_owned())
    }

    fn terms(&self, chain: &str, is_source: bool) -> Terms {
        let timelock = self.on(chain, |engine| {
            let listing = engine.listing().chain;
            listing[if is_source { "source_timelock" } else { "destination_timelock" }].as_str().unwrap().parse().unwrap()
        });
        let secret_hash = sha256::Hash::hash(&SECRET).to_byte_array();
        let (asset, owner, delegate) = (self.asset(chain), self.owner(chain), Some(user_x_only()));
        Terms { asset, amount: AMOUNT, owner, delegate, is_source, timelock, secret_hash }
    }

    fn balance(&self, chain: &str, account: &str) -> u128 {
        let asset = self.asset(chain);
        self.on(chain, |engine| engine.balance(account, &asset).unwrap())
    }
}

/// An order from one chain to another, as the service would answer and store it.
struct Order {
    source: Terms,
    destination: Terms,
    request: CreateOrder,
    response: String,
    record: Value,
}

impl Order {
    fn new(world: &World, from: &str, to: &str) -> Self {
        Self::of(world, (from, world.terms(from, true)), (to, world.terms(to, false)))
    }

    fn of(world: &World, (from, source): (&str, Terms), (to, destination): (&str, Terms)) -> Self {
        let leg = |terms: &Terms| {
            let delegate = terms.delegate.clone();
            json!({ "asset": terms.asset, "owner": terms.owner, "amount": terms.amount.to_string(), "delegate": delegate })
        };
        let hash = hex::encode(source.secret_hash);
        let request = json!({ "source": leg(&source), "destination": leg(&destination), "secret_hash": hash });
        let mut result = world.on(from, |engine| engine.payloads(&source).unwrap());
        result.insert("order_id".to_owned(), json!("ab".repeat(32)));
        let swap = |chain: &str, terms: &Terms| {
            let leg = world.on(chain, |engine| engine.leg(terms).unwrap());
            json!({
                "swap_id": leg.swap_id, "chain": chain, "asset": terms.asset, "initiator": leg.initiator, "redeemer": leg.redeemer,
                "delegate": leg.delegate, "timelock": terms.timelock, "amount": terms.amount.to_string(), "filled_amount": "0",
                "secret_hash": hash, "secret": "",
            })
        };
        let record = json!({
            "order_id": "ab".repeat(32), "version": "v3", "created_at": "2026-01-01T00:00:00Z",
            "source_swap": swap(from, &source), "destination_swap": swap(to, &destination),
        });
        let response = json!({ "status": "Ok", "result": result }).to_string();
        Self { source, destination, request: CreateOrder::from_json(request.to_string().as_bytes()).unwrap(), response, record }
    }

    fn verified(&self, world: &World) -> countersign::Verified {
        let record = self.record.to_string();
        let proposal = Proposal::new(&self.request, self.response.as_bytes()).with_record(record.as_bytes());
        countersign::verify(proposal, &world.registry(), &Policy::default()).unwrap()
    }

    fn terms(&self, world: &World) -> VerifiedTerms {
        let record = self.record.to_string();
        let proposal = Proposal::new(&self.request, self.response.as_bytes()).with_record(record.as_bytes());
        countersign::verify_record(proposal, &world.registry(), &Policy::default()).unwrap().terms
    }

    fn record(&self) -> OrderRecord {
        OrderRecord::from_json(self.record.to_string().as_bytes()).unwrap()
    }

    fn address(&self, leg: &str) -> String {
        self.record[leg]["swap_id"].as_str().unwrap().to_owned()
    }
}

const CHAINS: [(&str, &str); 2] = [("litecoin_regtest", "litecoin:regtest"), ("bitcoin_regtest", "bitcoin:regtest")];

/// Returns both chains. The user has a few coins on each.
fn world() -> World {
    World::new(&CHAINS).funded()
}
