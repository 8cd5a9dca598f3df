//! Blocks, the mempool, and the indexes over both that an Esplora server has.
//!
//! Without a node, the headers, Merkle roots and witness commitments are still valid. Headers have the work of a
//! regtest network, which is two hashes per block. Blocks do not claim their reward, which consensus allows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bitcoin::block::{Header, Version};
use bitcoin::consensus::serialize;
use bitcoin::hashes::{Hash, sha256, sha256d};
use bitcoin::merkle_tree::calculate_root;
use bitcoin::pow::CompactTarget;
use bitcoin::script::PushBytesBuf;
use bitcoin::{
    Amount, Block as WholeBlock, BlockHash, OutPoint, Script, ScriptBuf, Sequence, Transaction, TxIn, TxMerkleNode, TxOut, Txid, Witness,
    WitnessMerkleNode, Wtxid, absolute, transaction,
};

use super::litecoind::Litecoind;
use super::network::Network;

/// The height in the [`Place`] of a pending transaction.
const WAITING: u32 = u32::MAX;
/// The maximum weight of a block's transactions.
const MAX_BLOCK_WEIGHT: u64 = 3_990_000;
/// How many blocks at the end of a long run of empty ones are stored. The others have no headers, as on a pruned
/// node.
const MADE: u64 = 144;
/// The length from which a run of empty blocks is long.
const LONG: u64 = 1_000;
/// How many blocks can be rolled back.
const MAX_REORGANIZATION: u32 = 100;
/// The number of transactions or blocks from which old ones are dropped.
const KEEP: usize = 20_000;
/// How deep a block must be before any of it is dropped.
const KEEP_BLOCKS: u32 = 288;

/// The SHA-256 hash of a script, which is the key of Esplora's index.
pub(super) type ScriptHash = [u8; 32];

pub(super) fn script_hash(script: &Script) -> ScriptHash {
    sha256::Hash::hash(script.as_bytes()).to_byte_array()
}

/// The height and the position in the block. For a pending transaction, [`WAITING`] and its order of arrival.
type Place = (u32, u32);

/// A block.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) height: u32,
    pub(super) hash: BlockHash,
    pub(super) header: Header,
    pub(super) txids: Vec<Txid>,
}

/// A transaction in a block or in the mempool.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) transaction: Arc<Transaction>,
    /// The outputs that its inputs spend. Empty for a coinbase transaction.
    pub(super) prevouts: Vec<TxOut>,
    /// The size in virtual bytes.
    pub(super) vsize: u64,
    place: Place,
}

impl Entry {
    /// Returns the height of the transaction's block.
    pub(super) fn height(&self) -> Option<u32> {
        Some(self.place.0).filter(|height| *height != WAITING)
    }

    pub(super) fn fee(&self) -> u64 {
        if self.prevouts.is_empty() { 0 } else { sum(&self.prevouts).saturating_sub(sum(&self.transaction.output)) }
    }

    fn scripts(&self) -> BTreeSet<ScriptHash> {
        self.prevouts.iter().chain(&self.transaction.output).map(|output| script_hash(&output.script_pubkey)).collect()
    }
}

pub(super) fn sum(outputs: &[TxOut]) -> u64 {
    outputs.iter().map(|output| output.value.to_sat()).fold(0, u64::saturating_add)
}

/// The chain and its mempool.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) network: Network,
    pub(super) blocks: BTreeMap<u32, Block>,
    pub(super) heights: HashMap<BlockHash, u32>,
    pub(super) entries: HashMap<Txid, Entry>,
    /// The inputs that spend outputs, including those in the mempool.
    pub(super) spends: HashMap<OutPoint, (Txid, u32)>,
    /// The outputs that nothing spends, including those in the mempool.
    unspent: BTreeSet<(ScriptHash, OutPoint)>,
    history: BTreeSet<(ScriptHash, Place, Txid)>,
    pub(super) waiting: BTreeSet<(u32, Txid)>,
    /// How many transactions have entered the mempool, and how many blocks were made.
    turns: u32,
    made: u64,
    /// Below this height, everything that can be dropped has been.
    dropped: u32,
    /// The first height whose effects on swaps have not been read yet.
    pub(super) unread: u32,
    /// The height of the block that funds the accounts. It is never rolled back.
    pub(super) first: u32,
    /// The node that validates transactions and makes blocks. Without one, the sandbox's own rules apply.
    pub(super) node: Option<Arc<Litecoind>>,
}

