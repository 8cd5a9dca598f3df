//! A Bitcoin-like chain in memory, with real headers, Merkle proofs and proof of work, as an Esplora server and a node's RPC show it.

use std::collections::BTreeSet;

use countersign_bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize, serialize_hex};
use countersign_bitcoin::bitcoin::hashes::{Hash, sha256};
use countersign_bitcoin::bitcoin::pow::CompactTarget;
use countersign_bitcoin::bitcoin::{
    Amount, BlockHash, MerkleBlock, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxMerkleNode, TxOut, Txid, Witness, absolute, block,
    constants::genesis_block, merkle_tree, transaction,
};
use countersign_bitcoin::htlc::{Htlc, Leaf, Tree};
use countersign_bitcoin::{Bitcoin, Chain};
use countersign_core::chains::Network;
use countersign_core::reader::{Answer, Request, RpcError};
use countersign_core::{Account, CreateOrder, Family, HtlcTerms, Policy, Proposal, SecretHash, U256, verify_record};
use serde_json::{Value, json};

mod deposit;
mod rpc;

pub use deposit::{Deposit, REGTEST, deposit};

use super::view::View;

/// A moment of a Bitcoin-like chain is a [`Ledger`], which a test fills by itself.
pub(crate) fn moment(view: &View<'_>, _: &[Request]) -> Vec<Answer> {
    panic!("{} has a ledger of its own", view.terms.chain)
}

pub const SECRET: [u8; 32] = *b"thirty-two bytes of good secret!";
pub const AMOUNT: u64 = 500_000;
pub const TIMELOCK: u16 = 20;
pub const NOW: u64 = 1_800_000_000;
const INTERNAL_KEY: &str = "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0";

/// The x coordinates of G and 2G. Any two keys would do, because nothing here checks a signature.
const INITIATOR: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const REDEEMER: &str = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";

pub fn array(text: &str) -> [u8; 32] {
    hex::decode(text).unwrap().try_into().unwrap()
}

pub fn tree() -> Tree {
    let secret_hash = sha256::Hash::hash(&SECRET).to_byte_array();
    let (internal_key, initiator, redeemer) = (array(INTERNAL_KEY), array(INITIATOR), array(REDEEMER));
    Tree::new(Htlc { internal_key, initiator, redeemer, secret_hash, timelock: TIMELOCK }).unwrap()
}

pub fn chain(coin: &str) -> Chain {
    Chain::from_network(&Network::parse(&format!("{coin}:regtest")).unwrap()).unwrap()
}

/// The terms of the HTLC of these tests, on the regtest network of a coin.
pub fn terms(coin: &str) -> HtlcTerms {
    let registry = crate::registry();
    let verified = crate::fixtures_of(Family::Bitcoin).unwrap().into_iter().find_map(|case| {
        let case = case.json();
        let record = case["order"].is_object().then(|| case["order"].to_string())?;
        let (request, response) = (CreateOrder::from_json(case["request"].to_string().as_bytes()).ok()?, case["response"].to_string());
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        proposal.open(registry, &Policy::default(), verify_record::<Bitcoin>).ok()
    });
    let (tree, mut terms) = (tree(), verified.expect("a fixture with a record").terms.source);
    let key = |key| Account::from_array(Family::Bitcoin, key);
    (terms.chain, terms.network) = (format!("{coin}_regtest"), Network::parse(&format!("{coin}:regtest")).unwrap());
    (terms.htlc, terms.token) = (Some(key(tree.htlc.internal_key)), None);
    (terms.initiator, terms.redeemer) = (key(tree.htlc.initiator), key(tree.htlc.redeemer));
    (terms.amount, terms.timelock, terms.secret_hash) = (U256::from(AMOUNT), u64::from(TIMELOCK), SecretHash(tree.htlc.secret_hash));
    (terms.swap_id, terms.swap_id_recomputed) = (tree.address(chain(coin)), true);
    terms
}

