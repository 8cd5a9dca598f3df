//! In-memory Sui nodes, each with its own ledger: honest, or lying where a test changes the ledger. No time passes.
#![allow(clippy::unwrap_used, reason = "a panic in a test is a failed test")]

pub mod proto;
mod view;

use std::collections::BTreeMap;

use countersign_core::reader::{Answer, Format, Request};
use countersign_core::{Account, Family, HtlcTerms, Policy, SecretHash, U256, json, verify_record};
use countersign_json::line::Case as JsonCase;
use countersign_sui::Sui;
use countersign_sui::sui_sdk_types::{Address, Digest};
use serde_json::Value;

use crate::{fixture, registry};

pub(crate) use self::view::moment;
use proto::{Message, answer, error, members, number, text};

/// The caller's clock, Unix seconds.
pub const NOW: u64 = 1_800_000_000;
pub const TESTNET: &str = "69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD";
pub const MAINNET: &str = "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S";
pub const HEAD: u64 = 260_000_000;
/// The version at which the object with the deny lists was shared.
pub const DENY_LIST_VERSION: u64 = 1_075;
/// The current epoch.
pub const EPOCH: u64 = 900;
/// The checkpoint of the order's funding.
pub const FUNDED: u64 = HEAD - 61;
pub const SUI: &str = "0x0000000000000000000000000000000000000000000000000000000000000002::sui::SUI";

/// The module and the function that make a coin of nothing, as BCS writes them in a call.
const ZERO_COIN: &[u8] = b"\x04coin\x04zero";

/// An order as @mysten/sui encodes it: `fixtures/generate/lib/sui-chain.mjs`.
pub fn made() -> Value {
    serde_json::from_slice(&std::fs::read(crate::project().join("fixtures/chain/sui.json")).unwrap()).unwrap()
}

pub fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    hex::decode(text.strip_prefix("0x").unwrap_or(text)).unwrap()
}

pub fn word(value: &Value) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

pub fn address(value: &Value) -> Address {
    value.as_str().unwrap().parse().unwrap()
}

/// A digest that exists only in these tests.
pub fn digest_of(what: u8) -> String {
    Digest::new([what; 32]).to_base58()
}

/// An object of a ledger.
#[derive(Debug, Clone, Default)]
pub struct Object {
    pub id: Option<Address>,
    pub version: Option<u64>,
    pub digest: Option<String>,
    pub kind: String,
    pub contents: Vec<u8>,
    pub transaction: Option<String>,
    pub owner: Option<Message>,
    pub package: Option<Message>,
    pub balance: Option<u64>,
}

impl Object {
    fn message(&self) -> Message {
        let text = |message: Message, field, text: Option<&str>| match text {
            Some(value) => message.text(field, value),
            None => message,
        };
        let id = self.id.map(|id| id.to_string());
        let message = text(Message::default(), 2, id.as_deref()).maybe(3, self.version);
        let message = text(message, 4, self.digest.as_deref()).optional(5, self.owner.as_ref()).text(6, &self.kind);
        let contents = Message::default().text(1, &self.kind).bytes(2, &self.contents);
        let message = if self.contents.is_empty() { message } else { message.message(8, &contents) };
        let message = text(message.optional(9, self.package.as_ref()), 10, self.transaction.as_deref());
        // A field that this version of the messages does not have.
        message.maybe(101, self.balance).text(7_000, "later")
    }
}

/// A transaction of a ledger.
#[derive(Debug, Clone)]
pub struct Executed {
    pub digest: String,
    pub success: bool,
    pub reason: Option<&'static str>,
    /// The module that aborted, and its abort code.
    pub abort: Option<(&'static str, u64)>,
    /// `ExecutionError.kind`.
    pub kind: Option<u64>,
    pub checkpoint: Option<u64>,
    /// Type and contents.
    pub events: Vec<(String, Vec<u8>)>,
    /// Computation, storage, rebate.
    pub gas: [u64; 3],
    /// Account, coin, change.
    pub changes: Vec<(String, String, String)>,
    /// Id and type.
    pub changed: Vec<(Address, String)>,
    /// The objects that were changed at these versions, with their digests.
    pub used: Vec<(Address, u64, String)>,
}

impl Executed {
    pub fn new(digest: String) -> Self {
        let (gas, checkpoint) = ([1_000_000, 5_000_000, 2_000_000], Some(FUNDED));
        Self {
            digest,
            success: true,
            reason: None,
            abort: None,
            kind: None,
            checkpoint,
            events: vec![],
            gas,
            changes: vec![],
            changed: vec![],
            used: vec![],
        }
    }

