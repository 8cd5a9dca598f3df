//! A litecoind that validates transactions and makes blocks. The ledger is only an index of what the node has.
//!
//! The node runs a private regtest network. The chain starts with extension blocks (MWEB) already active, as on mainnet: each block ends
//! with a HogEx transaction.
//!
//! Unlike the sandbox's own engine, a node cannot create coins, make a long run of blocks at once, or make a block of chosen transactions.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bitcoin::block::Header;
use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::secp256k1::rand;
use bitcoin::{BlockHash, Transaction, Txid};
use serde_json::{Value, json};

use super::ledger::{Block, Ledger};
use super::mempool::Rejection;
use crate::chains::node::{CallError, Files, Node};
use crate::http::{Reply, Request};

/// Extension blocks are active from block 432, which has to contain the first payment into them.
const BEFORE_MWEB: u64 = 431;
/// How many of those blocks pay the faucet. Even the last of these is a hundred blocks deep before its coins are spent.
const PAY_FAUCET: u64 = 300;
/// Seconds between those blocks.
const INTERVAL: u64 = 150;
/// The most blocks made on one demand. They take about four seconds.
const MAX_BLOCKS: u64 = 1_000;
/// The most blocks made in one call of the node.
const MAX_CALL: u64 = 100;
/// What clients may call besides methods that begin with `get`. Other methods could write files or stop the node.
const METHODS: [&str; 4] = ["estimatesmartfee", "scantxoutset", "sendrawtransaction", "testmempoolaccept"];

/// A running node.
#[derive(Debug)]
pub(super) struct Litecoind(Node);

/// A block as the node reports it. A transaction is `None` if `bitcoin` cannot decode it.
struct NodeBlock {
    height: u32,
    header: Header,
    transactions: Vec<(Txid, Option<Transaction>)>,
}

impl From<CallError> for Rejection {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { code, message, .. } => Self { code, message },
            silent @ CallError::Silent(_) => Self { code: -32_603, message: silent.to_string() },
        }
    }
}

fn unexpected(what: &str) -> CallError {
    CallError::Silent(format!("unexpected result of {what}"))
}

