//! A cluster of the sandbox, and the wallet's side of one order on it.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::{
    Funded, Leg, OrderRecord, Policy, Registry, Unsigned, Verified,
    chains::UnixTime,
    evidence::{HtlcState, ObservedAt, VerifiedTerms},
    json as tree,
    reader::HtlcQuorum,
    recover,
    solana::{Key, SignedOrder},
};
use countersign_client::{Response, Transport, TransportError};
use countersign_json::line::Case;
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_sandbox::accounts::{self, RELAYER, SOLVER, USER};
use countersign_sandbox::chains::solana::Solana;
use countersign_sandbox::chains::{Engine, Event, Terms};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::http;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::v1::TransactionConfig;
use solana_signer::Signer;

pub const SECRET: [u8; 32] = *b"a secret that nobody would guess";
pub const SOL: u128 = 1_000_000_000;

/// The engine as an HTTP transport.
pub struct Front(pub Mutex<Solana>);

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Front")
    }
}

impl Transport for Front {
    async fn send(&self, request: &countersign_client::Request) -> Result<Response, TransportError> {
        let reply = self.0.lock().unwrap().answer(&post(request.body.as_ref().unwrap().to_vec()));
        Ok(Response::new(reply.status, reply.body))
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(Clock::default().seconds())
    }
}

pub fn post(body: impl Into<Vec<u8>>) -> http::Request {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    http::Request { method: "POST".to_owned(), path: "/".to_owned(), query: String::new(), headers, body: body.into() }
}

pub fn call(engine: &mut dyn Engine, method: &str, params: Value) -> Value {
    let reply = engine.answer(&post(json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()));
    assert_eq!(reply.status, 200);
    serde_json::from_slice(&reply.body).unwrap()
}

/// Returns the result of a successful call.
pub fn ask(engine: &mut dyn Engine, method: &str, params: Value) -> Value {
    let mut reply = call(engine, method, params);
    assert!(reply["error"].is_null(), "{method}: {reply}");
    reply["result"].take()
}

pub fn address(role: &str) -> String {
    Keypair::new_from_array(accounts::key(role)).pubkey().to_string()
}

pub const USDC: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

/// Returns the associated token account for USDC.
pub fn token_account(role: &str) -> String {
    let [owner, mint, tokens, program] =
        [address(role).as_str(), USDC, "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL"]
            .map(|key| key.parse::<Address>().unwrap());
    Address::find_program_address(&[owner.as_ref(), tokens.as_ref(), mint.as_ref()], &program).0.to_string()
}

/// Returns the wallet's connection to a cluster.
pub fn connect(solana: Solana, chain: &str, registry: &Registry) -> Nodes<Front> {
    let endpoints = Endpoints::new(vec![Endpoint::parse("https://sandbox.example").unwrap()]).unwrap();
    Nodes::new(Front(Mutex::new(solana)), NodeConfig::new().with(chain, endpoints), registry)
}

pub fn signed(unsigned: Unsigned, key: &Key) -> SignedOrder {
    let Unsigned::Solana(mut unsigned) = unsigned else { panic!("a transaction of Solana") };
    unsigned.sign(key).unwrap();
    unsigned.finish().unwrap()
}

/// Sends a transaction twice, as an interrupted driver would.
pub async fn send(nodes: &Nodes<Front>, chain: &str, signed: SignedOrder) -> Result<String, NodeError> {
    let [kept] = countersign::Signed::from(signed).broadcasts().try_into().unwrap();
    nodes.broadcast(chain, &kept.id, &kept.payload).await?;
    nodes.broadcast(chain, &kept.id, &kept.payload).await?;
    Ok(kept.id)
}

/// Returns whether the wallet regards the solver's payment as funded.
pub fn judged(nodes: &Nodes<Front>, terms: &VerifiedTerms, quorum: &HtlcQuorum, registry: &Registry) -> Result<(), &'static str> {
    let rule = registry.chains().find(|chain| chain.name() == terms.destination.chain).unwrap().profile.finality;
    Funded::judge(terms, quorum, &rule, nodes.transport().now()).map(|_| ()).map_err(|hold| hold.code().name())
}