    pub fn message(&self) -> Message {
        let abort = self.abort.map(|(module, code)| Message::default().number(1, code).message(2, &Message::default().text(2, module)));
        let error = self.reason.map(|reason| Message::default().text(1, reason).maybe(3, self.kind).optional(4, abort.as_ref()));
        let status = Message::default().number(1, u64::from(self.success)).optional(2, error.as_ref());
        let [computation, storage, rebate] = self.gas;
        let gas = Message::default().number(1, computation).number(2, storage).number(3, rebate);
        let changed = self.changed.iter().map(|(id, kind)| Message::default().text(1, &id.to_string()).text(11, kind));
        let used = |(id, version, digest): &(Address, u64, String)| {
            Message::default().text(1, &id.to_string()).number(2, 2).number(3, *version).text(4, digest)
        };
        let changed: Vec<_> = changed.chain(self.used.iter().map(used)).collect();
        let effects = Message::default().message(4, &status).message(6, &gas).all(12, &changed);
        let event =
            |(kind, contents): &(String, Vec<u8>)| Message::default().text(4, kind).message(5, &Message::default().bytes(2, contents));
        let events: Vec<_> = self.events.iter().map(event).collect();
        let change = |(owner, coin, amount): &(String, String, String)| Message::default().text(1, owner).text(2, coin).text(3, amount);
        let changes: Vec<_> = self.changes.iter().map(change).collect();
        let message = Message::default().text(1, &self.digest).message(4, &effects);
        message.message(5, &Message::default().all(3, &events)).maybe(6, self.checkpoint).all(8, &changes)
    }
}

/// The data of one node.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub chain_id: String,
    pub height: u64,
    pub digest: String,
    /// Seconds and nanoseconds of the newest checkpoint.
    pub time: (u64, u64),
    pub objects: Vec<Object>,
    /// Objects at old versions.
    pub past: Vec<Object>,
    pub transactions: Vec<Executed>,
    pub gas_price: u64,
    /// Pages of coins.
    pub coins: Vec<Vec<Object>>,
    /// Balances in coin objects, by coin type.
    pub balances: BTreeMap<String, u64>,
    /// Address balances by coin type. Without one the node does not show the parts of a balance.
    pub in_balance: BTreeMap<String, u64>,
    /// The decimals of coins, by their types.
    pub decimals: BTreeMap<String, u64>,
    pub simulated: Result<Executed, (u32, &'static str)>,
    /// The simulation of a transfer of nothing, which asks whether an account can be paid.
    pub transfer: Result<Executed, (u32, &'static str)>,
    /// Whether the deny list of the next epoch has the account, and whether the coin is paused then.
    pub next_epoch: [bool; 2],
    /// The outcome of a transaction that is sent.
    pub sent: Result<Executed, (u32, &'static str)>,
    pub versions: Vec<u64>,
}

/// The order's object; the last word of its contents' state.
pub fn order(ended: bool) -> Object {
    let order = &made()["order"];
    Object {
        id: Some(address(&order["fields"][0])),
        version: Some(411),
        digest: Some(digest_of(1)),
        kind: order["object_type"].as_str().unwrap().to_owned(),
        contents: bytes(&order[if ended { "ended" } else { "open" }]),
        transaction: Some(digest_of(2)),
        ..Object::default()
    }
}

pub fn package_id() -> Address {
    address(&made()["order"]["package"])
}

/// The pinned package, with the package that defined the type of orders.
pub fn package(origin: Address) -> Object {
    let origin = Message::default().text(1, "AtomicSwap").text(2, "Order").text(3, &origin.to_string());
    let id = package_id();
    let module = Message::default().text(1, "AtomicSwap").bytes(2, &[3; 900]);
    let package = Message::default().text(1, &id.to_string()).text(2, &id.to_string()).number(3, 1).message(4, &module).message(5, &origin);
    let (digest, transaction) = (Some(digest_of(3)), Some(digest_of(4)));
    Object { id: Some(id), version: Some(1), digest, kind: "package".to_owned(), transaction, package: Some(package), ..Object::default() }
}

/// The registry object, shared at a version.
pub fn shared_registry(version: u64) -> Object {
    let owner = Some(Message::default().number(1, 3).number(3, version));
    let id = Some(address(&made()["order"]["registry"]));
    Object { id, version: Some(version + 9), digest: Some(digest_of(5)), kind: "0x7::a::B".to_owned(), owner, ..Object::default() }
}

/// The object with the deny lists of all coins, and the version at which it was shared.
fn deny_list() -> Object {
    let owner = Some(Message::default().number(1, 3).number(3, DENY_LIST_VERSION));
    let id = Some(Address::from_static("0x403"));
    Object {
        id,
        version: Some(DENY_LIST_VERSION + 9),
        digest: Some(digest_of(6)),
        kind: "0x2::deny_list::DenyList".to_owned(),
        owner,
        ..Object::default()
    }
}

pub fn event(name: &str) -> (String, Vec<u8>) {
    (format!("{}::AtomicSwap::{name}", package_id()), bytes(&made()["order"]["events"][name]))
}

impl Ledger {
    /// Creates a node with the funded order.
    pub fn funded() -> Self {
        let funding =
            Executed { events: vec![("0x7::other::Event".to_owned(), vec![1]), event("Initiated")], ..Executed::new(digest_of(2)) };
        Self {
            chain_id: TESTNET.to_owned(),
            height: HEAD,
            digest: digest_of(9),
            time: (NOW - 3, 250_000_000),
            objects: vec![order(false), package(package_id()), shared_registry(117_440_512)],
            past: Vec::new(),
            transactions: vec![funding],
            gas_price: 547,
            coins: vec![],
            balances: BTreeMap::new(),
            in_balance: BTreeMap::new(),
            decimals: BTreeMap::new(),
            simulated: Err((12, "not asked for")),
            transfer: Ok(Executed::new(digest_of(8))),
            next_epoch: [false; 2],
            sent: Err((12, "not asked for")),
            versions: vec![1],
        }
    }

    /// Ends the order with an event.
    pub fn ended(name: &str) -> Self {
        let mut ledger = Self::funded();
        ledger.objects[0] = order(true);
        ledger.transactions[0].events = vec![event(name)];
        ledger
    }

    /// Answers what a reader asks, as a node does: every response has the HTTP status 200.
    pub fn answer(&self, request: &Request) -> Answer {
        let Request::Post { path, body, format: Format::GrpcWeb } = request else { panic!("{request:?}") };
        let (head, message) = body.split_first_chunk::<5>().unwrap();
        assert_eq!((head[0], &head[1..]), (0, &u32::try_from(message.len()).unwrap().to_be_bytes()[..]));
        Answer::http(200, self.respond(path.rsplit('/').next().unwrap(), message))
    }

    /// Returns the body of the response to a call.
    pub fn respond(&self, method: &str, request: &[u8]) -> Vec<u8> {
        self.call(method, request).map_or_else(|(code, words)| error(code, &words), |message| answer(&message))
    }

    /// Returns the response to a call: a message, or an error.
    fn call(&self, method: &str, request: &[u8]) -> Result<Message, (u32, String)> {
        let empty = Message::default();
        let own = |(code, words): (u32, &str)| (code, words.to_owned());
        Ok(match method {
            "GetServiceInfo" => empty.text(1, &self.chain_id).text(2, "a name").number(3, 900).number(4, self.height),
            "GetCheckpoint" => {
                let time = Message::default().number(1, self.time.0).number(2, self.time.1);
                let summary = Message::default().message(9, &time);
                let checkpoint = Message::default().number(1, self.height).text(2, &self.digest).message(3, &summary);
                empty.message(1, &checkpoint)
            }
            "BatchGetObjects" => {
                let asked = members(request).into_iter().filter(|(field, _)| *field == 1);
                let results: Vec<_> = asked.map(|(_, one)| self.object(&one)).collect();
                empty.all(1, &results)
            }
            "GetTransaction" => {
                let id = text(request, 1);
                let found = self.transactions.iter().find(|transaction| transaction.digest == id);
                let found = found.ok_or_else(|| (5, format!("Transaction {id} not found")))?;
                empty.message(1, &found.message())
            }
            "GetEpoch" => {
                let mask = members(request).into_iter().find(|(field, _)| *field == 2).unwrap().1;
                let is_asked = members(&mask).iter().any(|(_, path)| path == b"epoch");
                let number = Message::default().maybe(1, is_asked.then_some(EPOCH));
                empty.message(1, &number.number(8, self.gas_price))
            }
            "GetBalance" => {
                let coin = text(request, 2);
                let coins = self.balances.get(&coin).copied();
                let balance = Message::default().text(1, &coin);
                let balance = match self.in_balance.get(&coin) {
                    Some(funds) => balance.number(3, coins.unwrap_or_default() + funds).number(4, *funds).maybe(5, coins),
                    None => balance.maybe(3, coins),
                };
                empty.message(1, &balance)
            }
            "GetCoinInfo" => {
                let coin = text(request, 1);
                let metadata = self.decimals.get(&coin).map(|decimals| Message::default().text(1, "0x1").number(2, *decimals));
                let info = empty.text(1, &coin);
                match metadata {
                    Some(metadata) => info.message(2, &metadata),
                    None => info,
                }
            }
            "ListOwnedObjects" => {
                let page: usize = text(request, 3).parse().unwrap_or_default();
                let objects: Vec<_> = self.coins.get(page).into_iter().flatten().map(Object::message).collect();
                let message = empty.all(1, &objects);
                if page + 1 < self.coins.len() { message.text(2, &(page + 1).to_string()) } else { message }
            }
            "SimulateTransaction" => {
                let is_of_nothing = request.windows(ZERO_COIN.len()).any(|window| window == ZERO_COIN);
                let simulated = if is_of_nothing { &self.transfer } else { &self.simulated }.clone().map_err(own)?;
                let outputs = self.outputs().into_iter().filter(|_| is_of_nothing && simulated.success);
                empty.message(1, &simulated.message()).all(2, &outputs.collect::<Vec<_>>())
            }
            "ExecuteTransaction" => empty.message(1, &self.sent.clone().map_err(own)?.message()),
            "ListPackageVersions" => {
                let versions: Vec<_> = self.versions.iter().map(|version| Message::default().text(1, "0x1").number(2, *version)).collect();
                empty.all(1, &versions)
            }
            other => return Err((12, format!("no method {other}"))),
        })
    }

    /// Returns what the commands of a transfer of nothing return: a coin, nothing, and two answers of the deny list.
    fn outputs(&self) -> [Message; 4] {
        let returned = |name: &str, bytes: &[u8]| {
            let value = Message::default().text(1, name).bytes(2, bytes);
            Message::default().message(1, &Message::default().message(2, &value))
        };
        let [is_denied, is_paused] = self.next_epoch.map(|is| returned("bool", &[u8::from(is)]));
        [returned("0x2::coin::Coin", &[0; 40]), Message::default(), is_denied, is_paused]
    }

    /// Returns an object at its newest version, or at the one that is named.
    fn object(&self, request: &[u8]) -> Message {
        let (id, version) = (Some(text(request, 1).parse().unwrap()), number(request, 2));
        let is_asked = |object: &&Object| object.id == id && (version.is_none() || object.version == version);
        let past = self.past.iter().filter(|_| version.is_some());
        match past.chain(&self.objects).chain([&deny_list()]).find(is_asked) {
            Some(object) => Message::default().message(1, &object.message()),
            None => Message::default().message(2, &Message::default().number(1, 5).text(2, "object not found")),
        }
    }
}

/// The terms of the order that @mysten/sui encoded, as the source of a record of the fixtures.
pub fn terms() -> HtlcTerms {
    let case = fixture::<Sui>("sui-record-evm");
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).and_then(|case| case.proposal()).unwrap();
    let record = proposal.open(registry(), &Policy::default(), verify_record::<Sui>).unwrap();
    let mut terms = record.terms.source;
    set_order(&mut terms);
    terms
}

/// Replaces an order by the one that @mysten/sui encoded.
pub fn set_order(terms: &mut HtlcTerms) {
    let order = &made()["order"];
    let account = |value: &Value| Account::from_array(Family::Sui, word(value));
    terms.initiator = account(&order["initiator"]);
    terms.redeemer = account(&order["redeemer"]);
    terms.amount = order["amount"].as_str().unwrap().parse::<U256>().unwrap();
    terms.timelock = order["timelock"].as_str().unwrap().parse().unwrap();
    terms.secret_hash = SecretHash(word(&order["secret_hash"]));
    terms.swap_id = order["ids"][0].as_str().unwrap().trim_start_matches("0x").to_owned();
}