/// A transaction that spends an unknown output, or the given one, and pays these outputs.
pub fn pay(from: OutPoint, witness: &[Vec<u8>], outputs: &[(u64, ScriptBuf)]) -> Transaction {
    let outputs = outputs.iter().map(|(value, script)| TxOut { value: Amount::from_sat(*value), script_pubkey: script.clone() });
    Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![TxIn {
            previous_output: from,
            script_sig: ScriptBuf::new(),
            sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
            witness: Witness::from_slice(witness),
        }],
        output: outputs.collect(),
    }
}

pub fn outpoint(byte: u8) -> OutPoint {
    OutPoint { txid: Txid::from_byte_array([byte; 32]), vout: 0 }
}

pub fn funding(byte: u8, value: u64) -> Transaction {
    pay(outpoint(byte), &[vec![1; 64]], &[(7_000, ScriptBuf::new_op_return([7])), (value, tree().script_pubkey())])
}

/// Spends output 1 of a funding by a leaf.
pub fn spend(funding: &Transaction, leaf: Leaf, secret: &[u8]) -> Transaction {
    let tree = tree();
    let mut items = vec![vec![1; 64]];
    match leaf {
        Leaf::Redeem => items.push(secret.to_vec()),
        Leaf::InstantRefund => items.push(vec![2; 64]),
        _ => {}
    }
    items.extend([tree.script(leaf).into_bytes(), tree.control_block(leaf)]);
    // A transaction's id does not cover the witness. With the same output, a refund would have the id of the redemption.
    let to = ScriptBuf::new_op_return([u8::try_from(items.len()).unwrap()]);
    pay(OutPoint { txid: funding.compute_txid(), vout: 1 }, &items, &[(1_000, to)])
}

/// The hash of block 0 of Litecoin's regtest network.
const LITECOIN: &str = "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9";

/// The mined transactions on a page of a history.
const PAGE: usize = 25;

