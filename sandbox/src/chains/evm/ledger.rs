//! Blocks, the state after each of them, and time. EVM chains and Tron share this file.
//!
//! Blocks that are made one by one are stored. Of a long run of empty blocks only the last ones are stored, because
//! the others follow from their numbers. A hundred thousand empty blocks therefore cost nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bloom};
use countersign_proofs_evm::{CallError, Changes, Receipt, UnsignedCall, World};

use crate::chains::engine::Event;
use crate::clock::Clock;

/// How many blocks at the end of an empty run are stored.
const TAIL: u64 = 32;
/// How many empty blocks are kept in total.
const MAX_EMPTY: usize = 8_192;
/// How many past states are kept, counted in blocks that changed something.
const MAX_STATES: usize = 512;
/// How many transactions are kept.
const MAX_TRANSACTIONS: usize = 200_000;

/// An executed transaction.
#[derive(Debug, Clone)]
pub(crate) struct Mined<T> {
    pub(crate) id: B256,
    pub(crate) transaction: T,
    pub(crate) to: Option<Address>,
    pub(crate) receipt: Receipt,
}

/// A block.
#[derive(Debug, Clone)]
pub(crate) struct Block<T> {
    pub(crate) number: u64,
    pub(crate) millis: u64,
    pub(crate) hash: B256,
    pub(crate) parent: B256,
    /// How many reorganizations preceded the block. It distinguishes blocks of the same number.
    pub(crate) fork: u64,
    pub(crate) roots: Roots,
    pub(crate) transactions: Vec<Mined<T>>,
}

/// The roots in a header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roots {
    pub(crate) state: B256,
    pub(crate) transactions: B256,
    pub(crate) receipts: B256,
    pub(crate) bloom: Bloom,
    pub(crate) gas_used: u64,
}

/// The block format, which differs between kinds of chains.
pub(crate) trait Format {
    /// The format's transactions.
    type Transaction: Clone + std::fmt::Debug;

    /// The minimum time between two blocks, in milliseconds.
    const MIN_STEP: u64;

    /// Returns the roots of a block with these transactions, given the accounts that changed.
    fn roots(&mut self, world: &World, changed: &Changes, transactions: &[Mined<Self::Transaction>]) -> Roots;

    /// Returns the roots of an empty block on top of this state.
    fn empty(&self, state: B256) -> Roots;

    /// Drops what is cached about accounts.
    fn forget(&mut self, changed: &Changes);

    /// Returns the hash of a block whose other members are complete.
    fn hash(&self, block: &Block<Self::Transaction>) -> B256;

    /// Returns the hash of an empty block that is not stored. The hash contains the number.
    fn hash_of(&self, number: u64, fork: u64) -> B256;

    /// Returns the number in such a hash.
    fn number_in(&self, hash: B256) -> u64;
}

/// A chain of blocks over a [`World`]. The world's current block is the next one.
#[derive(Debug)]
pub(crate) struct Ledger<F: Format> {
    pub(crate) format: F,
    pub(crate) world: World,
    clock: Arc<Clock>,
    interval: u64,
    head: u64,
    blocks: BTreeMap<u64, Block<F::Transaction>>,
    /// The numbers of stored blocks with and without transactions.
    busy: VecDeque<u64>,
    empty: VecDeque<u64>,
    hashes: HashMap<B256, u64>,
    places: HashMap<B256, (u64, usize)>,
    /// The changes of each block. The state before the first of them is unknown.
    changes: BTreeMap<u64, Changes>,
    oldest_state: u64,
    forks: BTreeMap<u64, u64>,
    /// The effects of blocks on swaps that have not been read yet.
    pub(crate) events: Vec<Event>,
}

impl<F: Format> Ledger<F> {
    /// Returns a chain whose newest block has the number `head` and the state of `world`.
    pub(crate) fn new(format: F, mut world: World, clock: Arc<Clock>, head: u64, interval: u64) -> Self {
        let _ = world.take_changes();
        let millis = clock.millis();
        let mut ledger = Self {
            format,
            world,
            clock,
            interval,
            head: head.saturating_sub(1),
            blocks: BTreeMap::new(),
            busy: VecDeque::new(),
            empty: VecDeque::new(),
            hashes: HashMap::new(),
            places: HashMap::new(),
            changes: BTreeMap::new(),
            oldest_state: head,
            forks: BTreeMap::new(),
            events: Vec::new(),
        };
        let parent = ledger.format.hash_of(ledger.head, 0);
        ledger.push(Vec::new(), millis, parent);
        ledger
    }

    pub(crate) const fn head(&self) -> u64 {
        self.head
    }