impl Ledger {
    /// Returns a ledger with the genesis block and a block that creates the first coins.
    pub(super) fn new(network: Network, coins: Vec<TxOut>, now: u64) -> Self {
        let mut ledger = Self::genesis(network, None);
        ledger.append(ledger.network.start(), Vec::new(), coins, now);
        ledger.begin();
        ledger
    }

    /// Marks the newest block as the one before users' first.
    pub(super) fn begin(&mut self) {
        self.first = self.height();
        self.unread = self.next();
    }

    /// Returns a ledger with only the genesis block.
    pub(super) fn genesis(network: Network, node: Option<Litecoind>) -> Self {
        let header = network.genesis();
        // The id of the block's only transaction is its Merkle root. As on any node, the transaction is not in the
        // index.
        let txids = vec![Txid::from_raw_hash(header.merkle_root.to_raw_hash())];
        let genesis = Block { height: 0, hash: header.block_hash(), header, txids };
        Self {
            heights: HashMap::from([(genesis.hash, 0)]),
            blocks: BTreeMap::from([(0, genesis)]),
            network,
            entries: HashMap::new(),
            spends: HashMap::new(),
            unspent: BTreeSet::new(),
            history: BTreeSet::new(),
            waiting: BTreeSet::new(),
            turns: 0,
            made: 0,
            dropped: 1,
            unread: 1,
            first: 0,
            node: node.map(Arc::new),
        }
    }

    pub(super) fn height(&self) -> u32 {
        self.blocks.last_key_value().map_or(0, |(height, _)| *height)
    }

    /// Returns the height of the next block.
    pub(super) fn next(&self) -> u32 {
        self.height().saturating_add(1)
    }

    pub(super) fn by_hash(&self, hash: &BlockHash) -> Option<&Block> {
        self.blocks.get(self.heights.get(hash)?)
    }

