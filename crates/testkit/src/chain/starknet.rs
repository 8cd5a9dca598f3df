//! A Starknet chain with one order, in memory, and its endpoints, honest or lying on request. No time passes.
#![allow(clippy::unwrap_used, reason = "a panic in a test is a failed test")]

mod view;

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use countersign_core::reader::{Answer, Request, json_rpc};
use countersign_core::{Family, HtlcTerms, Policy, SecretHash, U256, VerifiedTerms, json, verify_record};
use countersign_json::line::Case as JsonCase;
use countersign_starknet::read::{self, Access};
use countersign_starknet::{Felt, Starknet, StarknetGeneration, address, felt};
use serde_json::{Value, json};

use crate::{Case, cairo, registry};

pub(crate) use self::view::moment;

/// The caller's clock.
pub const NOW: u64 = 1_800_000_000;
pub const SECRET: [u8; 32] = [0x7e; 32];
/// The block in which the order was initiated.
pub const INITIATED: u64 = 700_000;
/// The newest block.
pub const LATEST: u64 = INITIATED + 99;
/// The class of the contract.
pub const CLASS: u64 = 0xc1a55;

/// Orders whose destination contract has a generation that can be read.
pub const READABLE: [&str; 3] = ["starknet-to-2025-02", "starknet-to-2025-11", "starknet-to-client-3-1-3"];

type Lie = Box<dyn Fn(&str, &str, &Value) -> Option<Value> + Send + Sync>;

/// A chain with one order, and its endpoints.
pub struct Chain {
    pub chain_id: &'static str,
    pub version: &'static str,
    pub generation: &'static StarknetGeneration,
    /// The interface of the contract's class.
    pub abi: String,
    pub class: u64,
    pub latest: u64,
    pub time: u64,
    pub on_l1: Option<u64>,
    pub order: Option<[Felt; 7]>,
    pub id: Felt,
    pub htlc: Felt,
    pub token: Felt,
    /// The HTLC's balance of the token.
    pub holds: U256,
    /// The balance of every other account in every token.
    pub balance: U256,
    pub allowance: U256,
    pub events: Vec<Value>,
    /// If set, events are listed one per page after this many empty pages. Otherwise all are on one page.
    pub empty_pages: Option<usize>,
    /// The result of a simulation.
    pub trace: Value,
    /// Hashes of transactions that the chain knows, with their status.
    pub statuses: BTreeMap<String, Value>,
    /// Overrides the result of a method on a host; an object with `error` is an error.
    pub lie: Lie,
    /// The host, method and parameters of every call so far.
    pub seen: Mutex<Vec<(String, String, Value)>>,
}

pub fn hash_of(number: u64) -> String {
    format!("{:#x}", Felt::from(number) * Felt::from(0x1234_5678_9abc_u64))
}

pub fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

pub fn halves(number: U256) -> Value {
    json!(felt::halves(number).map(hex))
}

/// Returns the interface of a generation as text, which is written once: tests that follow an order make many chains.
fn abi_of(generation: &'static StarknetGeneration) -> String {
    static ABIS: [OnceLock<String>; StarknetGeneration::ALL.len()] = [const { OnceLock::new() }; StarknetGeneration::ALL.len()];
    let place = StarknetGeneration::ALL.iter().position(|one| *one == generation).unwrap();
    ABIS[place].get_or_init(|| cairo::abi(generation).to_string()).clone()
}

impl Chain {
    /// Creates a chain with the order of these terms, funded according to them.
    pub fn funded(terms: &HtlcTerms) -> Self {
        let generation = StarknetGeneration::expected(terms.generation);
        let account = |account| address::from_account(account).unwrap();
        let [low, high] = felt::halves(terms.amount);
        let parties = [account(&terms.initiator), account(&terms.redeemer)];
        let order = [Felt::ZERO, parties[0], parties[1], Felt::from(INITIATED), Felt::from(terms.timelock), low, high];
        Self {
            chain_id: "SN_MAIN",
            version: "0.9.0",
            generation,
            abi: abi_of(generation),
            class: CLASS,
            latest: LATEST,
            time: NOW - 5,
            on_l1: Some(INITIATED + 10),
            order: Some(order),
            id: felt::parse(&format!("0x{}", terms.swap_id)).unwrap(),
            htlc: account(terms.htlc.as_ref().unwrap()),
            token: felt::parse(terms.token.as_ref().unwrap()).unwrap(),
            holds: terms.amount,
            balance: U256::from(10).pow(U256::from(30)),
            allowance: U256::ZERO,
            events: Vec::new(),
            empty_pages: None,
            trace: Value::Null,
            statuses: BTreeMap::new(),
            lie: Box::new(|_, _, _| None),
            seen: Mutex::default(),
        }
    }

