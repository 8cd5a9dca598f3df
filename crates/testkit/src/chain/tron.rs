//! A Tron chain with one order, in memory. No time passes.

mod view;

use std::collections::BTreeMap;

use countersign_core::reader::{Answer, Request};
use countersign_core::{HtlcTerms, Policy, SecretHash, json, verify_record};
use countersign_json::line::Case as JsonCase;
use countersign_tron::alloy_primitives::{Address as AbiAddress, B256, U256, hex, keccak256};
use countersign_tron::{Address, Tron as Family, read};
use serde_json::{Value, json};

use crate::{abi, fixture, registry};

pub(crate) use self::view::moment;

/// The caller's clock.
pub const NOW: u64 = 1_800_000_000;
pub const SECRET: [u8; 32] = [0x7e; 32];
/// The block in which the order was initiated.
pub const INITIATED: u64 = 60_000_000;
/// The newest block.
pub const LATEST: u64 = INITIATED + 99;
/// The newest irreversible block.
pub const SOLID: u64 = LATEST - 19;

/// A chain with one order.
#[derive(Debug, Clone)]
pub struct Tron {
    pub genesis: u32,
    pub latest: u64,
    pub solid: u64,
    /// Unix seconds of the newest block.
    pub time: u64,
    /// The six words of the order.
    pub order: Option<[U256; 6]>,
    pub htlc: Address,
    pub token: AbiAddress,
    pub holds: U256,
    pub allowance: U256,
    /// Sun.
    pub coins: u64,
    /// The transactions of a block.
    pub infos: BTreeMap<u64, Vec<Value>>,
    /// The outcome of a call that is not read-only.
    pub simulated: Value,
    pub energy_limit: u64,
    /// The further members of accounts: their permissions.
    pub permissions: Value,
}

pub fn id_of(number: u64) -> B256 {
    let mut id = keccak256(number.to_be_bytes());
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}

fn word(address: AbiAddress) -> U256 {
    address.into_word().into()
}

pub fn bare(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(bytes)
}

impl Tron {
    /// Creates a chain with the order, funded according to its terms.
    pub fn funded(terms: &HtlcTerms) -> Self {
        let account = |account| word(Address::from_account(account).expect("it is there").bytes());
        let order = [
            account(&terms.initiator),
            account(&terms.redeemer),
            U256::from(INITIATED),
            U256::from(terms.timelock),
            terms.amount,
            U256::ZERO,
        ];
        let token = terms.token.as_ref().map_or(read::NATIVE, |token| Address::parse(token).expect("it is there").bytes());
        let htlc = Address::from_account(terms.htlc.as_ref().expect("it is there")).expect("it is there");
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
            permissions: json!({}),
        }
    }

    /// Ends the order with this log, this many blocks before the newest one.
    pub fn ended(mut self, before: u64, log: &Value) -> Self {
        let block = self.latest - before;
        self.order.as_mut().expect("it is there")[5] = U256::from(block);
        self.infos.insert(block, vec![info(block, std::slice::from_ref(log))]);
        self
    }

    pub fn redeemed(self, terms: &HtlcTerms, secret: [u8; 32]) -> Self {
        let log = redeemed(self.htlc, terms, secret);
        self.ended(70, &log)
    }

    pub fn refunded(self, terms: &HtlcTerms) -> Self {
        let log = log(self.htlc, &[read::REFUNDED, id(terms)], &[]);
        self.ended(10, &log)
    }

    pub fn block(&self, number: u64) -> Value {
        if number == 0 {
            let mut id = [0; 32];
            id[28..].copy_from_slice(&self.genesis.to_be_bytes());
            return json!({"blockID": bare(id), "block_header": {"raw_data": {"parentHash": "e5"}}, "transactions": []});
        }
        let millis = (self.time + number * 3 - self.latest * 3) * 1_000;
        json!({"blockID": bare(id_of(number)), "block_header": {"raw_data": {"number": number, "timestamp": millis, "version": 32}}})
    }

    /// A block by its number. Nodes answer with an empty object if they do not have it.
    fn block_at(&self, question: &Value, newest: u64) -> Value {
        let number = question["num"].as_u64().expect("it is there");
        if number > newest { json!({}) } else { self.block(number) }
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
        let data = hex::decode(question["data"].as_str().expect("it is there")).expect("it is there");
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

    /// Answers one request.
    pub fn answer(&self, request: &Request) -> Answer {
        let Request::Post { path, body, .. } = request else { panic!("{request:?}") };
        Answer::http(200, self.reply(path, &serde_json::from_slice(body).expect("JSON")).to_string().into_bytes())
    }

    /// Answers a request at a path.
    pub fn reply(&self, path: &str, question: &Value) -> Value {
        match path {
            "/wallet/getnowblock" => self.block(self.latest),
            "/walletsolidity/getnowblock" => self.block(self.solid),
            "/wallet/getblockbynum" => self.block_at(question, self.latest),
            "/walletsolidity/getblockbynum" => self.block_at(question, self.solid),
            "/wallet/triggerconstantcontract" => self.call(question, self.latest),
            "/walletsolidity/triggerconstantcontract" => self.call(question, self.solid),
            "/wallet/gettransactioninfobyblocknum" => {
                json!(self.infos.get(&question["num"].as_u64().expect("it is there")).cloned().unwrap_or_default())
            }
            "/wallet/getaccount" => {
                let mut account = json!({"address": question["address"], "balance": self.coins});
                account.as_object_mut().expect("an object").extend(self.permissions.as_object().expect("an object").clone());
                account
            }
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

pub fn returned(data: &[u8]) -> Value {
    json!({"result": {"result": true}, "energy_used": 541, "constant_result": [bare(data)], "transaction": {"ret": [{}]}})
}

pub fn reverted(data: &[u8]) -> Value {
    let message = bare("REVERT opcode executed");
    json!({"result": {"result": true, "message": message}, "constant_result": [bare(data)], "transaction": {"ret": [{"ret": "FAILED"}]}})
}

pub fn id(terms: &HtlcTerms) -> B256 {
    terms.swap_id.parse().expect("it is there")
}

pub fn log(address: Address, topics: &[B256], data: &[u8]) -> Value {
    let topics: Vec<_> = topics.iter().map(bare).collect();
    json!({"address": bare(address.bytes()), "topics": topics, "data": bare(data)})
}

pub fn redeemed(htlc: Address, terms: &HtlcTerms, secret: [u8; 32]) -> Value {
    log(htlc, &[read::REDEEMED, id(terms), SecretHash::of(&secret).0.into()], &abi::bytes(&secret))
}

/// A node's information about a transaction.
pub fn info(block: u64, logs: &[Value]) -> Value {
    json!({
        "id": bare(id_of(block + 1_000_000_000)),
        "fee": 267_000,
        "blockNumber": block,
        "contractResult": [""],
        "receipt": {"energy_usage_total": 60_000, "result": "SUCCESS"},
        "log": logs,
    })
}

/// The terms of the Tron leg of a record of the fixtures, with the secret of these chains.
pub fn terms(record: &str) -> HtlcTerms {
    let case = fixture::<Family>(record);
    let value = json::parse(case.input.as_bytes()).expect("JSON");
    let proposal = JsonCase::from_value(&value).and_then(|case| case.proposal()).expect("a proposal");
    let record = proposal.open(registry(), &Policy::default(), verify_record::<Family>).expect("a record");
    let mut terms = record.terms.source;
    terms.secret_hash = SecretHash::of(&SECRET);
    terms
}
