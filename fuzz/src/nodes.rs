//! Asks in-memory endpoints everything that is read from a chain other than HTLCs: heads, balances, receivers,
//! contract descriptions, wallet contexts, preflight, broadcast, recoveries and their replacement, transaction
//! status, and coins.
//!
//! | bytes | what they choose |
//! |---|---|
//! | 1 | the order |
//! | 1 | the question |
//! | then, for each answer | whether it is a recorded answer to such a request, changed or unchanged, or any value |
//!
//! The recorded answers are those in `fixtures/readers`. They cover the start of every reading, that is the chain's
//! identity and a block, so that later requests are reached. Later requests have no recorded answers and get values
//! from the input.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use countersign::reader::Answer;
use countersign::recover::Recovery;
use countersign::{BroadcastTransaction, Family, Leg, Policy, Verified, chains::UnixTime, json};
use countersign_json::line::Case;
use countersign_node::{NodeConfig, NodeError, Nodes, Speed};
use countersign_transport::{Request, Response, Transport, TransportError, TransportErrorKind};
use serde_json::{Map, Value, json as value};

use crate::bytes::Bytes;
use crate::{CONVERSATIONS, REGISTRY, cases, lie};

/// After this many requests, nothing is answered any more. No question needs as many.
const MAX_SENT: usize = 256;
const SECRET: [u8; 32] = [7; 32];

/// Names that readers look up in answers.
const NAMES: [&str; 64] = [
    "accounts",
    "address",
    "amount",
    "balance",
    "baseFeePerGas",
    "blockHash",
    "blockID",
    "blockNumber",
    "block_hash",
    "block_header",
    "block_id",
    "block_number",
    "blockhash",
    "chainParameter",
    "code",
    "constant_result",
    "context",
    "data",
    "energy_used",
    "err",
    "error",
    "executable",
    "execution_status",
    "fastestFee",
    "fee",
    "feerate",
    "finality_status",
    "gasUsed",
    "gas_price",
    "hash",
    "height",
    "innerInstructions",
    "key",
    "l1_gas",
    "l1_gas_price",
    "lamports",
    "lastValidBlockHeight",
    "logs",
    "mempoolminfee",
    "message",
    "meta",
    "nonce",
    "number",
    "overall_fee",
    "owner",
    "parentHash",
    "price_in_fri",
    "prioritizationFee",
    "raw_data",
    "receipt",
    "result",
    "returnData",
    "reward",
    "slot",
    "status",
    "timestamp",
    "transactionHash",
    "tx_hash",
    "txid",
    "unitsConsumed",
    "value",
    "vout",
    "3",
    "confirmed",
];

/// An order, with the transactions that can be sent for it.
struct Order {
    verified: Verified,
    owner: String,
    sent: Vec<BroadcastTransaction>,
    recoveries: Vec<(Recovery, String, String)>,
}

struct World {
    orders: Vec<Order>,
    /// Recorded answer bodies, by what their requests have in common.
    answers: HashMap<String, Vec<Vec<u8>>>,
    /// One endpoint for all chains in the registry, in the format of `nodes.json`.
    nodes: String,
}

static WORLD: LazyLock<World> = LazyLock::new(|| World { orders: orders(), answers: answers(), nodes: endpoints() });

/// Asks the question that the input chooses.
pub fn ask(input: &[u8]) {
    let world = &*WORLD;
    let mut bytes = Bytes::new(input);
    let (order, question) = (bytes.pick(&world.orders), bytes.byte());
    let endpoint = Endpoint { rest: Mutex::new(bytes.rest().to_vec()), sent: AtomicUsize::new(0), answers: &world.answers };
    let config = NodeConfig::from_json(world.nodes.as_bytes()).expect("valid endpoints");
    let nodes = Nodes::new(endpoint, config, &REGISTRY);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    if let Err(error) = runtime.block_on(order.ask(question, &nodes)) {
        let text = error.to_string();
        assert!(text.len() < 64 * 1024 && !text.contains('\n'), "{text:?}");
    }
}

impl Order {
    async fn ask(&self, question: u8, nodes: &Nodes<Endpoint>) -> Result<(), NodeError> {
        let (terms, policy) = (self.verified.terms(), Policy::default());
        let source = REGISTRY.asset(terms.source.as_str()).expect("a pinned asset");
        let chain = source.chain_name();
        if question >= 192 {
            let Some(sent) = self.sent.first() else { return Ok(()) };
            return if question < 224 { self.replace(sent, nodes).await } else { self.look_for(sent, question, nodes).await };
        }
        match question % 8 {
            0 => nodes.head(chain, 0).await.map(drop),
            1 => nodes.balance(source, &self.owner).await.map(drop),
            2 => nodes.check_receiver(source, &self.owner).await,
            3 => nodes.describe(source).await.map(drop),
            4 => match self.sent.first() {
                Some(sent) => nodes.broadcast(&sent.chain, &sent.id, &sent.payload).await,
                None => Ok(()),
            },
            5 => {
                let prepared = nodes.prepare(&self.verified, chain, &self.owner, Speed::Normal, &policy).await?;
                assert!(!prepared.requests().is_empty() && !prepared.summary().lines().is_empty());
                Ok(())
            }
            place => {
                let Some((recovery, chain, account)) = self.recoveries.get(usize::from(place) % 2) else { return Ok(()) };
                let prepared = nodes.prepare_recovery(recovery, chain, account, Speed::Fast, &policy).await?;
                assert!(!prepared.requests().is_empty());
                Ok(())
            }
        }
    }
}

