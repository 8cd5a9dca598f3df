//! A node with Tron's HTTP interface on this crate's engine. Its irreversible state is a copy of the chain from some
//! blocks ago.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use countersign::chains::UnixTime;
use countersign::tron::{Address as TronAddress, SignedTronTransaction};
use countersign_client::{Request, Response, Transport, TransportError};
use countersign_proofs_evm::{Outcome, World};
use serde_json::{Value, json};

pub(crate) const START: u64 = 60_000_000;
pub(crate) const NOW: u64 = 1_800_000_000;
/// The number of blocks until a block is irreversible.
pub(crate) const LAG: u64 = 19;
/// The end of the genesis block's id, which identifies the chain.
pub(crate) const GENESIS: u32 = 728_126_428;

/// The chain, in its current state and in the state after every block.
pub(crate) struct Chain {
    pub(crate) now: World,
    past: BTreeMap<u64, World>,
    infos: BTreeMap<u64, Vec<Value>>,
    /// The time of the first block, in Unix seconds.
    began: u64,
}

/// A node of Tron.
pub(crate) struct Node(pub(crate) Mutex<Chain>);

pub(crate) fn bare(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(bytes)
}

pub(crate) fn id_of(number: u64) -> B256 {
    let mut id = keccak256(number.to_be_bytes());
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}

fn twenty(text: &Value) -> Address {
    let bytes = hex::decode(text.as_str().unwrap()).unwrap();
    assert_eq!((bytes.len(), bytes[0]), (21, 0x41), "{text}");
    Address::from_slice(&bytes[1..])
}

impl Chain {
    /// Returns a chain whose first block has this state.
    pub(crate) fn new(world: World) -> Self {
        Self { now: world.clone(), past: [(START, world)].into(), infos: BTreeMap::new(), began: NOW }
    }

    /// Executes a call in the next block, and records the result.
    pub(crate) fn execute(&mut self, id: B256, from: Address, to: Address, data: Bytes, value: U256) -> bool {
        self.past.insert(self.now.block_number(), self.now.clone());
        self.now.advance_blocks(1);
        let receipt = self.now.call(from, to, data, value).unwrap();
        let number = self.now.block_number();
        let logs: Vec<_> = receipt
            .logs
            .iter()
            .map(|log| {
                let topics: Vec<_> = log.topics().iter().map(bare).collect();
                json!({"address": bare(log.address), "topics": topics, "data": bare(&log.data.data)})
            })
            .collect();
        let result = if receipt.is_success() { "SUCCESS" } else { "REVERT" };
        let mut info =
            json!({"id": bare(id), "blockNumber": number, "receipt": {"result": result, "energy_usage_total": receipt.gas_used}});
        if !logs.is_empty() {
            info["log"] = json!(logs);
        }
        if !receipt.is_success() {
            info["result"] = json!("FAILED");
        }
        self.infos.entry(number).or_default().push(info);
        receipt.is_success()
    }

