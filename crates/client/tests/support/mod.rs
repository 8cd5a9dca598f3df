//! Shared by the tests: a scripted service on loopback, and fixtures as orders at each step.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::missing_panics_doc,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a test ends by panicking, and uses the parts it needs"
)]

pub mod memory;

use countersign_client::countersign::chains::UnixTime;
use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use countersign_client::Secret;
use countersign_client::countersign::chains::address;
use countersign_client::countersign::chains::swap_id::{self, SwapIdInput, Version};
use countersign_client::countersign::{CreateOrder, Leg, OrderRecord, Registry};
use countersign_client::status::{format_time, parse_time};
use countersign_testkit::chain::view::{End, Htlc};
use serde_json::{Value, json};

/// A request as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// The service's reaction to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A complete response.
    Whole(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// These bytes as they are, then the connection is closed.
    Raw(Vec<u8>),
    /// The connection is closed before any response.
    Reset,
    /// These bytes, then nothing for this duration.
    Stall(Vec<u8>, Duration),
    /// A head, then bytes until the client stops reading.
    Endless,
}

impl Reply {
    pub fn json(status: u16, body: impl Into<String>) -> Self {
        Self::Whole(status, vec![("content-type", "application/json".into())], body.into().into_bytes())
    }

    pub fn ok(result: &Value) -> Self {
        Self::json(200, format!(r#"{{"status":"Ok","result":{result}}}"#))
    }
}

/// A service on loopback that answers every request with a function and records the requests.
pub struct Server {
    pub base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, answer) = (Arc::clone(&seen), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    if let Some(request) = request(&mut stream) {
                        all.lock().unwrap().push(request.clone());
                        reply(&mut stream, answer(&request));
                    }
                });
            }
        });
        Self { base, seen }
    }

    /// Returns all requests so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.seen().iter().map(Seen::line).collect()
    }
}

fn request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap().split(' ');
    let (method, target) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
    let headers: HashMap<_, _> =
        lines.map(|line| line.split_once(':').unwrap()).map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[head + 4..].to_vec();
    while body.len() < length {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => body.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
    Some(Seen { method, target, headers, body })
}

fn reply(stream: &mut TcpStream, reply: Reply) {
    match reply {
        Reply::Whole(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} Word\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(b"\r\n")).and_then(|()| stream.write_all(&body));
        }
        Reply::Raw(bytes) => drop(stream.write_all(&bytes)),
        Reply::Reset => {}
        Reply::Stall(bytes, time) => {
            let _ = stream.write_all(&bytes);
            thread::sleep(time);
        }
        Reply::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            let chunk = format!("10000\r\n{}\r\n", "a".repeat(0x10000));
            while stream.write_all(chunk.as_bytes()).is_ok() {}
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

pub fn project() -> PathBuf {
    // A fuzz target of another package shares these files.
    let is_project = |folder: &&Path| folder.join("fixtures/registry.json").exists();
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(is_project).unwrap().to_owned()
}

