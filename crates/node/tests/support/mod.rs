//! In-memory endpoints of an EVM chain, honest or lying on request. No time passes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    missing_debug_implementations,
    missing_docs,
    dead_code,
    unreachable_pub,
    reason = "a test ends by panicking, and uses the parts it needs"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use countersign::evm::alloy_primitives::{Address, B256, Bloom, U256, hex, keccak256};
use countersign::evm::{address, read};
use countersign::{HtlcTerms, Policy, SecretHash, VerifiedTerms, json, verify_record};
use countersign_batch::Case as JsonCase;
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use countersign_testkit::{Case, registry};
use serde_json::{Value, json};

/// The caller's clock.
pub const NOW: u64 = 1_800_000_000;
pub const SECRET: [u8; 32] = [0x7e; 32];
/// The block in which the order was initiated.
pub const INITIATED: u64 = 21_000_000;
/// The newest block.
pub const LATEST: u64 = INITIATED + 99;

/// Overrides what an endpoint returns: the whole body of a response and its status, or `None` to be honest.
type Lie = Box<dyn Fn(&str, &str, &Value) -> Option<Value> + Send + Sync>;
type Body = Box<dyn Fn(&str, &[u8]) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync>;

/// A chain with one order, and its endpoints.
pub struct Chain {
    pub chain_id: u64,
    pub latest: u64,
    pub time: u64,
    pub safe: Option<u64>,
    pub finalized: Option<u64>,
    /// The six words of the order.
    pub order: Option<[U256; 6]>,
    pub initiated: u64,
    pub htlc: Address,
    pub token: Address,
    pub holds: U256,
    pub logs: Vec<Value>,
    /// Overrides the result of a method on a host; an object with `error` is an error.
    pub lie: Lie,
    /// Overrides a whole response.
    pub body: Body,
    pub seen: Mutex<Vec<(String, String, Value)>>,
    pub requests: Mutex<BTreeMap<String, usize>>,
    /// Seconds that have passed.
    pub clock: AtomicU64,
    /// The number of concurrent requests: the current one and the maximum so far.
    pub under_way: Mutex<(usize, usize)>,
}

pub fn hash_of(number: u64) -> B256 {
    keccak256(number.to_be_bytes())
}

fn word(address: Address) -> U256 {
    address.into_word().into()
}

impl Chain {
    /// Creates a chain with the destination's order, funded according to its terms.
    pub fn funded(terms: &HtlcTerms) -> Self {
        let account = |account| word(address::from_account(account).unwrap());
        let order = [
            account(&terms.initiator),
            account(&terms.redeemer),
            U256::from(INITIATED),
            U256::from(terms.timelock),
            terms.amount,
            U256::ZERO,
        ];
        let token = terms.token.as_ref().map_or(read::NATIVE, |token| token.parse().unwrap());
        Self {
            chain_id: 1,
            latest: LATEST,
            time: NOW - 5,
            safe: Some(LATEST - 32),
            finalized: Some(LATEST - 64),
            order: Some(order),
            initiated: INITIATED,
            htlc: address::from_account(terms.htlc.as_ref().unwrap()).unwrap(),
            token,
            holds: terms.amount,
            logs: Vec::new(),
            lie: Box::new(|_, _, _| None),
            body: Box::new(|_, _| None),
            seen: Mutex::default(),
            requests: Mutex::default(),
            clock: AtomicU64::new(0),
            under_way: Mutex::default(),
        }
    }

    pub fn lying(mut self, lie: impl Fn(&str, &str, &Value) -> Option<Value> + Send + Sync + 'static) -> Self {
        self.lie = Box::new(lie);
        self
    }

    pub fn answering(
        mut self,
        body: impl Fn(&str, &[u8]) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static,
    ) -> Self {
        self.body = Box::new(body);
        self
    }

    /// Ends the order, with an event.
    pub fn redeemed(mut self, terms: &HtlcTerms, secret: [u8; 32]) -> Self {
        let block = self.latest - 70;
        self.order.as_mut().unwrap()[5] = U256::from(block);
        let hash = SecretHash::of(&secret).0;
        self.logs = vec![log(self.htlc, &[read::REDEEMED, id(terms), hash.into()], &redeemed_data(&secret), block)];
        self
    }

    pub fn refunded(mut self, terms: &HtlcTerms) -> Self {
        let block = self.latest - 10;
        self.order.as_mut().unwrap()[5] = U256::from(block);
        self.logs = vec![log(self.htlc, &[read::REFUNDED, id(terms)], &[], block)];
        self
    }

    pub fn block(&self, number: u64) -> Value {
        json!({
            "number": format!("{number:#x}"),
            "hash": hash_of(number),
            "parentHash": hash_of(number - 1),
            "timestamp": format!("{:#x}", self.time + number * 12 - self.latest * 12),
            "baseFeePerGas": "0x3b9aca00",
            "logsBloom": Bloom::ZERO,
        })
    }

    fn words_at(&self, block: &Value) -> Vec<u8> {
        static NUMBERS: LazyLock<HashMap<String, u64>> =
            LazyLock::new(|| (INITIATED - 200..INITIATED + 200).map(|number| (hash_of(number).to_string(), number)).collect());
        let number = block["blockHash"].as_str().and_then(|hash| NUMBERS.get(hash));
        let is_before = number.is_some_and(|number| *number < self.initiated);
        let words = self.order.filter(|_| !is_before).unwrap_or_default();
        words.iter().flat_map(U256::to_be_bytes::<32>).collect()
    }

