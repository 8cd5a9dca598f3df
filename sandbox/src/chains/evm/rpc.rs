//! The JSON-RPC interface of a node.

use std::borrow::Cow;

use alloy_consensus::TxEnvelope;
use alloy_primitives::{Address, U256};
use countersign_proofs_evm::Past;
use serde_json::{Value, json};

use super::error;
use super::ledger::Block;
use super::params::{self, Filter, Name, Params};
use super::pool::BLOCK_GAS;
use super::shape::{self, quantity};
use super::{Evm, simulate};
use crate::chains::rpc::{self, Fault};
use crate::http::{Reply, Request, put};

/// The maximum number of calls in a batch, which is Geth's.
const MAX_BATCH: usize = 1_000;
/// The maximum number of logs in an answer, and of slots in a proof.
const MAX_LOGS: usize = 10_000;
const MAX_SLOTS: usize = 1_024;

/// Answers a single call or a batch.
pub(crate) fn answer(evm: &mut Evm, request: &Request) -> Reply {
    if request.method != "POST" {
        return Reply::text(405, "method not allowed");
    }
    let batch = |calls: usize| match calls {
        0 => Some(Fault::request("empty batch")),
        1..=MAX_BATCH => None,
        _ => Some(Fault::request("batch too large")),
    };
    let reply = rpc::answer(&request.body, "parse error", batch, |call| Some(answer_one(evm, call)));
    Reply::json(200, &reply.unwrap_or_default())
}

fn answer_one(evm: &mut Evm, call: &Value) -> Value {
    let params = call.get("params").filter(|params| !params.is_null());
    let outcome = match (call.get("method").and_then(Value::as_str), params) {
        (Some(method), None) => dispatch(evm, method, Params(&[])),
        (Some(method), Some(Value::Array(params))) => dispatch(evm, method, Params(params)),
        (Some(_), Some(_)) => Err(Fault::params("non-array args")),
        (None, _) => Err(Fault::request("invalid request")),
    };
    rpc::reply(call.get("id").unwrap_or(&Value::Null), outcome)
}

fn dispatch(evm: &mut Evm, method: &str, params: Params<'_>) -> Result<Value, Fault> {
    match method {
        "eth_sendRawTransaction" => {
            let raw = params.read(0, params::bytes)?;
            evm.pool.add(&evm.ledger.world, &raw).map(|id| json!(id))
        }
        _ => evm.read(method, params),
    }
}

impl Evm {
    fn read(&self, method: &str, params: Params<'_>) -> Result<Value, Fault> {
        let account = |index| params.read(index, params::address);
        match method {
            "eth_chainId" => Ok(quantity(self.contracts.network.id)),
            "eth_blockNumber" => Ok(quantity(self.ledger.head())),
            "eth_gasPrice" => Ok(quantity(self.contracts.tip().saturating_add(self.contracts.network.base_fee.into()))),
            "eth_maxPriorityFeePerGas" => Ok(quantity(self.contracts.tip())),
            "eth_feeHistory" => self.fee_history(params),
            "eth_getBlockByNumber" => self.block_of(params, params.read(0, params::name)?),
            "eth_getBlockByHash" => self.block_of(params, Name::Hash(params.read(0, params::hash)?)),
            "eth_getTransactionByHash" => {
                let id = params.read(0, params::hash)?;
                Ok(match (self.ledger.place(id), self.pool.get(id)) {
                    (Some((block, index)), _) => {
                        let mined = block.transactions.get(index);
                        mined.map_or(Value::Null, |mined| shape::transaction(&mined.transaction, mined.receipt.from, Some((block, index))))
                    }
                    (None, Some(waiting)) => shape::transaction(&waiting.envelope, waiting.from, None),
                    (None, None) => Value::Null,
                })
            }
            "eth_getTransactionReceipt" => {
                let place = self.ledger.place(params.read(0, params::hash)?);
                Ok(place.and_then(|(block, index)| shape::receipt(block, index)).unwrap_or_default())
            }
            "eth_getTransactionCount" => {
                let of = account(0)?;
                if params.get(1).and_then(Value::as_str) == Some("pending") {
                    return Ok(quantity(self.pool.next_nonce(&self.ledger.world, of)));
                }
                self.at(self.number(params.block(1)?)?, |state| quantity(state.account(of).unwrap_or_default().nonce))
            }
            "eth_getBalance" => {
                let of = account(0)?;
                self.at(self.number(params.block(1)?)?, |state| shape::number(state.account(of).unwrap_or_default().balance))
            }
            "eth_getCode" => {
                let of = account(0)?;
                self.at(self.number(params.block(1)?)?, |state| json!(state.code(of)))
            }
            "eth_call" => simulate::eth_call(self, params),
            "eth_estimateGas" => simulate::estimate_gas(self, params),
            "eth_simulateV1" => simulate::simulate(self, params),
            "eth_getLogs" => self.logs(&params.read(0, Filter::read)?),
            "eth_getProof" => self.proof(account(0)?, params),
            _ => Err(Fault::no_method(format!("the method {method} does not exist/is not available"))),
        }
    }