pub struct Scene {
    pub chain: &'static str,
    pub source: Terms,
    pub destination: Terms,
    pub registry: Registry,
    pub nodes: Nodes<Front>,
    /// Whether the payloads are messages of version 1.
    pub is_v1: bool,
}

impl Scene {
    /// Returns an order from one asset of the cluster to another. The user has five SOL.
    pub fn new(chain: &'static str, cluster: &str, from: &str, to: &str) -> Self {
        Self::with_lamports(chain, cluster, from, to, 5 * SOL)
    }

    pub fn with_lamports(chain: &'static str, cluster: &str, from: &str, to: &str, lamports: u128) -> Self {
        let mut solana = Solana::new(chain, cluster, Arc::default());
        let user = address(USER);
        solana.fund(&user, &format!("{chain}:sol"), lamports).unwrap();
        let terms = |symbol: &str, amount, is_source, timelock| Terms {
            asset: format!("{chain}:{symbol}"),
            amount,
            owner: user.clone(),
            delegate: None,
            is_source,
            timelock,
            secret_hash: Sha256::digest(SECRET).into(),
        };
        let (source, destination) = (terms(from, 1_500_000, true, 216_000), terms(to, 1_400_000, false, 18_000));
        let listing = solana.listing();
        let registry = json!({
            "chains": [listing.chain], "assets": listing.assets,
            "solvers": [{"solver_id": "0xcf0776776c4a75880aaaba155bb09b50e66cf91f", "chain": chain, "address": listing.solver,
                "assets": [{"asset": source.asset, "balance": "1", "virtual_balance": "1"}, {"asset": destination.asset, "balance": "1", "virtual_balance": "1"}]}],
        });
        let registry = Registry::from_json(registry.to_string().as_bytes()).unwrap();
        let nodes = connect(solana, chain, &registry);
        Self { chain, source, destination, registry, nodes, is_v1: false }
    }

    pub fn with<R>(&self, act: impl FnOnce(&mut Solana) -> R) -> R {
        act(&mut self.nodes.transport().0.lock().unwrap())
    }

    pub fn mine(&self, blocks: u64) -> Vec<Event> {
        self.with(|solana| {
            solana.mine(blocks);
            solana.events()
        })
    }

    /// Makes blocks until pending transactions are final.
    pub fn settle(&self) -> Vec<Event> {
        self.mine(1 + self.with(|solana| solana.depth()))
    }

    pub fn has(&self, role: &str, symbol: &str) -> u128 {
        self.with(|solana| solana.balance(&address(role), &format!("{}:{symbol}", self.chain))).unwrap()
    }

    fn line(&self) -> Value {
        let payloads =
            self.with(|solana| if self.is_v1 { solana.v1_payloads(&self.source) } else { solana.payloads(&self.source) }).unwrap();
        let hash = hex::encode(self.source.secret_hash);
        let mut result = payloads;
        result.insert("order_id".to_owned(), json!("ab".repeat(32)));
        let leg = |terms: &Terms| {
            let leg = self.with(|solana| solana.leg(terms)).unwrap();
            json!({
                "created_at": "2026-03-04T05:06:07.123456Z", "swap_id": leg.swap_id, "chain": self.chain, "asset": terms.asset,
                "initiator": leg.initiator, "redeemer": leg.redeemer, "timelock": terms.timelock, "filled_amount": "0",
                "asset_price": 1.0, "amount": terms.amount.to_string(), "secret_hash": hash, "secret": "", "initiate_tx_hash": "",
                "redeem_tx_hash": "", "refund_tx_hash": "", "initiate_block_number": "0", "redeem_block_number": "0",
                "refund_block_number": "0", "required_confirmations": 1, "current_confirmations": 0, "initiate_timestamp": null,
                "redeem_timestamp": null, "refund_timestamp": null,
            })
        };
        let requested = |terms: &Terms| json!({"asset": terms.asset, "owner": terms.owner, "amount": terms.amount.to_string()});
        json!({
            "id": "sandbox", "request": {"source": requested(&self.source), "destination": requested(&self.destination), "secret_hash": hash},
            "response": {"status": "Ok", "result": result}, "wallet": {},
            "order": {
                "created_at": "2026-03-04T05:06:07.123456Z", "source_swap": leg(&self.source), "destination_swap": leg(&self.destination),
                "nonce": "1", "order_id": "ab".repeat(32), "affiliate_fees": [], "version": "v3",
                "solver_id": "0xcf0776776c4a75880aaaba155bb09b50e66cf91f", "integrator": "test", "deadline": 4_000_000_000_u64,
            },
        })
    }