impl Litecoind {
    /// Starts a node and makes the blocks before extension blocks are active, most of which pay `faucet`. The first payment into
    /// extension blocks is left in the mempool.
    pub(super) fn start(program: &Path, faucet: &str, now: u64) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", program.display());
        let password = hex::encode(rand::random::<[u8; 16]>());
        let files = Files::new("litecoind").map_err(|error| failed(&error))?;
        // Other users of the machine can see a program's arguments, but not this file.
        std::fs::write(files.path().join("litecoin.conf"), configuration(&password)).map_err(|error| failed(&error))?;
        let authorization = Some(format!("Basic {}", STANDARD.encode(format!("sandbox:{password}"))));
        let datadir = format!("-datadir={}", files.path().display());
        let arguments = |port| vec![datadir, format!("-rpcport={port}")];
        let node = Self(Node::start(program, authorization, files, "getblockcount", arguments)?);
        node.prepare(faucet, now).map_err(|error| failed(&error))?;
        Ok(node)
    }

    fn prepare(&self, faucet: &str, now: u64) -> Result<(), CallError> {
        self.set_time(now.saturating_sub(BEFORE_MWEB.saturating_mul(INTERVAL)))?;
        self.0.call("createwallet", &json!(["miner"]))?;
        let own: String = self.get("getnewaddress", json!(["", "bech32"]))?;
        let left = BEFORE_MWEB.saturating_sub(PAY_FAUCET);
        // The wallet funds the first payment into extension blocks with its first coins.
        for (blocks, address) in [(1, own.as_str()), (PAY_FAUCET.saturating_sub(1), faucet), (left, own.as_str())] {
            self.0.call("generatetoaddress", &json!([blocks, address]))?;
        }
        let inside: String = self.get("getnewaddress", json!(["", "mweb"]))?;
        self.0.call("sendtoaddress", &json!([inside, 1]))?;
        Ok(())
    }

    /// Calls a method and parses its text result.
    fn get<T: FromStr>(&self, method: &str, params: Value) -> Result<T, CallError> {
        let result = self.0.call(method, &params)?;
        result.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| unexpected(method))
    }

    fn set_time(&self, time: u64) -> Result<(), CallError> {
        self.0.call("setmocktime", &json!([time])).map(drop)
    }

    /// Makes blocks with a timestamp. A new address each time keeps a block from having the hash of an invalidated one.
    fn generate(&self, blocks: u64, time: u64) -> Result<(), CallError> {
        self.set_time(time)?;
        let address: String = self.get("getnewaddress", json!(["", "bech32"]))?;
        self.0.call("generatetoaddress", &json!([blocks, address])).map(drop)
    }

    /// Returns a serialized block, with its extension block.
    pub(super) fn raw(&self, hash: &BlockHash) -> Result<Vec<u8>, CallError> {
        let text: String = self.get("getblock", json!([hash.to_string(), 0]))?;
        hex::decode(text).map_err(|_| unexpected("getblock"))
    }

    fn block(&self, hash: &BlockHash) -> Result<NodeBlock, CallError> {
        let header: String = self.get("getblockheader", json!([hash.to_string(), false]))?;
        let block = self.0.call("getblock", &json!([hash.to_string(), 2]))?;
        let text = |transaction: &Value, name| transaction.get(name).and_then(Value::as_str).map(str::to_owned);
        let transaction = |transaction: &Value| {
            let txid: Txid = text(transaction, "txid")?.parse().ok()?;
            let decoded = text(transaction, "hex").and_then(|hex| decode(&hex));
            Some((txid, decoded.filter(|transaction| transaction.compute_txid() == txid)))
        };
        let read = || {
            let height = u32::try_from(block.get("height")?.as_u64()?).ok()?;
            let transactions = block.get("tx")?.as_array()?.iter().map(transaction).collect::<Option<_>>()?;
            Some(NodeBlock { height, header: deserialize_hex(&header).ok()?, transactions })
        };
        read().ok_or_else(|| unexpected("getblock"))
    }

    /// Returns the transaction ids in the mempool.
    fn waiting(&self) -> Result<BTreeSet<Txid>, CallError> {
        let list = self.0.call("getrawmempool", &json!([]))?;
        let txids = list.as_array().ok_or_else(|| unexpected("getrawmempool"))?;
        Ok(txids.iter().filter_map(|txid| txid.as_str()?.parse().ok()).collect())
    }
}

/// Returns the node's configuration. By default, litecoind has replacement off, and its wallet does not fall back to a fee rate.
fn configuration(password: &str) -> String {
    format!(
        "regtest=1\nserver=1\nlisten=0\ndnsseed=0\ntxindex=1\nacceptnonstdtxn=0\nmempoolreplacement=1\nfallbackfee=0.0001\n\
         rpcuser=sandbox\nrpcpassword={password}\n"
    )
}

/// Decodes a transaction. A HogEx transaction has marker 0 and flag 8 after the version, and a 0 in place of an extension transaction
/// before the locktime. Its id leaves these out, and so does the decoded transaction.
fn decode(hex: &str) -> Option<Transaction> {
    let hogex = || {
        let (version, rest) = hex.split_at_checked(8)?;
        let rest = rest.strip_prefix("0008")?;
        let (rest, locktime) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
        deserialize_hex(&format!("{version}{}{locktime}", rest.strip_suffix("00")?)).ok()
    };
    deserialize_hex(hex).ok().or_else(hogex)
}

impl Ledger {
    /// Makes the node generate blocks, at most [`MAX_BLOCKS`].
    pub(super) fn generate(&mut self, count: u64, now: u64) -> Result<(), CallError> {
        let Some(node) = self.node.clone() else { return Ok(()) };
        let mut left = count.min(MAX_BLOCKS);
        while left > 0 {
            let blocks = left.min(MAX_CALL);
            // The node refuses blocks far ahead of its clock, and timestamps have to rise in a long run.
            let last = self.blocks.last_key_value().map_or(0, |(_, block)| block.header.time);
            node.generate(blocks, now.max(last.into()))?;
            self.follow()?;
            left = left.saturating_sub(blocks);
        }
        Ok(())
    }