    pub(crate) fn advance(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.past.insert(self.now.block_number(), self.now.clone());
            self.now.advance_blocks(1);
        }
    }

    /// Returns the chain at its newest irreversible block.
    fn solid(&self) -> &World {
        let number = self.now.block_number().saturating_sub(LAG);
        self.past.range(..=number).next_back().map_or(&self.past[&START], |(_, world)| world)
    }

    fn block(&self, number: u64) -> Value {
        if number == 0 {
            let mut id = [0; 32];
            id[28..].copy_from_slice(&GENESIS.to_be_bytes());
            return json!({"blockID": bare(id), "block_header": {"raw_data": {}}});
        }
        let millis = (self.began + (number - START) * 3) * 1_000;
        json!({"blockID": bare(id_of(number)), "block_header": {"raw_data": {"number": number, "timestamp": millis}}})
    }

    fn run(world: &World, question: &Value) -> Value {
        assert!(question.get("function_selector").is_none());
        let mut world = world.clone();
        let data = hex::decode(question["data"].as_str().unwrap()).unwrap();
        let (from, to) = (twenty(&question["owner_address"]), twenty(&question["contract_address"]));
        let value = U256::from(question["call_value"].as_u64().unwrap_or_default());
        let receipt = world.call(from, to, data, value).unwrap();
        match receipt.outcome {
            Outcome::Success { output } => {
                json!({"result": {"result": true}, "energy_used": receipt.gas_used, "constant_result": [bare(output)], "transaction": {"ret": [{}]}})
            }
            Outcome::Reverted { output } => json!({
                "result": {"result": true, "message": bare("REVERT opcode executed")},
                "constant_result": [bare(output)],
                "transaction": {"ret": [{"ret": "FAILED"}]},
            }),
            Outcome::Halted { .. } => json!({"result": {"code": "OTHER_ERROR", "message": bare("stopped")}}),
        }
    }

    /// Accepts a signed transaction. The signature must be its sender's.
    pub(crate) fn broadcast(&mut self, payload: &str) -> Value {
        let signed = SignedTronTransaction::from_bytes(&hex::decode(payload).unwrap()).unwrap();
        let (id, transaction) = (signed.tx_id(), signed.transaction());
        let reject = |code: &str| json!({"code": code, "message": bare("refused"), "txid": bare(id)});
        if self.infos.values().flatten().any(|info| info["id"] == bare(id)) {
            return reject("DUP_TRANSACTION_ERROR");
        }
        let trigger = &transaction.trigger;
        let sender = TronAddress::from_prefixed(trigger.owner_address.clone().try_into().unwrap()).unwrap();
        if signed.signer() != Some(sender) {
            return reject("SIGERROR");
        }
        // The reference block must belong to this chain.
        let number = (START..=self.now.block_number()).rev().find(|number| number.to_be_bytes()[6..] == transaction.raw.ref_block_bytes);
        if number.is_none_or(|number| id_of(number)[8..16] != transaction.raw.ref_block_hash) {
            return reject("TAPOS_ERROR");
        }
        let to = TronAddress::from_prefixed(trigger.contract_address.clone().try_into().unwrap()).unwrap();
        let value = U256::from(trigger.call_value);
        self.execute(id, sender.bytes(), to.bytes(), trigger.data.clone().into(), value);
        json!({"result": true, "code": "SUCCESS", "message": "", "txid": bare(id)})
    }

    pub(crate) fn answer(&mut self, path: &str, question: &Value) -> Value {
        match path {
            "/wallet/getnowblock" => self.block(self.now.block_number()),
            "/walletsolidity/getnowblock" => self.block(self.solid().block_number()),
            "/wallet/getblockbynum" | "/walletsolidity/getblockbynum" => self.block(question["num"].as_u64().unwrap()),
            "/wallet/triggerconstantcontract" => Self::run(&self.now, question),
            "/walletsolidity/triggerconstantcontract" => Self::run(self.solid(), question),
            "/wallet/gettransactioninfobyblocknum" => {
                json!(self.infos.get(&question["num"].as_u64().unwrap()).cloned().unwrap_or_default())
            }
            "/wallet/getaccount" => json!({"balance": self.now.native_balance_of(twenty(&question["address"])).saturating_to::<u64>()}),
            "/wallet/getaccountresource" => json!({"freeNetLimit": 600}),
            "/wallet/getchainparameters" => {
                json!({"chainParameter": [{"key": "getTransactionFee", "value": 1_000}, {"key": "getEnergyFee", "value": 100}]})
            }
            "/wallet/broadcasthex" => self.broadcast(question["transaction"].as_str().unwrap()),
            "/wallet/gettransactionbyid" => json!({}),
            "/wallet/gettransactioninfobyid" | "/walletsolidity/gettransactioninfobyid" => {
                let last = if path.starts_with("/walletsolidity") { self.solid().block_number() } else { u64::MAX };
                let all = self.infos.range(..=last).flat_map(|(_, infos)| infos);
                all.into_iter().find(|info| info["id"] == question["value"]).cloned().unwrap_or_else(|| json!({}))
            }
            other => panic!("{other}"),
        }
    }
}

impl Transport for Node {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let question: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        let answer = self.0.lock().unwrap().answer(request.url.path(), &question);
        Ok(Response::new(200, answer.to_string().into_bytes()))
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}