    /// Returns the order with its record, as the wallet has verified it.
    pub fn verified(&self, is_gasless: bool) -> Verified {
        let mut line = self.line();
        if !is_gasless {
            line["response"]["result"]["versioned_tx_gasless"] = Value::Null;
        }
        let text = line.to_string();
        let value = tree::parse(text.as_bytes()).unwrap();
        let proposal = Case::from_value(&value).unwrap().proposal().unwrap();
        countersign::verify(proposal, &self.registry, &Policy::default()).unwrap()
    }

    pub fn terms(&self) -> VerifiedTerms {
        let text = self.line().to_string();
        let value = tree::parse(text.as_bytes()).unwrap();
        let proposal = Case::from_value(&value).unwrap().proposal().unwrap();
        countersign::verify_record(proposal, &self.registry, &Policy::default()).unwrap().terms
    }

    fn key(role: &str) -> Key {
        Key::from_seed(&accounts::key(role))
    }

    /// Prepares, signs and sends the deposit. Without gas, it goes through the service.
    pub async fn pay(&self, is_gasless: bool) -> Result<String, NodeError> {
        let order = self.verified(is_gasless);
        let unsigned = self.nodes.prepare(&order, self.chain, "", Speed::Normal, &Policy::default()).await?;
        let signed = signed(unsigned, &Self::key(USER));
        if let Some(body) = signed.gasless() {
            return Ok(self.with(|solana| solana.initiate(&self.source, &body.signature)).unwrap());
        }
        send(&self.nodes, self.chain, signed).await
    }

    /// Redeems the destination or refunds the source, as the wallet.
    pub async fn recover(&self, leg: Leg) -> Result<String, NodeError> {
        self.recover_with(leg, None).await
    }

    /// Does the same. With limits, the message is one of version 1.
    pub async fn recover_with(&self, leg: Leg, limits: Option<TransactionConfig>) -> Result<String, NodeError> {
        let record = OrderRecord::from_json(self.line()["order"].to_string().as_bytes()).unwrap();
        let recovery = match leg {
            Leg::Destination => recover::redeem(&record, leg, &SECRET, &self.registry),
            _ => recover::refund(&record, leg, &self.registry),
        };
        let recover::Recovery::Solana(recovery) = recovery.unwrap() else { panic!("a recovery of Solana") };
        let recovery = match limits {
            Some(limits) => recovery.with_config(limits),
            None => recovery,
        };
        let (recovery, user) = (recover::Recovery::Solana(recovery), address(USER));
        let unsigned = self.nodes.prepare_recovery(&recovery, self.chain, &user, Speed::Normal, &Policy::default()).await?;
        send(&self.nodes, self.chain, signed(unsigned, &Self::key(USER))).await
    }

    pub async fn read(&self, leg: Leg) -> HtlcState {
        self.observe(leg).await.0
    }

    pub async fn observe(&self, leg: Leg) -> (HtlcState, ObservedAt) {
        let terms = self.terms();
        let terms = if leg == Leg::Source { &terms.source } else { &terms.destination };
        self.nodes.htlc(terms).await.unwrap().state().unwrap()
    }

    /// Returns whether the wallet regards the solver's payment as funded.
    pub async fn judge(&self) -> Result<(), &'static str> {
        let terms = self.terms();
        let quorum = self.nodes.htlc(&terms.destination).await.unwrap();
        judged(&self.nodes, &terms, &quorum, &self.registry)
    }
}

pub const ROLES: [&str; 3] = [USER, SOLVER, RELAYER];