/// Returns the registry of the fixtures, with the paces that these chains have in the tests.
pub fn registry_text() -> String {
    let mut text = fs::read_to_string(project().join("fixtures/registry.json")).unwrap();
    for (id, usual, fastest) in
        [("evm:42161", 12, 12), ("evm:8453", 2, 1), ("evm:84532", 2, 1), ("starknet:SN_MAIN", 30, 15), ("starknet:SN_SEPOLIA", 30, 15)]
    {
        let paced =
            text.replace(&format!(r#""id": "{id}","#), &format!(r#""id": "{id}", "block_time": {usual}, "min_block_time": {fastest},"#));
        assert_ne!(paced, text, "{id}");
        text = paced;
    }
    text
}

/// Reads a file of the optional material outside the project. Returns `None`, with a message on stderr, if it is
/// missing.
pub fn beside(path: &str) -> Option<String> {
    let file = project().join("../shared").join(path);
    let text = fs::read_to_string(&file).ok();
    if text.is_none() {
        eprintln!("skipped: ../shared/{path} does not exist");
    }
    text
}

/// An accepted fixture.
#[derive(Clone)]
pub struct Fixture {
    pub id: String,
    pub request: Value,
    pub response: Value,
    /// The bare record.
    pub order: Value,
    pub wallet: Value,
    pub expect: Value,
    /// The wallet's pinned registry.
    pub registry: String,
}

impl Fixture {
    pub fn load(id: &str) -> Self {
        Self::all(id.split('-').next().unwrap()).into_iter().find(|fixture| fixture.id == id).expect(id)
    }

    /// Loads the fixtures of a family that have an order record.
    pub fn all(family: &str) -> Vec<Self> {
        let text = fs::read_to_string(project().join(format!("fixtures/accept/{family}.jsonl"))).unwrap();
        let registry = registry_text();
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["order"].is_object())
            .map(|line| Self {
                id: line["id"].as_str().unwrap().to_owned(),
                request: line["request"].clone(),
                response: line["response"].clone(),
                order: line["order"].get("result").unwrap_or(&line["order"]).clone(),
                wallet: line["wallet"].clone(),
                expect: line["expect"]["artefacts"].clone(),
                registry: registry.clone(),
            })
            .collect()
    }

    /// Returns one order for each kind of source, with a key where signing needs one.
    pub fn of_each_source() -> Vec<(&'static str, Self)> {
        let families = ["evm", "tron", "starknet", "solana", "sui", "bitcoin"];
        let mut found = Vec::new();
        for family in families {
            let all = Self::all(family);
            // Litecoin belongs to the family bitcoin, but counts as its own kind of source.
            let kinds = if family == "bitcoin" { vec!["bitcoin", "litecoin"] } else { vec![family] };
            for kind in kinds {
                let source = |fixture: &&Self| fixture.request["source"]["asset"].as_str().unwrap().starts_with(kind);
                let usable = |fixture: &&Self| fixture.wallet["secret_key"].is_string();
                let fixture = match kind {
                    "bitcoin" | "litecoin" => all.iter().filter(source).find(usable),
                    // Prefer an order with a gasless path.
                    _ => all.iter().filter(usable).find(|fixture| fixture.gasless().is_some()).or_else(|| all.iter().find(usable)),
                };
                found.extend(fixture.map(|fixture| (kind, fixture.clone())));
            }
        }
        found
    }

    /// Returns the `signature` of the gasless PATCH as the reference libraries computed it; `None` without a gasless path.
    pub fn gasless(&self) -> Option<String> {
        let typed = &self.expect["typed_data"]["signature"];
        if let Some(felts) = typed.as_array() {
            // Starknet: decimal felts joined with a comma.
            let decimal = |felt: &Value| felt.as_str().unwrap().parse::<countersign_client::countersign::U256>().unwrap().to_string();
            return Some(felts.iter().map(decimal).collect::<Vec<_>>().join(","));
        }
        typed.as_str().or_else(|| self.expect["gasless"]["submission"].as_str()).map(str::to_owned)
    }

    /// The typed request.
    pub fn create(&self) -> CreateOrder {
        CreateOrder::from_json(self.request.to_string().as_bytes()).unwrap()
    }

    pub fn order_id(&self) -> &str {
        self.order["order_id"].as_str().unwrap()
    }

    /// Replaces the secret hash in request, response and record. The swap ids are not updated.
    pub fn with_secret_hash(&self, hash: &str) -> Self {
        let old = self.order["source_swap"]["secret_hash"].as_str().unwrap();
        let swap = |value: &Value| serde_json::from_str(&value.to_string().replace(old, hash)).unwrap();
        Self { request: swap(&self.request), response: swap(&self.response), order: swap(&self.order), ..self.clone() }
    }

    /// Returns an order whose secret the wallet knows. Both legs are on EVM chains, so the swap ids can be computed.
    pub fn with_secret(secret: &Secret) -> Self {
        Self::load("evm-record-evm-v2").with_own_secret(secret)
    }

    /// Returns an order between these two EVM chains with a secret that the wallet knows.
    pub fn with_own_secret(&self, secret: &Secret) -> Self {
        self.with_secret_hash(&secret.hash().to_string()).with_swap_ids()
    }

    /// Returns an order between these two EVM chains with the ids that follow from its terms.
    pub fn with_swap_ids(&self) -> Self {
        let mut fixture = self.clone();
        let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
        let record = OrderRecord::from_json(fixture.order.to_string().as_bytes()).unwrap();
        for (leg, name, chain) in [(Leg::Source, "source_swap", 8453), (Leg::Destination, "destination_swap", 42161)] {
            let swap = leg.of(&record);
            let network = &registry.asset(swap.asset.as_str()).unwrap().chain.network;
            let party = |text: &str| address::parse(network, text).unwrap();
            let (initiator, redeemer) = (party(&swap.initiator), party(&swap.redeemer));
            let input = SwapIdInput {
                secret_hash: &swap.secret_hash.0,
                initiator: initiator.bytes(),
                redeemer: redeemer.bytes(),
                timelock: swap.timelock,
                amount: swap.amount,
            };
            let id = swap_id::evm(Version::V2, chain, &input, &[]);
            fixture.order[name]["swap_id"] = json!(hex::encode(id));
        }
        fixture
    }

    /// Returns the record after a step.
    pub fn at(&self, step: Step) -> Value {
        let mut order = self.order.clone();
        if step == Step::Created {
            return order;
        }
        let mut set = |leg: &str, fields: &[(&str, Value)]| {
            for (name, value) in fields {
                order[leg][*name] = value.clone();
            }
        };
        let id = |leg: &str, byte: u8| transaction_id(self.order[leg]["asset"].as_str().unwrap(), byte);
        let created = format_time(UnixTime::from_secs(self.created() + 600));
        let funded = |leg: &str| {
            vec![
                ("initiate_tx_hash", id(leg, 0xaa)),
                ("initiate_block_number", json!("1234")),
                ("filled_amount", self.order[leg]["amount"].clone()),
                ("current_confirmations", self.order[leg]["required_confirmations"].clone()),
                ("initiate_timestamp", json!(created)),
            ]
        };
        if step >= Step::SourceSeen {
            set("source_swap", &[("initiate_tx_hash", id("source_swap", 0xaa))]);
        }
        if step >= Step::SourceFunded {
            set("source_swap", &funded("source_swap"));
        }
        if step >= Step::DestinationFunded {
            set("destination_swap", &funded("destination_swap"));
        }
        if step >= Step::Redeemed {
            set("destination_swap", &[("redeem_tx_hash", id("destination_swap", 0xbb)), ("redeem_block_number", json!("1240"))]);
        }
        order
    }

    /// Unix seconds of the record's creation.
    pub fn created(&self) -> u64 {
        parse_time(self.order["created_at"].as_str().unwrap()).unwrap().as_secs()
    }
}

/// Writes into a record what the service states of an HTLC, and the secret that it knows.
pub fn state_htlc(record: &mut Value, name: &str, htlc: Htlc, secret: Option<&[u8; 32]>) {
    let Some(funded) = htlc.funded else { return };
    let swap = &mut record[name];
    let (asset, amount) = (swap["asset"].as_str().unwrap().to_owned(), swap["amount"].clone());
    let mut set = |member: &str, value: Value| swap[member] = value;
    set("initiate_tx_hash", transaction_id(&asset, 0xaa));
    set("initiate_block_number", json!("1234"));
    set("initiate_timestamp", json!(format_time(UnixTime::from_secs(funded))));
    set("filled_amount", amount);
    set("current_confirmations", json!(1));
    match htlc.ended {
        Some((End::Redeemed(_), _)) => {
            set("redeem_tx_hash", transaction_id(&asset, 0xbb));
            set("redeem_block_number", json!("1240"));
            if let Some(secret) = secret {
                set("secret", json!(hex::encode(secret)));
            }
        }
        Some((End::Refunded, _)) => {
            set("refund_tx_hash", transaction_id(&asset, 0xbb));
            set("refund_block_number", json!("1260"));
        }
        None => {}
    }
}

/// Returns a transaction id in the form of an asset's chain, in which every byte is `byte`. Starknet ids are felts and one byte shorter.
pub fn transaction_id(asset: &str, byte: u8) -> Value {
    // Base58 of 32 and 64 equal bytes, computed with Python's integers.
    let (sui, solana) = match byte {
        0xaa => (
            "CVDFLCAjXhVWiPXH9nTCTpCgVzmDVoiPzNJYuccr1dqB",
            "4QuYxZ8wHiUWSRDBNgYuzbk6Bvj6nsHECYn7r4ZSc7mLsDz7v2QQV29y11SmWN5XzSBnAnw7mofZyg9ehu37kuXw",
        ),
        _ => (
            "DdqGmK5uamYN5vmuZrzpQhKeehLdwtPLVJdhu5P2iJKC",
            "4khQZ7ML7nd4PAEQ1ehuVZRCWRJJyFi3vJZELAiVAdSaTFHS1KwkERUGCcHkA6nb6BJf5yKvrHXpsk4iUb3L2tzE",
        ),
    };
    match asset.split([':', '_']).next().unwrap() {
        "sui" => json!(sui),
        "solana" => json!(solana),
        "starknet" => json!(format!("0x{}", hex_of(byte).repeat(31))),
        _ => json!(hex_of(byte).repeat(32)),
    }
}

fn hex_of(byte: u8) -> String {
    format!("{byte:02x}")
}

/// The step that an order has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Created,
    SourceSeen,
    SourceFunded,
    DestinationFunded,
    Redeemed,
}