/// Blocks with real headers and real proof of work at a low difficulty.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub blocks: Vec<(block::Header, Vec<Transaction>)>,
    pub mempool: Vec<Transaction>,
    /// Whether block 0 is shown as Litecoin's.
    pub is_litecoin: bool,
    /// Whether the node finds mined transactions without their block.
    pub has_transaction_index: bool,
    /// Whether the node names the transaction in the mempool that spends an output.
    pub has_spending_method: bool,
    /// The node has thrown away the blocks below this height.
    pub pruned_below: usize,
    /// The maximum number of unspent outputs that the server lists.
    pub max_unspent: usize,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    pub fn new() -> Self {
        let genesis = genesis_block(countersign_bitcoin::bitcoin::Network::Regtest);
        let blocks = vec![(genesis.header, genesis.txdata)];
        let (is_litecoin, has_transaction_index, has_spending_method) = (false, false, true);
        let mut ledger = Self {
            blocks,
            mempool: Vec::new(),
            is_litecoin,
            has_transaction_index,
            has_spending_method,
            pruned_below: 0,
            max_unspent: 500,
        };
        ledger.mine(5);
        ledger
    }

    /// A chain with a funding of this depth.
    pub fn funded(depth: usize) -> (Self, Transaction) {
        let (mut ledger, transaction) = (Self::new(), funding(1, AMOUNT));
        ledger.mempool.push(transaction.clone());
        ledger.mine(depth);
        (ledger, transaction)
    }

    /// Mines the mempool, then empty blocks. The last block is less than a minute old.
    pub fn mine(&mut self, count: usize) {
        for _ in 0..count {
            let height = self.blocks.len();
            let mark = height.to_le_bytes().to_vec();
            let mut all = vec![pay(OutPoint::null(), std::slice::from_ref(&mark), &[(50, ScriptBuf::new_op_return([9]))])];
            all[0].input[0].script_sig = ScriptBuf::from_bytes(mark);
            all.append(&mut self.mempool);
            let root = merkle_tree::calculate_root(all.iter().map(|tx| tx.compute_txid().to_raw_hash())).unwrap();
            let mut header = block::Header {
                version: block::Version::TWO,
                prev_blockhash: self.blocks[height - 1].0.block_hash(),
                merkle_root: TxMerkleNode::from_raw_hash(root),
                time: u32::try_from(NOW).unwrap() - 60,
                bits: CompactTarget::from_consensus(0x207f_ffff),
                nonce: 0,
            };
            while !header.target().is_met_by(header.block_hash()) {
                header.nonce += 1;
            }
            self.blocks.push((header, all));
        }
    }

    pub fn hash(&self, height: usize) -> BlockHash {
        self.blocks[height].0.block_hash()
    }

    fn all(&self) -> impl Iterator<Item = (Option<usize>, &Transaction)> {
        let mined = self.blocks.iter().enumerate().flat_map(|(height, (_, all))| all.iter().map(move |tx| (Some(height), tx)));
        mined.chain(self.mempool.iter().map(|tx| (None, tx)))
    }

    fn find(&self, id: &str) -> Option<(Option<usize>, &Transaction)> {
        self.all().find(|(_, tx)| tx.compute_txid().to_string() == id)
    }

    fn status(&self, height: Option<usize>) -> Value {
        match height {
            Some(height) => {
                json!({"confirmed": true, "block_height": height, "block_hash": self.hash(height).to_string(), "block_time": NOW})
            }
            None => json!({"confirmed": false}),
        }
    }

    fn outspend(&self, from: OutPoint) -> Value {
        let spender = self.all().find(|(_, tx)| tx.input.iter().any(|input| input.previous_output == from));
        match spender {
            Some((height, tx)) => json!({"spent": true, "txid": tx.compute_txid().to_string(), "vin": 0, "status": self.status(height)}),
            None => json!({"spent": false}),
        }
    }

    /// Takes a transaction into the mempool, from which those leave that spend the same outputs.
    pub fn send(&mut self, hex: &str) {
        let transaction: Transaction = deserialize_hex(hex).unwrap();
        self.mempool.retain(|other| !is_rival(other, &transaction));
        self.mempool.push(transaction);
    }

    /// Sends a transaction as its owner does through a node. Returns why it is not accepted.
    pub fn offer(&mut self, transaction: &Transaction) -> Result<(), &'static str> {
        self.test(transaction).map_or(Ok(()), Err).inspect(|()| self.send(&serialize_hex(transaction)))
    }

    /// The fee of a transaction, as far as the chain has what it spends.
    fn fee(&self, transaction: &Transaction) -> u64 {
        let value = |input: &TxIn| {
            let OutPoint { txid, vout } = input.previous_output;
            let (_, parent) = self.all().find(|(_, tx)| tx.compute_txid() == txid)?;
            Some(parent.output[usize::try_from(vout).unwrap()].value.to_sat())
        };
        let held: u64 = transaction.input.iter().filter_map(value).sum();
        held.saturating_sub(transaction.output.iter().map(|output| output.value.to_sat()).sum())
    }

    /// Returns why a transaction is not accepted: BIP-68, and the rules of the mempool for a replacement (BIP-125).
    fn test(&self, transaction: &Transaction) -> Option<&'static str> {
        if self.mempool.contains(transaction) {
            return Some("txn-already-in-mempool");
        }
        let status = |input: &TxIn| self.outspend(input.previous_output)["status"]["confirmed"].as_bool();
        if transaction.input.iter().any(|input| status(input) == Some(true)) {
            return Some("bad-txns-inputs-missingorspent");
        }
        let depth = |input: &TxIn| {
            let height = self.find(&input.previous_output.txid.to_string()).and_then(|(height, _)| height);
            height.map_or(0, |height| self.blocks.len() - height)
        };
        let lock = |input: &TxIn| input.sequence.to_relative_lock_time().map_or(0, |lock| lock.to_consensus_u32());
        let is_early = |input: &TxIn| lock(input) > u32::try_from(depth(input)).unwrap();
        if transaction.input.iter().any(is_early) {
            return Some("non-BIP68-final");
        }
        let size = |tx: &Transaction| tx.weight().to_vbytes_ceil();
        let (fee, rivals) = (self.fee(transaction), self.mempool.iter().filter(|other| is_rival(other, transaction)));
        let (mut needed, mut is_cheap) = (0, false);
        for rival in rivals {
            needed += self.fee(rival);
            is_cheap |= self.fee(rival) * size(transaction) >= fee * size(rival);
        }
        (needed > 0 && (is_cheap || fee < needed + size(transaction))).then_some("insufficient fee, rejecting replacement")
    }

    /// Returns the answer of an Esplora server, or of a node's own RPC. What is sent does not change the chain: see [`Ledger::send`].
    pub fn answer(&self, request: &Request) -> Answer {
        match request {
            Request::JsonRpc { method, params } => {
                let params: Value = serde_json::from_str(params).expect("parameters are JSON");
                match self.call(method, &params) {
                    Ok(result) => Answer::result(result.to_string().into_bytes()),
                    Err((code, message)) => Answer::Error(RpcError::new(code, message, None)),
                }
            }
            Request::Get { path, .. } => {
                let (status, body) = self.get(path);
                Answer::http(status, body)
            }
            Request::Post { path, body, .. } => {
                assert_eq!(&**path, "/tx");
                let transaction: Transaction = deserialize_hex(std::str::from_utf8(body).unwrap()).unwrap();
                match self.test(&transaction) {
                    Some(why) => {
                        Answer::http(400, format!(r#"sendrawtransaction RPC error: {{"code":-25,"message":"{why}"}}"#).into_bytes())
                    }
                    None => Answer::http(200, transaction.compute_txid().to_string().into_bytes()),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns what an Esplora server responds to a GET.
    pub fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let ok = |value: Value| (200, value.to_string().into_bytes());
        let text = |text: String| (200, text.into_bytes());
        match parts.as_slice() {
            ["block-height", "0"] if self.is_litecoin => text(LITECOIN.to_owned()),
            ["block-height", height] => match self.blocks.get(height.parse::<usize>().unwrap()) {
                Some((header, _)) => text(header.block_hash().to_string()),
                None => (404, b"Block not found".to_vec()),
            },
            ["blocks"] => {
                let (header, all) = self.blocks.last().unwrap();
                ok(json!([{
                    "id": header.block_hash().to_string(), "height": self.blocks.len() - 1, "version": header.version.to_consensus(),
                    "timestamp": header.time, "tx_count": all.len(), "size": 1, "weight": 4, "merkle_root": header.merkle_root.to_string(),
                    "previousblockhash": header.prev_blockhash.to_string(), "mediantime": header.time, "nonce": header.nonce,
                    "bits": header.bits.to_consensus(), "difficulty": 4.656_542_373_906_925e-10,
                }]))
            }
            ["scripthash", hash, "utxo"] => {
                let list = self.unspent(hash);
                if list.len() > self.max_unspent {
                    return (400, b"Too many unspent transaction outputs (>500). Contact support to raise limits.".to_vec());
                }
                ok(json!(list))
            }
            ["scripthash", hash, "txs"] => ok(self.history(hash, None)),
            ["scripthash", hash, "txs", "chain", after] => ok(self.history(hash, Some(after))),
            ["fee-estimates"] => ok(json!({"1": 12.345, "2": 9.5, "3": 7.25, "6": 3.1, "144": 0.5, "1008": 0.25})),
            ["tx", id, rest @ ..] => {
                let Some((height, tx)) = self.find(id) else { return (404, b"Transaction not found".to_vec()) };
                match rest {
                    [] => ok(json!({"txid": id, "status": self.status(height)})),
                    ["raw"] => (200, serialize(tx)),
                    ["outspend", vout] => ok(self.outspend(OutPoint { txid: tx.compute_txid(), vout: vout.parse().unwrap() })),
                    ["merkleblock-proof"] => height.map_or((404, Vec::new()), |height| text(self.proof(height, id))),
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns the unspent outputs of a script, without those that the mempool spends.
    fn unspent(&self, hash: &str) -> Vec<Value> {
        let mut list = Vec::new();
        for (height, tx) in self.all() {
            let txid = tx.compute_txid();
            for (vout, output) in (0..).zip(&tx.output).filter(|(_, output)| is_to(output, hash)) {
                if self.outspend(OutPoint { txid, vout })["spent"] == false {
                    list.push(
                        json!({"txid": txid.to_string(), "vout": vout, "status": self.status(height), "value": output.value.to_sat()}),
                    );
                }
            }
        }
        list
    }

    /// Returns a page of the transactions that pay or spend a script, the newest first: those in the mempool and 25 mined ones, or 25 after
    /// one.
    fn history(&self, hash: &str, after: Option<&str>) -> Value {
        let pays: BTreeSet<Txid> =
            self.all().filter(|(_, tx)| tx.output.iter().any(|output| is_to(output, hash))).map(|(_, tx)| tx.compute_txid()).collect();
        let is_paid = |OutPoint { txid, vout }: OutPoint| {
            let (_, tx) = self.all().find(|(_, tx)| tx.compute_txid() == txid).unwrap();
            is_to(&tx.output[usize::try_from(vout).unwrap()], hash)
        };
        let spends =
            |tx: &Transaction| tx.input.iter().map(|input| input.previous_output).any(|from| pays.contains(&from.txid) && is_paid(from));
        let own = |tx: &Transaction| pays.contains(&tx.compute_txid()) || spends(tx);
        let entry = |height: Option<usize>, tx: &Transaction| {
            let outputs = tx
                .output
                .iter()
                .map(|output| json!({"scriptpubkey": hex::encode(output.script_pubkey.as_bytes()), "value": output.value.to_sat()}));
            json!({"txid": tx.compute_txid().to_string(), "vout": outputs.collect::<Vec<_>>(), "status": self.status(height)})
        };
        let mut mined: Vec<_> = self.all().filter(|(height, tx)| height.is_some() && own(tx)).collect();
        mined.reverse();
        let first = after.map_or(0, |after| {
            mined.iter().position(|(_, tx)| tx.compute_txid().to_string() == after).map_or(mined.len(), |place| place + 1)
        });
        let waiting = self.mempool.iter().filter(|tx| after.is_none() && own(tx)).map(|tx| entry(None, tx));
        json!(waiting.chain(mined.iter().skip(first).take(PAGE).map(|(height, tx)| entry(*height, tx))).collect::<Vec<_>>())
    }

    fn proof(&self, height: usize, id: &str) -> String {
        let (header, all) = &self.blocks[height];
        let txids: Vec<Txid> = all.iter().map(Transaction::compute_txid).collect();
        serialize_hex(&MerkleBlock::from_header_txids_with_predicate(header, &txids, |txid| txid.to_string() == id))
    }
}

/// Returns whether two transactions spend the same output.
fn is_rival(one: &Transaction, other: &Transaction) -> bool {
    let spends = |from: OutPoint| other.input.iter().any(|input| input.previous_output == from);
    one.compute_txid() != other.compute_txid() && one.input.iter().any(|input| spends(input.previous_output))
}

/// Returns whether an output pays the script with this hash. Not by the library's own function: a server hashes the script itself.
fn is_to(output: &TxOut, hash: &str) -> bool {
    sha256::Hash::hash(output.script_pubkey.as_bytes()).to_string() == hash
}