impl Order {
    /// Prepares a recovery that replaces a transaction.
    async fn replace(&self, sent: &BroadcastTransaction, nodes: &Nodes<Endpoint>) -> Result<(), NodeError> {
        let Some((recovery, chain, account)) = self.recoveries.first() else { return Ok(()) };
        let submission = nodes.submission(&sent.chain, &sent.id, &sent.payload)?;
        let policy = Policy::default();
        let prepared = nodes.prepare_replacement(recovery, chain, account, &submission, Speed::Fast, &policy).await?;
        assert!(!prepared.requests().is_empty() && !prepared.summary().lines().is_empty());
        Ok(())
    }

    /// Reads the status of a transaction, or the owner's coins on a chain with coins.
    async fn look_for(&self, sent: &BroadcastTransaction, question: u8, nodes: &Nodes<Endpoint>) -> Result<(), NodeError> {
        let (chain, id) = (sent.chain.as_str(), sent.id.as_str());
        let is_about_coins = question.is_multiple_of(2);
        match self.verified.family() {
            Family::Evm => nodes.evm(chain)?.receipt(id.parse().unwrap_or_default()).await.map(drop),
            Family::Tron => nodes.tron(chain)?.receipt(id.parse().unwrap_or_default()).await.map(drop),
            Family::Starknet => nodes.starknet(chain)?.status(id.parse().unwrap_or_default()).await.map(drop),
            Family::Solana => nodes.solana(chain)?.status(id.parse().unwrap_or_default(), 1_000).await.map(drop),
            Family::Sui if is_about_coins => match self.owner.parse() {
                Ok(owner) => nodes.sui(chain)?.coins(owner).await.map(drop),
                Err(_) => Ok(()),
            },
            Family::Sui => match id.parse() {
                Ok(id) => nodes.sui(chain)?.receipt(id).await.map(drop),
                Err(_) => Ok(()),
            },
            _ if is_about_coins => nodes.bitcoin(chain)?.coins(&self.owner).await.map(drop),
            _ => nodes.bitcoin(chain)?.status(id).await.map(drop),
        }
    }
}

/// Returns the first signed orders of each family.
fn orders() -> Vec<Order> {
    let mut orders = Vec::new();
    for family in Family::ALL {
        let signed = cases(family).lines().filter_map(|line| {
            let value = json::parse(line.as_bytes()).expect("fixtures are JSON");
            let case = Case::from_value(&value).expect("a fixture is a case");
            let verified = case.verify(&REGISTRY, &Policy::default()).expect("a fixture is accepted");
            let (unsigned, is_signed) = case.run(&REGISTRY, &Policy::default()).ok()?;
            let sent = is_signed.then(|| unsigned.finish().ok()).flatten()?.broadcasts();
            let owner = verified.terms().initiator.map(ToString::to_string).unwrap_or_default();
            let recoveries = recoveries(&verified);
            Some(Order { verified, owner, sent, recoveries })
        });
        orders.extend(signed.take(12));
    }
    orders
}

/// Returns the refund of the source and the redemption of the destination.
fn recoveries(order: &Verified) -> Vec<(Recovery, String, String)> {
    let Some(record) = order.terms().record else { return Vec::new() };
    let mut record = record.clone();
    let hash = countersign::SecretHash::of(&SECRET);
    (record.source_swap.secret_hash, record.destination_swap.secret_hash) = (hash, hash);
    let all = [
        (countersign::recover::refund(&record, Leg::Source, &REGISTRY), &record.source_swap, record.source_swap.initiator.clone()),
        (
            countersign::recover::redeem(&record, Leg::Destination, &SECRET, &REGISTRY),
            &record.destination_swap,
            record.destination_swap.redeemer.clone(),
        ),
    ];
    all.into_iter().filter_map(|(recovery, swap, account)| Some((recovery.ok()?, swap.chain.to_string(), account))).collect()
}

/// Returns the answers of `fixtures/readers`.
fn answers() -> HashMap<String, Vec<Vec<u8>>> {
    let mut answers: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    for line in CONVERSATIONS.iter().flat_map(|(_, file)| file.lines()) {
        let conversation: Value = serde_json::from_str(line).expect("a conversation is JSON");
        for round in conversation["rounds"].as_array().expect("rounds") {
            let [requests, replies] = ["requests", "answers"].map(|name| round[name].as_array().expect("an array"));
            for (request, reply) in requests.iter().zip(replies) {
                let body = match (&reply["result"], reply["body"].as_str()) {
                    (Value::String(result), _) => result.clone().into_bytes(),
                    (_, Some(body)) => hex::decode(body).expect("hex"),
                    _ => continue,
                };
                let kind =
                    request["method"].as_str().map_or_else(|| kind_of_path(request["path"].as_str().expect("a path")), str::to_owned);
                let known = answers.entry(kind).or_default();
                if !known.contains(&body) {
                    known.push(body);
                }
            }
        }
    }
    answers
}