/// A service with one order. Each request for the record may advance the order.
#[derive(Clone)]
pub struct Service {
    pub fixture: Fixture,
    pub step: Arc<Mutex<Step>>,
    /// Whether the order advances automatically after it was initiated.
    pub moves: bool,
}

impl Service {
    pub fn new(fixture: Fixture) -> Self {
        Self { fixture, step: Arc::new(Mutex::new(Step::Created)), moves: true }
    }

    pub fn answer(&self, seen: &Seen) -> Reply {
        let id = self.fixture.order_id().to_owned();
        let one = format!("/v2/orders/{id}");
        match (seen.method.as_str(), seen.path()) {
            ("GET", "/v2/quote") => Reply::ok(&json!([{
                "source": {"asset": self.fixture.request["source"]["asset"], "amount": self.fixture.request["source"]["amount"], "display": "1", "value": "1"},
                "destination": {"asset": self.fixture.request["destination"]["asset"], "amount": self.fixture.request["destination"]["amount"], "display": "1", "value": "1"},
                "solver_id": "solver", "estimated_time": 300, "slippage": 50, "fee": 30, "fixed_fee": "0"
            }])),
            ("POST", "/v2/orders") => Reply::json(200, self.fixture.response.to_string()),
            ("GET", "/v2/orders") => Reply::ok(&json!({
                "data": [self.fixture.at(*self.step.lock().unwrap())], "page": 1, "total_pages": 1, "total_items": 1, "per_page": 10
            })),
            ("GET", path) if path == one => {
                let mut step = self.step.lock().unwrap();
                let now = *step;
                if self.moves {
                    *step = match now {
                        Step::SourceSeen => Step::SourceFunded,
                        Step::SourceFunded => Step::DestinationFunded,
                        other => other,
                    };
                }
                Reply::ok(&self.fixture.at(now))
            }
            ("PATCH", path) if path == one => {
                let mut step = self.step.lock().unwrap();
                *step = match seen.target.split_once("?action=").unwrap().1 {
                    "initiate" => Step::SourceSeen,
                    "redeem" => Step::Redeemed,
                    _ => *step,
                };
                Reply::ok(&json!("0xtransaction"))
            }
            _ => Reply::json(404, r#"{"status":"Error","error":"not found"}"#),
        }
    }

    pub fn start(&self) -> Server {
        let service = self.clone();
        Server::start(move |seen| service.answer(seen))
    }
}