    /// Returns the number of the block that a call refers to.
    pub(crate) fn number(&self, name: Name) -> Result<u64, Fault> {
        let head = self.ledger.head();
        match name {
            Name::Latest => Ok(head),
            // Blocks before the deployment are not stored, so the tags are answered without reading a block.
            Name::Safe => Ok(head.saturating_sub(self.contracts.network.safe)),
            Name::Finalized => Ok(head.saturating_sub(self.contracts.network.finalized)),
            Name::Number(number) if number <= head => Ok(number),
            Name::Number(_) => Err(error::server("header not found")),
            Name::Hash(hash) => self.ledger.number_of(hash).ok_or_else(|| error::server("header for hash not found")),
        }
    }

    pub(crate) fn shown(&self, number: u64) -> Result<Cow<'_, Block<TxEnvelope>>, Fault> {
        self.ledger.block(number).ok_or_else(|| error::server("header not found"))
    }

    /// Runs a function on the state after a block.
    pub(crate) fn at<R>(&self, number: u64, look: impl FnOnce(Past<'_>) -> R) -> Result<R, Fault> {
        // The state before the deployment is unknown. The state right after it is used instead.
        match self.ledger.since(number.max(self.contracts.network.start)) {
            Some(changes) => Ok(look(self.ledger.world.before(&changes))),
            None => Err(error::server(format!("missing trie node: the state of block {number} is not available"))),
        }
    }

    fn block_of(&self, params: Params<'_>, name: Name) -> Result<Value, Fault> {
        let is_full = params.get(1).and_then(Value::as_bool).ok_or_else(|| error::missing(1))?;
        let Ok(number) = self.number(name) else { return Ok(Value::Null) };
        let block = self.shown(number)?;
        let header = self.ledger.format.header(&block);
        Ok(shape::block(&block, &header, self.contracts.network.l1_number(block.millis), is_full))
    }

    fn fee_history(&self, params: Params<'_>) -> Result<Value, Fault> {
        let count = params.read(0, params::small)?.clamp(1, 1_024);
        let newest = self.number(params.block(1)?)?;
        let percentiles = params.get(2).and_then(Value::as_array).map_or(0, Vec::len);
        if percentiles > 100 {
            return Err(error::server("over the query limit 100 of reward percentiles"));
        }
        let oldest = newest.saturating_sub(count.saturating_sub(1));
        let blocks = usize::try_from(count).unwrap_or_default();
        let used = |number: u64| self.ledger.block(number).map_or(0.0, |block| ratio(block.roots.gas_used));
        let mut history = json!({
            "oldestBlock": quantity(oldest),
            "baseFeePerGas": vec![quantity(self.contracts.network.base_fee); blocks.saturating_add(1)],
            "gasUsedRatio": (oldest..=newest).map(used).collect::<Vec<_>>(),
        });
        if percentiles > 0 {
            put(&mut history, "reward", json!(vec![vec![quantity(self.contracts.tip()); percentiles]; blocks]));
        }
        Ok(history)
    }

    fn logs(&self, filter: &Filter) -> Result<Value, Fault> {
        let (first, last) = match filter.block {
            Some(hash) => {
                let number = self.ledger.number_of(hash).ok_or_else(|| error::server("unknown block"))?;
                (number, number)
            }
            None => {
                // The range may extend beyond the newest block.
                let number = |name: Option<Name>| match name {
                    Some(Name::Number(number)) => Ok(number),
                    name => self.number(name.unwrap_or(Name::Latest)),
                };
                (number(filter.from)?, number(filter.to)?)
            }
        };
        if first > last {
            return Err(Fault::params("invalid block range params"));
        }
        let mut all = Vec::new();
        for block in self.ledger.busy(first, last) {
            let logs = (0..block.transactions.len()).flat_map(|index| shape::logs_of(block, index));
            all.extend(logs.filter(|(log, _)| filter.wants(log)).map(|(_, value)| value));
            if all.len() > MAX_LOGS {
                return Err(Fault::new(-32_005, format!("query returned more than {MAX_LOGS} results")));
            }
        }
        Ok(Value::Array(all))
    }

    fn proof(&self, account: Address, params: Params<'_>) -> Result<Value, Fault> {
        let slots = |value: &Value| -> Result<Vec<U256>, String> {
            let all = value.as_array().ok_or("json: cannot unmarshal non-array")?;
            if all.len() > MAX_SLOTS { Err("too many slots requested".to_owned()) } else { all.iter().map(params::slot).collect() }
        };
        let keys = params.get(1).and_then(Value::as_array).cloned().unwrap_or_default();
        let slots = params.read(1, slots)?;
        let number = self.number(params.block(2)?)?;
        let proof = self.at(number, |state| self.ledger.format.tries.prove(state, account, &slots))?;
        let Some(proof) = proof else {
            return Err(Fault::no_method("the method eth_getProof does not exist/is not available"));
        };
        let slot = |(key, (value, nodes)): (&Value, &(U256, Vec<_>))| json!({"key": key, "value": shape::number(*value), "proof": nodes});
        Ok(json!({
            "address": account,
            "accountProof": proof.nodes,
            "balance": shape::number(proof.account.balance),
            "codeHash": proof.account.code_hash,
            "nonce": quantity(proof.account.nonce),
            "storageHash": proof.account.storage_root,
            "storageProof": keys.iter().zip(&proof.slots).map(slot).collect::<Vec<_>>(),
        }))
    }
}

/// Returns the used fraction of a block's gas.
fn ratio(gas_used: u64) -> f64 {
    let used = u32::try_from(gas_used).map_or(f64::from(u32::MAX), f64::from);
    used / u32::try_from(BLOCK_GAS).map_or(1.0, f64::from)
}