/// Returns a path without the parts that differ between requests.
fn kind_of_path(path: &str) -> String {
    let parts = path.split(['/', '?']).filter(|part| part.len() < 40 && !part.starts_with(|first: char| first.is_ascii_digit()));
    parts.collect::<Vec<_>>().join("/")
}

fn endpoints() -> String {
    let url = |name: &str| format!("https://{}.example", name.replace('_', "-"));
    let all: Map<String, Value> = REGISTRY.chains().map(|chain| (chain.name().to_owned(), value!([url(chain.name())]))).collect();
    Value::from(all).to_string()
}

/// An endpoint whose answers come from the rest of the input.
struct Endpoint {
    rest: Mutex<Vec<u8>>,
    sent: AtomicUsize,
    answers: &'static HashMap<String, Vec<Vec<u8>>>,
}

impl Endpoint {
    /// Takes bytes from the input.
    fn with_bytes<T>(&self, take: impl FnOnce(&mut Bytes<'_>) -> T) -> T {
        let mut rest = self.rest.lock().expect("no panic while it is held");
        let input = std::mem::take(&mut *rest);
        let mut bytes = Bytes::new(&input);
        let taken = take(&mut bytes);
        *rest = bytes.rest().to_vec();
        taken
    }

    fn body(&self, kind: &str) -> Vec<u8> {
        self.with_bytes(|bytes| {
            let form = bytes.byte();
            match self.answers.get(kind) {
                Some(known) if form < 192 => bytes.pick(known).clone(),
                Some(known) if form < 224 => match lie::changed(&Answer::http(200, bytes.pick(known).clone()), bytes) {
                    Answer::Http { body, .. } => body.to_vec(),
                    _ => Vec::new(),
                },
                _ if form % 8 == 7 => bytes.some().to_vec(),
                _ => any_value(bytes, 0).to_string().into_bytes(),
            }
        })
    }

    /// Answers one or several JSON-RPC calls.
    fn calls(&self, calls: &Value) -> Value {
        if let Value::Array(calls) = calls {
            return calls.iter().map(|call| self.calls(call)).collect();
        }
        let body = self.body(calls["method"].as_str().unwrap_or_default());
        let result = serde_json::from_slice::<Value>(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
        if self.with_bytes(|bytes| bytes.byte()) == u8::MAX {
            return value!({"jsonrpc": "2.0", "id": calls["id"], "error": {"code": -32_000, "message": result}});
        }
        value!({"jsonrpc": "2.0", "id": calls["id"], "result": result})
    }
}

impl Transport for Endpoint {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        if self.sent.fetch_add(1, Ordering::Relaxed) >= MAX_SENT {
            return Err(TransportError::new(TransportErrorKind::Connect, "closed"));
        }
        let calls = request.body.as_ref().and_then(|body| serde_json::from_slice::<Value>(body).ok());
        match calls.filter(|calls| calls.is_array() || calls.get("method").is_some()) {
            Some(calls) => Ok(Response::new(200, self.calls(&calls).to_string())),
            None => {
                let body = self.body(&kind_of_path(request.url.path()));
                let status = self.with_bytes(|bytes| *bytes.pick(&[200, 200, 200, 200, 200, 404, 429, 500]));
                Ok(Response::new(status, body).with_header("grpc-status", "0"))
            }
        }
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(1_800_000_000)
    }
}

/// Returns an arbitrary value that could be an answer or part of one.
fn any_value(bytes: &mut Bytes<'_>, depth: u8) -> Value {
    let number = |bytes: &mut Bytes<'_>| {
        let shift = u32::from(bytes.byte() % 64);
        bytes.number() >> shift
    };
    match bytes.byte() % 12 {
        0 | 1 => value!(format!("{:#x}", number(bytes))),
        2 => value!(number(bytes)),
        3 => value!(number(bytes).to_string()),
        4 => value!(format!("0x{}", hex::encode([bytes.byte(); 32]))),
        5 => value!(format!("0x{}", hex::encode(bytes.some()))),
        6 => value!(number(bytes) as f64 / 1e8),
        7 => bytes.pick(&[value!(true), value!(false), Value::Null, value!(""), value!([]), value!({})]).clone(),
        8 => value!(String::from_utf8_lossy(bytes.some())),
        _ if depth > 3 => Value::Null,
        9 => (0..bytes.byte() % 8).map(|_| any_value(bytes, depth + 1)).collect(),
        // An object with all names at once. Readers ignore the names that they do not use.
        10 if depth < 2 => {
            let members = NAMES.iter().map(|name| ((*name).to_owned(), any_value(bytes, depth + 1)));
            Value::Object(members.collect())
        }
        _ => {
            let members = (0..bytes.byte() % 8).map(|_| ((*bytes.pick(&NAMES)).to_owned(), any_value(bytes, depth + 1)));
            Value::Object(members.collect())
        }
    }
}