    /// Returns the newest block.
    pub(crate) fn newest(&self) -> Cow<'_, Block<F::Transaction>> {
        self.blocks.get(&self.head).map_or_else(|| Cow::Owned(self.unstored(self.head)), Cow::Borrowed)
    }

    /// Returns a block of the chain.
    pub(crate) fn block(&self, number: u64) -> Option<Cow<'_, Block<F::Transaction>>> {
        if number > self.head {
            return None;
        }
        Some(self.blocks.get(&number).map_or_else(|| Cow::Owned(self.unstored(number)), Cow::Borrowed))
    }

    /// Returns the number of the block with a hash.
    pub(crate) fn number_of(&self, hash: B256) -> Option<u64> {
        let number = self.hashes.get(&hash).copied().unwrap_or_else(|| self.format.number_in(hash));
        self.block(number).filter(|block| block.hash == hash).map(|block| block.number)
    }

    /// Returns the block of a transaction, and its index there.
    pub(crate) fn place(&self, id: B256) -> Option<(&Block<F::Transaction>, usize)> {
        let (number, index) = self.places.get(&id)?;
        Some((self.blocks.get(number)?, *index))
    }

    /// Returns the blocks from `first` to `last` that have transactions.
    pub(crate) fn busy(&self, first: u64, last: u64) -> impl Iterator<Item = &Block<F::Transaction>> {
        let start = self.busy.partition_point(|number| *number < first);
        self.busy.range(start..).take_while(move |number| **number <= last).filter_map(|number| self.blocks.get(number))
    }

    /// Returns the changes since a block, or `None` if that block's state is no longer known.
    pub(crate) fn since(&self, number: u64) -> Option<Changes> {
        if number < self.oldest_state {
            return None;
        }
        let mut all = Changes::default();
        for (_, changes) in self.changes.range(number.saturating_add(1)..).rev() {
            all.add_earlier(changes);
        }
        Some(all)
    }

    /// Returns the time of the next block, in Unix milliseconds.
    pub(crate) fn next_millis(&self) -> u64 {
        self.clock.millis().max(self.newest().millis.saturating_add(F::MIN_STEP))
    }

    /// Opens the next block, so that executions see its number and time.
    pub(crate) fn open(&mut self, blocks: u64) -> u64 {
        let (before, last) = (self.newest().millis, self.next_millis());
        let last = last.max(before.saturating_add(F::MIN_STEP.saturating_mul(blocks)));
        let step = last.saturating_sub(before).checked_div(blocks).unwrap_or_default();
        let millis = before.saturating_add(step);
        self.world.set_block(self.head.saturating_add(1), millis / 1_000);
        millis
    }

    /// Returns what a call would do in the next block, after the calls `before` it.
    pub(crate) fn dry_run(&self, before: impl Iterator<Item = UnsignedCall>, call: &UnsignedCall) -> Result<Receipt, CallError> {
        let nothing = Changes::default();
        let mut simulation = self.world.before(&nothing).simulate(self.head.saturating_add(1), self.next_millis() / 1_000);
        for waiting in before {
            // The outcome of a preceding call does not matter. A failed one changes nothing.
            let _ = simulation.run(&waiting, false);
        }
        simulation.run(call, false)
    }

    /// Changes the state in a block of its own, because the state after a block must never change.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut World) -> R) -> R {
        let millis = self.open(1);
        let changed = change(&mut self.world);
        self.seal(Vec::new(), millis);
        changed
    }

    /// Closes the open block.
    pub(crate) fn seal(&mut self, transactions: Vec<Mined<F::Transaction>>, millis: u64) {
        let parent = self.newest().hash;
        self.push(transactions, millis, parent);
        self.prune();
    }

    /// Adds empty blocks.
    pub(crate) fn skip(&mut self, count: u64) {
        let before = self.newest();
        let (began, mut parent) = (before.millis, before.hash);
        let last = self.next_millis().max(began.saturating_add(F::MIN_STEP.saturating_mul(count)));
        let span = u128::from(last.saturating_sub(began));
        let unstored = count.saturating_sub(TAIL);
        if unstored > 0 {
            self.head = self.head.saturating_add(unstored);
            parent = self.format.hash_of(self.head, self.fork_at(self.head));
        }
        for place in unstored..count {
            let passed = span.saturating_mul(u128::from(place).saturating_add(1)).checked_div(count.into()).unwrap_or_default();
            self.push(Vec::new(), began.saturating_add(u64::try_from(passed).unwrap_or_default()), parent);
            parent = self.newest().hash;
        }
        self.prune();
    }

    /// Rolls back the newest blocks, and returns their transactions.
    pub(crate) fn reorganize(&mut self, depth: u64) -> Result<Vec<Mined<F::Transaction>>, String> {
        let target = self.head.saturating_sub(depth);
        if target < self.oldest_state {
            return Err(format!("the state {depth} blocks ago is no longer known"));
        }
        if let Some(Cow::Owned(block)) = self.block(target) {
            self.empty.push_back(target);
            self.blocks.insert(target, block);
        }
        let first = target.saturating_add(1);
        for (_, changes) in self.changes.split_off(&first).into_iter().rev() {
            self.format.forget(&changes);
            self.world.undo(changes);
        }
        let undone = self.blocks.split_off(&first);
        self.busy.retain(|number| *number <= target);
        self.empty.retain(|number| *number <= target);
        let mut transactions = Vec::new();
        for block in undone.into_values() {
            self.hashes.remove(&block.hash);
            transactions.extend(block.transactions);
        }
        for mined in &transactions {
            self.places.remove(&mined.id);
        }
        let fork = self.fork_at(self.head).saturating_add(1);
        self.forks.split_off(&first);
        self.forks.insert(first, fork);
        self.head = target;
        self.events.retain(|event| event.height <= target);
        let _ = self.world.take_changes();
        let seconds = self.newest().millis / 1_000;
        self.world.set_block(first, seconds);
        Ok(transactions)
    }

    fn fork_at(&self, number: u64) -> u64 {
        self.forks.range(..=number).next_back().map_or(0, |(_, fork)| *fork)
    }

    fn push(&mut self, transactions: Vec<Mined<F::Transaction>>, millis: u64, parent: B256) {
        let changes = self.world.take_changes();
        let roots = self.format.roots(&self.world, &changes, &transactions);
        self.head = self.head.saturating_add(1);
        let (number, fork) = (self.head, self.fork_at(self.head));
        let mut block = Block { number, millis, hash: B256::ZERO, parent, fork, roots, transactions };
        block.hash = self.format.hash(&block);
        for (index, mined) in block.transactions.iter().enumerate() {
            self.places.insert(mined.id, (number, index));
        }
        if changes.accounts().next().is_some() {
            self.changes.insert(number, changes);
        }
        if block.transactions.is_empty() { &mut self.empty } else { &mut self.busy }.push_back(number);
        self.hashes.insert(block.hash, number);
        self.blocks.insert(number, block);
        self.world.set_block(number.saturating_add(1), millis / 1_000);
    }

    /// Returns an empty block that is not stored.
    fn unstored(&self, number: u64) -> Block<F::Transaction> {
        let next = number.saturating_add(1);
        let (below, above) = (self.blocks.range(..number).next_back(), self.blocks.range(next..).next());
        let millis = match (below, above) {
            (Some((low, below)), Some((high, above))) => {
                let span = u128::from(above.millis.saturating_sub(below.millis)).saturating_mul(number.saturating_sub(*low).into());
                let passed = span.checked_div(high.saturating_sub(*low).into()).unwrap_or_default();
                below.millis.saturating_add(u64::try_from(passed).unwrap_or_default())
            }
            (Some((_, below)), None) => below.millis,
            (None, Some((high, above))) => above.millis.saturating_sub(high.saturating_sub(number).saturating_mul(self.interval)),
            (None, None) => self.clock.millis(),
        };
        let hash_of = |number| self.format.hash_of(number, self.fork_at(number));
        let previous = number.checked_sub(1);
        let parent = previous.map(|number| self.blocks.get(&number).map_or_else(|| hash_of(number), |block| block.hash));
        Block {
            number,
            millis,
            hash: self.blocks.get(&next).map_or_else(|| hash_of(number), |child| child.parent),
            parent: parent.unwrap_or_default(),
            fork: self.fork_at(number),
            roots: self.format.empty(below.or(above).map(|(_, block)| block.roots.state).unwrap_or_default()),
            transactions: Vec::new(),
        }
    }

    /// Drops old blocks and states, as a node does.
    fn prune(&mut self) {
        while self.empty.len() > MAX_EMPTY {
            let block = self.empty.pop_front().and_then(|number| self.blocks.remove(&number));
            block.map(|block| self.hashes.remove(&block.hash));
        }
        while self.places.len() > MAX_TRANSACTIONS {
            let Some(block) = self.busy.pop_front().and_then(|number| self.blocks.remove(&number)) else { break };
            self.hashes.remove(&block.hash);
            for mined in block.transactions {
                self.places.remove(&mined.id);
            }
        }
        while self.changes.len() > MAX_STATES {
            if let Some((number, _)) = self.changes.pop_first() {
                self.oldest_state = number;
            }
        }
    }
}