    pub fn lying(mut self, lie: impl Fn(&str, &str, &Value) -> Option<Value> + Send + Sync + 'static) -> Self {
        self.lie = Box::new(lie);
        self
    }

    /// Ends the order in this block, with these events.
    pub fn ended(mut self, block: u64, events: Vec<Value>) -> Self {
        let is_stored = read::access(self.generation) == Ok(Access::Storage);
        self.order.as_mut().unwrap()[0] = Felt::from(if is_stored { 1 } else { block });
        self.events = events;
        self
    }

    pub fn redeemed(self, secret: &[u8; 32]) -> Self {
        let block = self.latest - 95;
        let event = self.event(&[read::REDEEMED, self.id], &redeemed_data(self.generation, secret), block);
        self.ended(block, vec![event])
    }

    pub fn refunded(self) -> Self {
        let block = self.latest - 10;
        let event = self.event(&[read::REFUNDED, self.id], &[], block);
        self.ended(block, vec![event])
    }

    /// The funding event.
    pub fn initiated(&self, hash: SecretHash, amount: U256) -> Value {
        let data = [hash_words(self.generation, &hash.0), felt::halves(amount).to_vec()].concat();
        self.event(&[read::INITIATED, self.id], &data, INITIATED)
    }

    pub fn event(&self, keys: &[Felt], data: &[Felt], block: u64) -> Value {
        let hexes = |felts: &[Felt]| felts.iter().copied().map(hex).collect::<Vec<_>>();
        json!({
            "from_address": hex(self.htlc),
            "keys": hexes(keys),
            "data": hexes(data),
            "block_number": block,
            "block_hash": hash_of(block),
            "transaction_hash": hash_of(block + 1_000_000_000),
        })
    }

    pub fn block(&self, number: u64) -> Value {
        let price = |fri: u64| json!({"price_in_fri": format!("{fri:#x}"), "price_in_wei": "0x1"});
        let is_on_l1 = self.on_l1.is_some_and(|on_l1| number <= on_l1);
        json!({
            "status": if is_on_l1 { "ACCEPTED_ON_L1" } else { "ACCEPTED_ON_L2" },
            "block_number": number,
            "block_hash": hash_of(number),
            "parent_hash": hash_of(number - 1),
            "timestamp": self.time + number * 4 - self.latest * 4,
            "l1_gas_price": price(1_000),
            "l2_gas_price": price(3_000),
            "l1_data_gas_price": price(7),
            "new_root": "0x3",
            "sequencer_address": "0x4",
            "l1_da_mode": "BLOB",
            "starknet_version": "0.14.0",
            "transactions": ["0x1", "0x2"],
        })
    }

    fn number_of(&self, block: &Value) -> Option<u64> {
        match block {
            Value::String(tag) if tag == "latest" || tag == "pre_confirmed" => Some(self.latest),
            Value::String(tag) if tag == "l1_accepted" => self.on_l1,
            Value::Object(id) if id.contains_key("block_number") => id["block_number"].as_u64().filter(|number| *number <= self.latest),
            Value::Object(id) => (INITIATED - 50..=self.latest).find(|number| json!(hash_of(*number)) == id["block_hash"]),
            other => panic!("{other}"),
        }
    }

    fn order_at(&self, number: u64) -> [Felt; 7] {
        self.order.filter(|_| number >= INITIATED).unwrap_or_default()
    }

