//! Tron's blocks. A block id consists of the number and the end of the header's hash.

use alloy_primitives::{Address, B256, Bloom, keccak256};
use countersign_proofs_evm::{Changes, Outcome, World};
use prost::Message;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::wire::{Operation, Signed, prefixed, show};
use crate::chains::evm::ledger::{Block, Format, Mined, Roots};
use crate::http::put;

/// The id of the main network's first block.
const GENESIS: &str = "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc";
/// The witness that produces all blocks.
const WITNESS: Address = Address::repeat_byte(0x7a);
const VERSION: u64 = 32;

/// A transaction with the cost of its execution.
#[derive(Debug, Clone)]
pub(crate) struct Executed {
    pub(crate) signed: Signed,
    /// The result: `SUCCESS`, `REVERT`, `OUT_OF_ENERGY` and so on.
    pub(crate) result: &'static str,
    pub(crate) energy: u64,
    /// The fees for energy and for bandwidth, in sun.
    pub(crate) energy_fee: u64,
    pub(crate) net_fee: u64,
}

/// The block format of Tron.
#[derive(Debug)]
pub(crate) struct Tron {
    /// The end of the first block's id.
    pub(crate) id: u32,
}

/// `protocol.BlockHeader.raw`.
#[derive(Clone, PartialEq, Message)]
struct HeaderMessage {
    #[prost(uint64, tag = "1")]
    timestamp: u64,
    #[prost(bytes = "vec", tag = "2")]
    tx_trie_root: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    parent_hash: Vec<u8>,
    #[prost(uint64, tag = "7")]
    number: u64,
    #[prost(bytes = "vec", tag = "9")]
    witness_address: Vec<u8>,
    #[prost(uint64, tag = "10")]
    version: u64,
}

fn header(block: &Block<Executed>) -> Vec<u8> {
    let header = HeaderMessage {
        timestamp: block.millis,
        tx_trie_root: block.roots.transactions.to_vec(),
        parent_hash: block.parent.to_vec(),
        number: block.number,
        // Blocks that replace each other at one height have different witnesses.
        witness_address: prefixed(witness(block.fork)),
        version: VERSION,
    };
    header.encode_to_vec()
}

fn witness(fork: u64) -> Address {
    if fork == 0 { WITNESS } else { Address::from_word(keccak256(fork.to_be_bytes())) }
}

fn numbered(number: u64, mut hash: B256) -> B256 {
    if let Some(first) = hash.first_chunk_mut::<8>() {
        *first = number.to_be_bytes();
    }
    hash
}

impl Format for Tron {
    type Transaction = Executed;
    const MIN_STEP: u64 = 1;

    fn roots(&mut self, _: &World, _: &Changes, transactions: &[Mined<Executed>]) -> Roots {
        let mut roots = self.empty(B256::ZERO);
        if !transactions.is_empty() {
            let ids: Vec<u8> = transactions.iter().flat_map(|mined| mined.id).collect();
            roots.transactions = B256::from_slice(&Sha256::digest(ids));
        }
        roots
    }

    fn empty(&self, state: B256) -> Roots {
        Roots { state, bloom: Bloom::ZERO, ..Roots::default() }
    }

    fn forget(&mut self, _: &Changes) {}

    fn hash(&self, block: &Block<Executed>) -> B256 {
        numbered(block.number, B256::from_slice(&Sha256::digest(header(block))))
    }

    fn hash_of(&self, number: u64, fork: u64) -> B256 {
        let mut hash = keccak256([u64::from(self.id), number, fork].map(u64::to_be_bytes).concat());
        if number == 0 {
            if let Some(end) = hash.last_chunk_mut::<4>() {
                *end = self.id.to_be_bytes();
            }
            if let Some(main) = GENESIS.parse::<B256>().ok().filter(|main| main.ends_with(&self.id.to_be_bytes())) {
                return main;
            }
        }
        numbered(number, hash)
    }

    fn number_in(&self, hash: B256) -> u64 {
        hash.first_chunk::<8>().map_or(0, |first| u64::from_be_bytes(*first))
    }
}

/// Returns a block in a node's format.
pub(crate) fn json(block: &Block<Executed>, with_transactions: bool, visible: bool) -> Value {
    let mut raw = json!({
        "number": block.number,
        "txTrieRoot": hex::encode(block.roots.transactions),
        "witness_address": show(witness(block.fork), visible),
        "parentHash": hex::encode(block.parent),
        "version": VERSION,
        "timestamp": block.millis,
    });
    if block.number == 0 {
        // Members that are zero are omitted.
        raw = json!({"txTrieRoot": hex::encode(B256::ZERO), "parentHash": hex::encode(B256::ZERO)});
    }
    let mut value = json!({"blockID": hex::encode(block.hash), "block_header": {"raw_data": raw}});
    if with_transactions && !block.transactions.is_empty() {
        put(&mut value, "transactions", block.transactions.iter().map(|mined| transaction(&mined.transaction, visible)).collect());
    }
    value
}

/// Returns a transaction of a block.
pub(crate) fn transaction(executed: &Executed, visible: bool) -> Value {
    let mut value = executed.signed.json(visible);
    put(&mut value, "ret", json!([{"contractRet": executed.result}]));
    value
}

/// Returns the outcome of a transaction.
pub(crate) fn info(block: &Block<Executed>, mined: &Mined<Executed>) -> Value {
    let Mined { transaction, receipt, .. } = mined;
    let is_call = matches!(transaction.signed.raw.operation, Operation::Trigger(_));
    let output = match &receipt.outcome {
        Outcome::Success { output } | Outcome::Reverted { output } => hex::encode(output),
        Outcome::Halted { .. } => String::new(),
    };
    let mut costs = json!({"net_fee": transaction.net_fee});
    if is_call {
        put(&mut costs, "energy_fee", json!(transaction.energy_fee));
        put(&mut costs, "energy_usage_total", json!(transaction.energy));
        put(&mut costs, "result", json!(transaction.result));
    }
    let mut value = json!({
        "id": hex::encode(mined.id),
        "fee": transaction.energy_fee.saturating_add(transaction.net_fee),
        "blockNumber": block.number,
        "blockTimeStamp": block.millis,
        "contractResult": [output],
        "receipt": costs,
    });
    if is_call {
        put(&mut value, "contract_address", json!(show(transaction.signed.raw.to, false)));
    }
    if !receipt.is_success() {
        put(&mut value, "result", json!("FAILED"));
        put(&mut value, "resMessage", json!(hex::encode("REVERT opcode executed")));
    }
    if !receipt.logs.is_empty() {
        put(&mut value, "log", receipt.logs.iter().map(log).collect());
    }
    value
}

/// Returns a log. The contract's address has no prefix.
pub(crate) fn log(log: &alloy_primitives::Log) -> Value {
    json!({
        "address": hex::encode(log.address),
        "topics": log.topics().iter().map(hex::encode).collect::<Vec<_>>(),
        "data": hex::encode(&log.data.data),
    })
}