    /// Returns the median time of the eleven blocks up to a height (BIP-113).
    pub(super) fn median_time(&self, height: u32) -> u32 {
        let mut times: Vec<u32> = self.blocks.range(..=height).rev().take(11).map(|(_, block)| block.header.time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    /// Returns an output that a block or the mempool created, whether or not it is spent.
    pub(super) fn output(&self, outpoint: &OutPoint) -> Option<&TxOut> {
        let index = usize::try_from(outpoint.vout).ok()?;
        self.entries.get(&outpoint.txid)?.transaction.output.get(index).filter(|output| !output.script_pubkey.is_op_return())
    }

    /// Returns the transactions that pay or spend a script: pending ones first, then the newest.
    pub(super) fn history(&self, script: ScriptHash) -> impl Iterator<Item = (&Txid, &Entry)> {
        let range = (script, (0, 0), Txid::all_zeros())..=(script, (WAITING, u32::MAX), Txid::from_byte_array([0xff; 32]));
        self.history.range(range).rev().filter_map(|(_, _, txid)| Some((txid, self.entries.get(txid)?)))
    }

    /// Returns the outputs to a script that neither a block nor the mempool spends, with their transactions.
    pub(super) fn unspent(&self, script: ScriptHash) -> impl Iterator<Item = (OutPoint, &TxOut, &Entry)> {
        let first = OutPoint { txid: Txid::all_zeros(), vout: 0 };
        let last = OutPoint { txid: Txid::from_byte_array([0xff; 32]), vout: u32::MAX };
        let range = self.unspent.range((script, first)..=(script, last));
        range.filter_map(|(_, outpoint)| Some((*outpoint, self.output(outpoint)?, self.entries.get(&outpoint.txid)?)))
    }

    /// Returns the confirmed balance of a script, in base units.
    pub(super) fn balance(&self, script: &Script) -> u64 {
        let mined = self.unspent(script_hash(script)).filter(|(_, _, entry)| entry.height().is_some());
        let held = mined.map(|(_, output, _)| output.value.to_sat()).fold(0, u64::saturating_add);
        let waiting = self.waiting.iter().filter_map(|(_, txid)| self.entries.get(txid));
        let inputs = waiting.flat_map(|entry| entry.transaction.input.iter().zip(&entry.prevouts));
        let is_mined = |txid: &Txid| self.entries.get(txid).is_none_or(|entry| entry.height().is_some());
        let spent = inputs.filter(|(input, output)| *output.script_pubkey == *script && is_mined(&input.previous_output.txid));
        spent.map(|(_, output)| output.value.to_sat()).fold(held, u64::saturating_add)
    }

    /// Adds a transaction to the mempool. The caller has checked it, and that nothing else spends its inputs.
    pub(super) fn push(&mut self, transaction: Transaction) -> Txid {
        self.turns = self.turns.saturating_add(1).min(WAITING.saturating_sub(1));
        let turn = self.turns;
        let txid = self.add(transaction, (WAITING, turn));
        self.waiting.insert((turn, txid));
        txid
    }

    pub(super) fn add(&mut self, transaction: Transaction, place: Place) -> Txid {
        let txid = transaction.compute_txid();
        let mut prevouts = Vec::new();
        for (vin, input) in (0..).zip(&transaction.input) {
            if let Some(output) = self.output(&input.previous_output).cloned() {
                self.unspent.remove(&(script_hash(&output.script_pubkey), input.previous_output));
                self.spends.insert(input.previous_output, (txid, vin));
                prevouts.push(output);
            }
        }
        for (vout, output) in (0..).zip(&transaction.output).filter(|(_, output)| !output.script_pubkey.is_op_return()) {
            self.unspent.insert((script_hash(&output.script_pubkey), OutPoint { txid, vout }));
        }
        let vsize = transaction.weight().to_vbytes_ceil();
        let entry = Entry { transaction: Arc::new(transaction), prevouts, vsize, place };
        self.history.extend(entry.scripts().into_iter().map(|script| (script, place, txid)));
        self.entries.insert(txid, entry);
        txid
    }

    /// Removes a transaction as if it had never existed. Whatever spends its outputs must have been removed before.
    pub(super) fn remove(&mut self, txid: &Txid) -> Option<Arc<Transaction>> {
        let entry = self.forget(txid)?;
        for (input, output) in entry.transaction.input.iter().zip(&entry.prevouts) {
            self.spends.remove(&input.previous_output);
            self.unspent.insert((script_hash(&output.script_pubkey), input.previous_output));
        }
        for (vout, output) in (0..).zip(&entry.transaction.output) {
            self.unspent.remove(&(script_hash(&output.script_pubkey), OutPoint { txid: *txid, vout }));
        }
        Some(entry.transaction)
    }

    /// Drops a transaction but keeps its effects.
    fn forget(&mut self, txid: &Txid) -> Option<Entry> {
        let entry = self.entries.remove(txid)?;
        for script in entry.scripts() {
            self.history.remove(&(script, entry.place, *txid));
        }
        self.waiting.remove(&(entry.place.1, *txid));
        Some(entry)
    }

    /// Makes blocks. The first contains the pending transactions. Blocks are an interval apart, and the last one has
    /// the current time.
    pub(super) fn mine(&mut self, count: u64, now: u64) {
        if self.node.is_some() {
            // The caller can see from the height how many were made.
            let _ = self.generate(count, now);
            return;
        }
        if count == 0 {
            return;
        }
        let mut room = MAX_BLOCK_WEIGHT;
        let mut txids = Vec::new();
        for (_, txid) in &self.waiting {
            let weight = self.entries.get(txid).map_or(0, |entry| entry.transaction.weight().to_wu());
            // Later transactions may spend the outputs of this one.
            let Some(left) = room.checked_sub(weight) else { break };
            room = left;
            txids.push(*txid);
        }
        let interval = self.network.interval();
        let ago = |blocks: u64| now.saturating_sub(blocks.saturating_mul(interval));
        let mut rest = count.saturating_sub(1);
        self.append(self.next(), txids, Vec::new(), ago(rest));
        if count > LONG {
            let skipped = u32::try_from(rest.saturating_sub(MADE)).unwrap_or(WAITING);
            let height = self.next().saturating_add(skipped).min(i32::MAX.unsigned_abs());
            rest = MADE.saturating_sub(1);
            self.append(height, Vec::new(), Vec::new(), ago(rest));
        }
        for left in (0..rest).rev() {
            self.append(self.next(), Vec::new(), Vec::new(), ago(left));
        }
    }

    /// Makes a block of a single transaction in the mempool. A node with extension blocks includes the others too.
    pub(super) fn mine_only(&mut self, txid: Txid, now: u64) -> Result<(), String> {
        if self.node.is_some() {
            return self.generate(1, now).map_err(|error| error.to_string());
        }
        self.append(self.next(), vec![txid], Vec::new(), now);
        Ok(())
    }

    /// Makes a block. If the preceding block does not exist, the blocks between count as an unknown run.
    fn append(&mut self, height: u32, waiting: Vec<Txid>, coins: Vec<TxOut>, time: u64) {
        self.made = self.made.saturating_add(1);
        let tip = self.blocks.last_key_value().map(|(tip, block)| (*tip, block.hash, block.header.time));
        let (tip, before, last) = tip.unwrap_or((0, BlockHash::all_zeros(), 0));
        let unknown = || BlockHash::from_raw_hash(sha256d::Hash::hash(&[before.as_byte_array(), &height.to_le_bytes()[..]].concat()));
        let prev_blockhash = if tip.saturating_add(1) == height { before } else { unknown() };
        for (position, txid) in (1..).zip(&waiting) {
            self.confirm(txid, (height, position));
        }
        let transactions = waiting.iter().filter_map(|txid| self.entries.get(txid));
        let ids = transactions.map(|entry| entry.transaction.compute_wtxid().to_raw_hash());
        let root = calculate_root(std::iter::once(Wtxid::all_zeros().to_raw_hash()).chain(ids));
        let coinbase = self.coinbase(height, coins, root.map(WitnessMerkleNode::from_raw_hash));
        let txids: Vec<Txid> = std::iter::once(self.add(coinbase, (height, 0))).chain(waiting).collect();
        let root = calculate_root(txids.iter().map(|txid| txid.to_raw_hash()));
        let earliest = last.max(self.median_time(tip).saturating_add(1));
        let mut header = Header {
            version: Version::from_consensus(0x2000_0000),
            prev_blockhash,
            merkle_root: root.map_or(TxMerkleNode::all_zeros(), TxMerkleNode::from_raw_hash),
            time: u32::try_from(time).unwrap_or(u32::MAX).max(earliest),
            bits: CompactTarget::from_consensus(0x207f_ffff),
            nonce: 0,
        };
        let mut hash = header.block_hash();
        while !header.target().is_met_by(hash) {
            header.nonce = header.nonce.wrapping_add(1);
            hash = header.block_hash();
        }
        self.insert(Block { height, hash, header, txids });
    }

    /// Adds a block whose transactions are already in the index.
    pub(super) fn insert(&mut self, block: Block) {
        self.heights.insert(block.hash, block.height);
        self.blocks.insert(block.height, block);
        self.drop_old();
    }

    /// Moves a transaction out of the mempool into a block.
    fn confirm(&mut self, txid: &Txid, place: Place) {
        if let Some(entry) = self.forget(txid) {
            self.history.extend(entry.scripts().into_iter().map(|script| (script, place, *txid)));
            self.entries.insert(*txid, Entry { place, ..entry });
        }
    }

    /// Returns a coinbase transaction. The height makes its id unique (BIP-34), and the count does so among blocks of
    /// one height.
    fn coinbase(&self, height: u32, coins: Vec<TxOut>, root: Option<WitnessMerkleNode>) -> Transaction {
        let reserved = [0; 32];
        let commitment = root.map(|root| WholeBlock::compute_witness_commitment(&root, &reserved).to_byte_array()).unwrap_or_default();
        let mark = PushBytesBuf::try_from([&[0xaa, 0x21, 0xa9, 0xed], &commitment[..]].concat()).unwrap_or_default();
        let mut output = coins;
        output.push(TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::new_op_return(mark) });
        let script_sig = ScriptBuf::builder().push_int(height.into()).push_slice(self.made.to_le_bytes()).into_script();
        let witness = Witness::from_slice(&[reserved]);
        let input = vec![TxIn { previous_output: OutPoint::null(), script_sig, sequence: Sequence::MAX, witness }];
        Transaction { version: transaction::Version::TWO, lock_time: absolute::LockTime::ZERO, input, output }
    }

    /// Rolls back the newest blocks. Their transactions return to the mempool if they are still valid. Outputs of
    /// their coinbase transactions are gone.
    pub(super) fn take_back(&mut self, depth: u64) -> Result<(), String> {
        let depth = u32::try_from(depth).unwrap_or(WAITING);
        let tip = self.height();
        let kept = tip.checked_sub(depth).filter(|kept| depth <= MAX_REORGANIZATION && *kept >= self.first);
        let Some(kept) = kept.filter(|kept| (*kept..=tip).all(|height| self.blocks.contains_key(&height))) else {
            return Err(format!("only up to {MAX_REORGANIZATION} blocks after the first one can be taken back"));
        };
        if self.node.is_some() {
            return self.invalidate(kept.saturating_add(1)).map_err(|error| error.to_string());
        }
        for transaction in self.unmake(kept).into_iter().rev() {
            if !transaction.is_coinbase() {
                // Transactions that have become invalid are dropped, as on a node.
                let _ = self.accept(Arc::unwrap_or_clone(transaction));
            }
        }
        Ok(())
    }

    /// Removes the mempool and the blocks above a height. Returns their transactions, newest first.
    pub(super) fn unmake(&mut self, kept: u32) -> Vec<Arc<Transaction>> {
        self.unread = self.unread.min(kept.saturating_add(1));
        let removed = self.blocks.split_off(&kept.saturating_add(1));
        let mut txids = Vec::new();
        for block in removed.into_values() {
            self.heights.remove(&block.hash);
            txids.extend(block.txids);
        }
        txids.extend(self.waiting.iter().map(|(_, txid)| *txid));
        txids.iter().rev().filter_map(|txid| self.remove(txid)).collect()
    }

    /// Returns a serialized block, if all of its transactions are still stored.
    pub(super) fn raw(&self, block: &Block) -> Option<Vec<u8>> {
        if let Some(node) = &self.node {
            return node.raw(&block.hash).ok();
        }
        let transactions = block.txids.iter().map(|txid| Some(self.entries.get(txid)?.transaction.as_ref().clone()));
        Some(serialize(&WholeBlock { header: block.header, txdata: transactions.collect::<Option<_>>()? }))
    }

    /// Drops old empty blocks, and old transactions whose outputs were all spent long ago. Unspent outputs are kept.
    fn drop_old(&mut self) {
        while (self.entries.len() > KEEP || self.blocks.len() > KEEP) && self.dropped.saturating_add(KEEP_BLOCKS) < self.height() {
            let next = self.blocks.range(self.dropped..).next().map(|(height, block)| (*height, block.hash, block.txids.clone()));
            let Some((height, hash, txids)) = next else { return };
            if height.saturating_add(KEEP_BLOCKS) >= self.height() {
                return;
            }
            self.dropped = height.saturating_add(1);
            let parents = txids.iter().filter_map(|txid| self.entries.get(txid));
            let parents = parents.flat_map(|entry| entry.transaction.input.iter().map(|input| input.previous_output.txid));
            let old: BTreeSet<Txid> = parents.chain(txids.iter().copied()).filter(|txid| self.is_over(txid, height)).collect();
            for txid in old {
                if let Some(entry) = self.forget(&txid) {
                    for (vout, _) in (0..).zip(&entry.transaction.output) {
                        self.spends.remove(&OutPoint { txid, vout });
                    }
                }
            }
            if !txids.iter().any(|txid| self.entries.contains_key(txid)) {
                self.blocks.remove(&height);
                self.heights.remove(&hash);
            }
        }
    }

    /// Returns whether the blocks up to a height have spent every output of a transaction.
    fn is_over(&self, txid: &Txid, height: u32) -> bool {
        let is_spent = |outpoint: &OutPoint| {
            let spender = self.spends.get(outpoint).map(|(spender, _)| self.entries.get(spender));
            spender.is_some_and(|spender| spender.is_none_or(|spender| spender.place.0 <= height))
        };
        self.entries.get(txid).is_some_and(|entry| {
            let outputs = (0..).zip(&entry.transaction.output).filter(|(_, output)| !output.script_pubkey.is_op_return());
            outputs.map(|(vout, _)| OutPoint { txid: *txid, vout }).all(|outpoint| is_spent(&outpoint))
        })
    }
}