    fn result(&self, method: &str, params: &Value) -> Value {
        let error = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
        let number = match params.get("block_id").map(|block| self.number_of(block)) {
            Some(None) => return error(24, "Block not found"),
            Some(Some(number)) => number,
            None => self.latest,
        };
        match method {
            "starknet_chainId" => json!(hex(felt::from_short_string(self.chain_id).unwrap())),
            "starknet_specVersion" => json!(self.version),
            "starknet_getBlockWithTxHashes" => self.block(number),
            "starknet_getClassHashAt" => json!(hex(Felt::from(self.class))),
            "starknet_getClassAt" => json!({"sierra_program": ["0x1"], "contract_class_version": "0.1.0", "abi": self.abi}),
            "starknet_call" => {
                let request = &params["request"];
                let selector = felt::parse(request["entry_point_selector"].as_str().unwrap()).unwrap();
                let is_htlc = request["contract_address"] == hex(self.htlc);
                match selector {
                    selector if selector == read::GET_ORDER && is_htlc && read::access(self.generation) == Ok(Access::Getter) => {
                        json!(self.order_at(number).map(hex))
                    }
                    selector if selector == read::TOKEN && is_htlc => json!([hex(self.token)]),
                    selector if selector == read::BALANCE_OF => {
                        halves(if request["calldata"] == json!([hex(self.htlc)]) { self.holds } else { self.balance })
                    }
                    selector if selector == read::ALLOWANCE => halves(self.allowance),
                    _ => error(21, "Requested entrypoint does not exist in the contract"),
                }
            }
            "starknet_getStorageAt" => {
                let index = read::slots(self.id).into_iter().position(|slot| params["key"] == hex(slot));
                json!(hex(index.map_or(Felt::ZERO, |index| self.order_at(number)[index])))
            }
            "starknet_getEvents" => {
                let Some(empty) = self.empty_pages else { return json!({"events": self.events}) };
                let page = params["filter"]["continuation_token"].as_str().map_or(0, |token| token.parse::<usize>().unwrap());
                let events: Vec<_> = page.checked_sub(empty).and_then(|index| self.events.get(index)).into_iter().collect();
                if page + 1 < empty + self.events.len() {
                    json!({"events": events, "continuation_token": (page + 1).to_string()})
                } else {
                    json!({"events": events})
                }
            }
            "starknet_getNonce" => json!("0x2a"),
            "starknet_estimateFee" => json!([{
                "l1_gas_consumed": "0x0", "l1_gas_price": "0x1", "l2_gas_consumed": "0xf4240", "l2_gas_price": "0x1",
                "l1_data_gas_consumed": "0x101", "l1_data_gas_price": "0x1", "overall_fee": "0x1", "unit": "FRI",
            }]),
            "starknet_simulateTransactions" => {
                let estimate = self.result("starknet_estimateFee", &Value::Null)[0].clone();
                json!([{"transaction_trace": self.trace, "fee_estimation": estimate}])
            }
            "starknet_getTransactionReceipt" => error(29, "Transaction hash not found"),
            "starknet_getTransactionStatus" => match self.statuses.get(params["transaction_hash"].as_str().unwrap()) {
                Some(status) => status.clone(),
                None => error(29, "Transaction hash not found"),
            },
            _ => error(-32_601, "Method not found"),
        }
    }

    /// Returns the result of a call; an object with `error` is an error.
    pub fn reply(&self, host: &str, method: &str, params: &Value) -> Value {
        self.seen.lock().unwrap().push((host.to_owned(), method.to_owned(), params.clone()));
        (self.lie)(host, method, params).unwrap_or_else(|| self.result(method, params))
    }

    /// Answers a request of a reader.
    pub fn answer(&self, request: &Request) -> Answer {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let reply = self.reply("a.example", method, &serde_json::from_str(params).unwrap());
        let part = if reply.get("error").is_some() { reply } else { json!({ "result": reply }) };
        let mut body = json!({"jsonrpc": "2.0", "id": 0});
        body.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        json_rpc::decode(body.to_string().as_bytes(), 1).unwrap().remove(0)
    }

    /// How often a method was called.
    pub fn count(&self, method: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|(_, seen, _)| seen == method).count()
    }
}

pub fn hash_words(generation: &'static StarknetGeneration, hash: &[u8; 32]) -> Vec<Felt> {
    let size = if generation == StarknetGeneration::CLIENT_3_1_3 { 16 } else { 4 };
    hash.chunks(size).map(Felt::from_bytes_be_slice).collect()
}

/// The data of a redemption event.
pub fn redeemed_data(generation: &'static StarknetGeneration, secret: &[u8; 32]) -> Vec<Felt> {
    let mut data = hash_words(generation, &SecretHash::of(secret).0);
    if generation != StarknetGeneration::CLIENT_3_1_3 {
        data.push(Felt::from(8));
    }
    data.extend(secret.chunks(4).map(Felt::from_bytes_be_slice));
    data
}

/// An order of the fixtures.
pub fn case(id: &str) -> Case {
    crate::fixtures_of(Family::Starknet).unwrap().into_iter().find(|case| case.id == id).expect(id)
}

/// Returns the chain of an order's destination, funded according to its terms.
pub fn chain_of(id: &str) -> Chain {
    let terms = terms(id).destination;
    let mut chain = Chain::funded(&terms);
    // The funding event is requested only if the id does not prove the hash.
    chain.events = if terms.swap_id_recomputed { Vec::new() } else { vec![chain.initiated(terms.secret_hash, terms.amount)] };
    chain
}

/// The terms of an order, with the secret of these tests.
pub fn terms(id: &str) -> VerifiedTerms {
    let case = case(id);
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    let mut terms = proposal.open(registry(), &Policy::default(), verify_record::<Starknet>).unwrap().terms;
    terms.source.secret_hash = SecretHash::of(&SECRET);
    terms.destination.secret_hash = SecretHash::of(&SECRET);
    terms
}