    /// Invalidates the blocks from a height on.
    pub(super) fn invalidate(&mut self, height: u32) -> Result<(), CallError> {
        let (Some(node), Some(block)) = (self.node.clone(), self.blocks.get(&height)) else { return Ok(()) };
        node.0.call("invalidateblock", &json!([block.hash.to_string()]))?;
        self.follow()
    }

    /// Submits a transaction to the node.
    pub(super) fn send(&mut self, hex: &str) -> Result<Txid, Rejection> {
        let Some(node) = self.node.clone() else { return Err(unexpected("sendrawtransaction").into()) };
        let txid = node.get("sendrawtransaction", json!([hex]))?;
        // The node has accepted it. If it has ended since, the next call reports it.
        let _ = self.follow();
        Ok(txid)
    }

    /// Passes a client's JSON-RPC call on to the node. `None` without a node.
    pub(super) fn pass(&mut self, request: &Request) -> Option<Reply> {
        let node = self.node.clone()?;
        let calls: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let calls = calls.as_array().map_or(std::slice::from_ref(&calls), Vec::as_slice);
        let method = |call: &Value| call.get("method").and_then(Value::as_str).map(str::to_owned);
        let is_open = |method: String| method.starts_with("get") || METHODS.contains(&method.as_str());
        if !calls.iter().all(|call| method(call).is_some_and(is_open)) {
            return Some(Reply::text(403, "the sandbox does not pass this method on"));
        }
        let reply = node.0.pass(request);
        let _ = self.follow();
        Some(reply)
    }

    /// Updates the index to the node's best chain and mempool.
    pub(super) fn follow(&mut self) -> Result<(), CallError> {
        let Some(node) = self.node.clone() else { return Ok(()) };
        let mut blocks = Vec::new();
        let mut hash: BlockHash = node.get("getbestblockhash", json!([]))?;
        let common = loop {
            if let Some(height) = self.heights.get(&hash) {
                break *height;
            }
            let block = node.block(&hash)?;
            hash = block.header.prev_blockhash;
            blocks.push(block);
        };
        if common < self.height() || !blocks.is_empty() {
            self.unmake(common);
        }
        for NodeBlock { height, header, transactions } in blocks.into_iter().rev() {
            let txids = transactions.iter().map(|(txid, _)| *txid).collect();
            for (position, (_, transaction)) in (0..).zip(transactions) {
                transaction.map(|transaction| self.add(transaction, (height, position)));
            }
            self.insert(Block { height, hash: header.block_hash(), header, txids });
        }
        self.follow_mempool(&node)
    }

    fn follow_mempool(&mut self, node: &Litecoind) -> Result<(), CallError> {
        let waiting = node.waiting()?;
        // Later ones may depend on earlier ones.
        let gone: Vec<Txid> = self.waiting.iter().rev().map(|(_, txid)| *txid).filter(|txid| !waiting.contains(txid)).collect();
        for txid in gone {
            self.remove(&txid);
        }
        let mut new = Vec::new();
        for txid in waiting.iter().filter(|txid| !self.entries.contains_key(*txid)) {
            let hex: String = node.get("getrawtransaction", json!([txid.to_string()]))?;
            // A payment into extension blocks has no usual form before it is in a block, so it is not shown until then.
            new.extend(deserialize_hex::<Transaction>(&hex));
        }
        while !new.is_empty() {
            let is_ready = |transaction: &Transaction| transaction.input.iter().all(|input| self.output(&input.previous_output).is_some());
            let (ready, left): (Vec<_>, Vec<_>) = new.into_iter().partition(is_ready);
            if ready.is_empty() {
                break;
            }
            for transaction in ready {
                self.push(transaction);
            }
            new = left;
        }
        Ok(())
    }
}
