//! In-memory Tron nodes, honest or lying on request. No time passes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use countersign::tron::alloy_primitives::{Address as AbiAddress, B256, U256, hex, keccak256};
use countersign::tron::{Address, read};
use countersign::{HtlcTerms, Policy, SecretHash, VerifiedTerms, json, verify_record};
use countersign_batch::Case as JsonCase;
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use countersign_testkit::{Case, fixtures_of, registry};
use serde_json::{Value, json};

/// The caller's clock.
pub(crate) const NOW: u64 = 1_800_000_000;
pub(crate) const SECRET: [u8; 32] = [0x7e; 32];
/// The block in which the order was initiated.
pub(crate) const INITIATED: u64 = 60_000_000;
/// The newest block.
pub(crate) const LATEST: u64 = INITIATED + 99;
/// The newest irreversible block.
pub(crate) const SOLID: u64 = LATEST - 19;

/// Overrides an endpoint's answer to a request at a path.
type Lie = Box<dyn Fn(&str, &str, &Value) -> Option<Value> + Send + Sync>;
type Body = Box<dyn Fn(&str, &str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync>;

/// A chain with one order, and its endpoints.
pub(crate) struct Tron {
    pub(crate) genesis: u32,
    pub(crate) latest: u64,
    pub(crate) solid: u64,
    /// Unix seconds of the newest block.
    pub(crate) time: u64,
    /// The six words of the order.
    pub(crate) order: Option<[U256; 6]>,
    pub(crate) htlc: Address,
    pub(crate) token: AbiAddress,
    pub(crate) holds: U256,
    pub(crate) allowance: U256,
    /// Sun.
    pub(crate) coins: u64,
    /// The transactions of a block.
    pub(crate) infos: BTreeMap<u64, Vec<Value>>,
    /// The outcome of a call that is not read-only.
    pub(crate) simulated: Value,
    pub(crate) energy_limit: u64,
    pub(crate) lie: Lie,
    pub(crate) body: Body,
    pub(crate) seen: Mutex<Vec<(String, String, Value)>>,
}

pub(crate) fn id_of(number: u64) -> B256 {
    let mut id = keccak256(number.to_be_bytes());
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}

fn word(address: AbiAddress) -> U256 {
    address.into_word().into()
}

pub(crate) fn bare(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(bytes)
}

impl Tron {
    /// Creates a chain with the order, funded according to its terms.
    pub(crate) fn funded(terms: &HtlcTerms) -> Self {
        let account = |account| word(Address::from_account(account).unwrap().bytes());
        let order = [
            account(&terms.initiator),
            account(&terms.redeemer),
            U256::from(INITIATED),
            U256::from(terms.timelock),
            terms.amount,
            U256::ZERO,
        ];
        let token = terms.token.as_ref().map_or(read::NATIVE, |token| Address::parse(token).unwrap().bytes());
        let htlc = Address::from_account(terms.htlc.as_ref().unwrap()).unwrap();
        let topics = [read::INITIATED, id(terms), terms.secret_hash.0.into(), terms.amount.into()];
        let infos = [(INITIATED, vec![info(INITIATED, &[log(htlc, &topics, &[])])])].into();
        Self {
            genesis: 728_126_428,
            latest: LATEST,
            solid: SOLID,
            time: NOW - 3,
            order: Some(order),
            htlc,
            token,
            holds: terms.amount,
            allowance: U256::MAX,
            coins: 1_000_000_000,
            infos,
            simulated: json!({"result": {"result": true}, "energy_used": 60_000, "constant_result": [""], "transaction": {"ret": [{}]}}),
            energy_limit: 0,
            lie: Box::new(|_, _, _| None),
            body: Box::new(|_, _| None),
            seen: Mutex::default(),
        }
    }

    pub(crate) fn lying(mut self, lie: impl Fn(&str, &str, &Value) -> Option<Value> + Send + Sync + 'static) -> Self {
        self.lie = Box::new(lie);
        self
    }

    pub(crate) fn answering(
        mut self,
        body: impl Fn(&str, &str) -> Option<Result<(u16, Vec<u8>), TransportErrorKind>> + Send + Sync + 'static,
    ) -> Self {
        self.body = Box::new(body);
        self
    }

    /// Ends the order with this log, this many blocks before the newest one.
    pub(crate) fn ended(mut self, before: u64, log: &Value) -> Self {
        let block = self.latest - before;
        self.order.as_mut().unwrap()[5] = U256::from(block);
        self.infos.insert(block, vec![info(block, std::slice::from_ref(log))]);
        self
    }

    pub(crate) fn redeemed(self, terms: &HtlcTerms, secret: [u8; 32]) -> Self {
        let log = redeemed(self.htlc, terms, secret);
        self.ended(70, &log)
    }

    pub(crate) fn refunded(self, terms: &HtlcTerms) -> Self {
        let log = log(self.htlc, &[read::REFUNDED, id(terms)], &[]);
        self.ended(10, &log)
    }

    pub(crate) fn block(&self, number: u64) -> Value {
        if number == 0 {
            let mut id = [0; 32];
            id[28..].copy_from_slice(&self.genesis.to_be_bytes());
            return json!({"blockID": bare(id), "block_header": {"raw_data": {"parentHash": "e5"}}, "transactions": []});
        }
        let millis = (self.time + number * 3 - self.latest * 3) * 1_000;
        json!({"blockID": bare(id_of(number)), "block_header": {"raw_data": {"number": number, "timestamp": millis, "version": 32}}})
    }

    /// The order at a block, without later changes.
    fn words(&self, at: u64) -> Vec<u8> {
        let mut order = self.order.filter(|order| U256::from(at) >= order[2]).unwrap_or_default();
        if order[5] > U256::from(at) {
            order[5] = U256::ZERO;
        }
        order.iter().flat_map(U256::to_be_bytes::<32>).collect()
    }

    fn call(&self, question: &Value, at: u64) -> Value {
        let data = hex::decode(question["data"].as_str().unwrap()).unwrap();
        let answer = match &data[..4] {
            selector if *selector == read::orders_call([0; 32])[..4] => self.words(at),
            selector if *selector == read::token_call()[..] => self.token.into_word().to_vec(),
            selector if *selector == read::balance_call(AbiAddress::ZERO)[..4] => self.holds.to_be_bytes_vec(),
            selector if *selector == read::allowance_call(AbiAddress::ZERO, AbiAddress::ZERO)[..4] => self.allowance.to_be_bytes_vec(),
            selector if *selector == read::version_call()[..] => return reverted(&[]),
            _ => return self.simulated.clone(),
        };
        returned(&answer)
    }

    fn answer(&self, path: &str, question: &Value) -> Value {
        match path {
            "/wallet/getnowblock" => self.block(self.latest),
            "/walletsolidity/getnowblock" => self.block(self.solid),
            "/wallet/getblockbynum" => self.block(question["num"].as_u64().unwrap()),
            "/wallet/triggerconstantcontract" => self.call(question, self.latest),
            "/walletsolidity/triggerconstantcontract" => self.call(question, self.solid),
            "/wallet/gettransactioninfobyblocknum" => {
                json!(self.infos.get(&question["num"].as_u64().unwrap()).cloned().unwrap_or_default())
            }
            "/wallet/getaccount" => json!({"address": question["address"], "balance": self.coins}),
            "/wallet/getaccountresource" => {
                json!({"freeNetLimit": 600, "EnergyLimit": self.energy_limit, "TotalEnergyLimit": 180_000_000_000_u64})
            }
            "/wallet/getchainparameters" => json!({"chainParameter": [
                {"key": "getMaintenanceTimeInterval", "value": 21_600_000}, {"key": "getTransactionFee", "value": 1_000},
                {"key": "getEnergyFee", "value": 100}, {"key": "getAllowUpdateAccountName"},
            ]}),
            "/wallet/getcontractinfo" => json!({"runtimecode": "6001", "smart_contract": {"origin_energy_limit": 1}}),
            "/wallet/gettransactionbyid" | "/wallet/gettransactioninfobyid" | "/walletsolidity/gettransactioninfobyid" => json!({}),
            other => panic!("{other}"),
        }
    }
}

impl Transport for Tron {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap().to_owned();
        let path = request.url.path().strip_prefix("/the-key").expect("the endpoint's own path").to_owned();
        let question: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        self.seen.lock().unwrap().push((host.clone(), path.clone(), question.clone()));
        if let Some(body) = (self.body)(&host, &path) {
            let (status, body) = body.map_err(|kind| TransportError::new(kind, "scripted"))?;
            return Ok(Response::new(status, body));
        }
        let answer = (self.lie)(&host, &path, &question).unwrap_or_else(|| self.answer(&path, &question));
        Ok(Response::new(200, answer.to_string().into_bytes()))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> u64 {
        NOW
    }
}

pub(crate) fn returned(data: &[u8]) -> Value {
    json!({"result": {"result": true}, "energy_used": 541, "constant_result": [bare(data)], "transaction": {"ret": [{}]}})
}

pub(crate) fn reverted(data: &[u8]) -> Value {
    let message = bare("REVERT opcode executed");
    json!({"result": {"result": true, "message": message}, "constant_result": [bare(data)], "transaction": {"ret": [{"ret": "FAILED"}]}})
}

pub(crate) fn id(terms: &HtlcTerms) -> B256 {
    terms.swap_id.parse().unwrap()
}

pub(crate) fn log(address: Address, topics: &[B256], data: &[u8]) -> Value {
    let topics: Vec<_> = topics.iter().map(bare).collect();
    json!({"address": bare(address.bytes()), "topics": topics, "data": bare(data)})
}

pub(crate) fn redeemed(htlc: Address, terms: &HtlcTerms, secret: [u8; 32]) -> Value {
    let data = [U256::from(32).to_be_bytes::<32>(), U256::from(32).to_be_bytes(), secret].concat();
    log(htlc, &[read::REDEEMED, id(terms), SecretHash::of(&secret).0.into()], &data)
}

/// A node's information about a transaction.
pub(crate) fn info(block: u64, logs: &[Value]) -> Value {
    json!({
        "id": bare(id_of(block + 1_000_000_000)),
        "fee": 267_000,
        "blockNumber": block,
        "contractResult": [""],
        "receipt": {"energy_usage_total": 60_000, "result": "SUCCESS"},
        "log": logs,
    })
}

/// Connects endpoints `https://a.example`, `https://b.example` and so on. Their paths are keys of accounts.
pub(crate) fn nodes(tron: Tron, count: usize) -> Nodes<Tron> {
    let hosts = ["a", "b", "c", "d", "e"];
    let all = hosts[..count].iter().map(|host| Endpoint::parse(&format!("https://{host}.example/the-key")).unwrap()).collect();
    Nodes::new(tron, NodeConfig::new().with("tron", Endpoints::new(all).unwrap()), registry())
}

/// An order of the fixtures.
pub(crate) fn case(family: countersign::Family, id: &str) -> Case {
    fixtures_of(family).unwrap().into_iter().find(|case| case.id == id).expect(id)
}

/// The terms of an order whose destination is on Tron, with the secret of these tests.
pub(crate) fn terms() -> VerifiedTerms {
    let case = case(countersign::Family::Evm, "evm-record-tron");
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    let mut terms = verify_record(proposal, registry(), &Policy::default()).unwrap().terms;
    terms.source.secret_hash = SecretHash::of(&SECRET);
    terms.destination.secret_hash = SecretHash::of(&SECRET);
    terms
}