    fn result(&self, method: &str, params: &Value) -> Value {
        let error = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
        match method {
            "eth_chainId" => json!(format!("{:#x}", self.chain_id)),
            "eth_getBlockByNumber" => {
                let number = match params[0].as_str().unwrap() {
                    "latest" => Some(self.latest),
                    "safe" => self.safe,
                    "finalized" => self.finalized,
                    number => Some(u64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap()),
                };
                number.map_or(Value::Null, |number| self.block(number))
            }
            "eth_call" => {
                let data = hex::decode(params[0]["data"].as_str().unwrap()).unwrap();
                let answer = match &data[..4] {
                    selector if *selector == read::orders_call([0; 32])[..4] => self.words_at(&params[1]),
                    selector if *selector == read::token_call()[..] => self.token.into_word().to_vec(),
                    selector if *selector == read::balance_call(Address::ZERO)[..4] => self.holds.to_be_bytes_vec(),
                    selector if *selector == read::allowance_call(Address::ZERO, Address::ZERO)[..4] => self.holds.to_be_bytes_vec(),
                    _ => return error(3, "execution reverted"),
                };
                json!(hex::encode_prefixed(answer))
            }
            "eth_getBalance" => json!(format!("{:#x}", self.holds)),
            "eth_getLogs" => json!(self.logs),
            "eth_gasPrice" => json!("0x77359400"),
            "eth_getTransactionCount" => json!("0x2a"),
            "eth_feeHistory" => json!({
                "baseFeePerGas": ["0x3b9aca00", "0x3b9aca00", "0x3b9aca00", "0x3b9aca00", "0x3b9aca00", "0x4a817c800"],
                "reward": [["0x1", "0x3b9aca00", "0x77359400"], ["0x2", "0x3b9aca01", "0x77359401"], ["0x3", "0x3b9aca02", "0x77359402"]],
            }),
            _ => error(-32_601, "the method does not exist"),
        }
    }

    pub fn reply_to(&self, host: &str, call: &Value) -> Value {
        let (method, params) = (call["method"].as_str().unwrap(), &call["params"]);
        self.seen.lock().unwrap().push((host.to_owned(), method.to_owned(), params.clone()));
        let result = (self.lie)(host, method, params).unwrap_or_else(|| self.result(method, params));
        match result.get("error") {
            Some(error) => json!({"jsonrpc": "2.0", "id": call["id"], "error": error}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        }
    }
}

/// A request under way. It ends also if the caller gives up.
struct UnderWay<'c>(&'c Mutex<(usize, usize)>);

impl<'c> UnderWay<'c> {
    fn new(count: &'c Mutex<(usize, usize)>) -> Self {
        let mut under_way = count.lock().unwrap();
        under_way.0 += 1;
        under_way.1 = under_way.1.max(under_way.0);
        drop(under_way);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().0 -= 1;
    }
}

impl Transport for Chain {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        *self.requests.lock().unwrap().entry(host.clone()).or_default() += 1;
        let under_way = UnderWay::new(&self.under_way);
        tokio::task::yield_now().await;
        drop(under_way);
        let body = request.body.as_ref().unwrap();
        let (status, body) = match (self.body)(&host, body) {
            Some(answer) => answer.map_err(|kind| TransportError::new(kind, "scripted"))?,
            None => {
                let calls: Value = serde_json::from_slice(body).unwrap();
                let reply = match &calls {
                    Value::Array(calls) => Value::Array(calls.iter().map(|call| self.reply_to(&host, call)).collect()),
                    call => self.reply_to(&host, call),
                };
                (200, reply.to_string().into_bytes())
            }
        };
        Ok(Response::new(status, body))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> u64 {
        NOW + self.clock.load(Ordering::SeqCst)
    }
}

pub fn id(terms: &HtlcTerms) -> B256 {
    terms.swap_id.parse().unwrap()
}

pub fn redeemed_data(secret: &[u8]) -> Vec<u8> {
    let mut data = [U256::from(32), U256::from(secret.len())].iter().flat_map(U256::to_be_bytes::<32>).collect::<Vec<_>>();
    data.extend_from_slice(secret);
    data
}

pub fn log(address: Address, topics: &[B256], data: &[u8], block: u64) -> Value {
    json!({
        "address": address,
        "topics": topics,
        "data": hex::encode_prefixed(data),
        "blockNumber": format!("{block:#x}"),
        "blockHash": hash_of(block),
        "transactionHash": hash_of(block + 1_000_000_000),
        "transactionIndex": "0x0",
        "logIndex": "0x0",
        "removed": false,
    })
}

/// Connects endpoints `https://a.example`, `https://b.example` and so on. Their paths are keys of accounts.
pub fn nodes(chain: Chain, count: usize) -> Nodes<Chain> {
    let hosts = ["a", "b", "c", "d", "e"];
    let all = hosts[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}.example/the-key")).unwrap()).collect();
    Nodes::new(chain, NodeConfig::new().with("ethereum", Endpoints::new(all).unwrap()), registry())
}

/// An order of the fixtures.
pub fn case(id: &str) -> Case {
    countersign_testkit::fixtures_of(countersign::Family::Evm).unwrap().into_iter().find(|case| case.id == id).expect(id)
}

/// The terms of an order with both legs on the same EVM chain, with the secret of these tests.
pub fn terms() -> VerifiedTerms {
    let case = case("evm-record-same-chain");
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    let mut terms = verify_record(proposal, registry(), &Policy::default()).unwrap().terms;
    terms.source.secret_hash = SecretHash::of(&SECRET);
    terms.destination.secret_hash = SecretHash::of(&SECRET);
    terms
}
