//! Blocks, what they changed, and the transactions that wait for the next one.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use sha2::{Digest as _, Sha256};
use starknet_crypto::Felt;

use super::felts::{hex, is_signed, selector};
use super::invoke::{Invoke, Outcome, execute};
use super::machine::{ACCOUNT_CLASS, CLASS, Event, Frame, Machine, NONCE, STRK, Slot, World};

/// How many blocks L1 is behind.
pub(super) const LAG: u64 = 5;
/// The height at which the sandbox begins, which is plausible for the main network.
const START: u64 = 4_000_000;
/// How many blocks there are before anything happens, and how many milliseconds they took each.
const EARLIER: u64 = 64;
pub(super) const INTERVAL: u64 = 4_000;
/// How many blocks with transactions are kept, and how many runs of blocks.
const MAX_BODIES: usize = 20_000;
const MAX_RUNS: usize = 100_000;
/// How many transactions wait at most.
const MAX_PENDING: usize = 2_000;

/// Blocks that were made together. The transactions are in the first.
#[derive(Debug)]
struct Run {
    blocks: u64,
    /// Seconds: when the block before was made, and when the last of these was.
    times: [u64; 2],
    /// Commits to everything up to here.
    digest: [u8; 32],
}

/// What came in.
#[derive(Debug, Clone)]
pub(super) enum Input {
    Invoke(Box<Invoke>),
    /// Tokens from nowhere: token, account and amount, as a bridge would bring them.
    Mint([Felt; 2], U256),
}

/// A transaction in a block, or one that waits for it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) hash: Felt,
    pub(super) input: Input,
    pub(super) reverted: Option<String>,
    pub(super) gas: [u64; 3],
    pub(super) fee: U256,
    pub(super) events: Vec<Event>,
}

/// A block with transactions.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) entries: Vec<Entry>,
    /// What it replaced.
    before: BTreeMap<Slot, Felt>,
}

/// Which state is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// After the transactions that wait.
    Pending,
    Height(u64),
}

/// Why a transaction is not taken: the code, and more words.
#[derive(Debug)]
pub(super) struct Refused(pub(super) i64, pub(super) String);

/// The chain.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) world: World,
    state: BTreeMap<Slot, Felt>,
    runs: BTreeMap<u64, Run>,
    pub(super) bodies: BTreeMap<u64, Body>,
    index: BTreeMap<Felt, (u64, usize)>,
    pub(super) head: u64,
    /// The newest block that L1 has accepted.
    pub(super) on_l1: u64,
    pub(super) pending: Vec<Entry>,
    writes: BTreeMap<Slot, Felt>,
    /// Counts what was taken back, so that other blocks have other hashes.
    branch: u64,
    mints: u64,
}

impl Ledger {
    /// Starts a chain whose newest block has this time, in seconds.
    pub(super) fn new(world: World, now: u64) -> Self {
        let head = START.saturating_add(EARLIER);
        let start = now.saturating_sub(EARLIER.saturating_mul(INTERVAL) / 1_000);
        let digest = Sha256::digest([&world.chain_id.to_bytes_be()[..], b"countersign sandbox"].concat()).into();
        let first = Run { blocks: EARLIER.saturating_add(1), times: [start, now], digest };
        let mut state = BTreeMap::new();
        for token in &world.tokens {
            state.insert((token.htlc, selector("token")), token.address);
            state.insert((token.htlc, selector("chain_id")), world.chain_id);
        }
        Self {
            world,
            state,
            runs: BTreeMap::from([(START, first)]),
            bodies: BTreeMap::new(),
            index: BTreeMap::new(),
            head,
            on_l1: head.saturating_sub(LAG),
            pending: Vec::new(),
            writes: BTreeMap::new(),
            branch: 0,
            mints: 0,
        }
    }

    /// Gives tokens to an account before anything happens.
    pub(super) fn give(&mut self, token: Felt, account: Felt, amount: U256) {
        let writes = self.on(At::Height(self.head), |machine| {
            machine.mint(token, account, amount);
            std::mem::take(&mut machine.writes)
        });
        self.state.extend(writes);
    }

    fn run_of(&self, height: u64) -> Option<(u64, &Run)> {
        let (start, run) = self.runs.range(..=height).next_back().filter(|_| height <= self.head)?;
        Some((*start, run))
    }

    /// Returns the time of a block, in seconds. Blocks that were made together share the time between them.
    pub(super) fn time(&self, height: u64) -> Option<u64> {
        let (start, run) = self.run_of(height)?;
        let [from, to] = run.times;
        let place = u128::from(height.saturating_sub(start).saturating_add(1));
        let part = u128::from(to.saturating_sub(from)).saturating_mul(place).checked_div(u128::from(run.blocks))?;
        Some(from.saturating_add(u64::try_from(part).ok()?))
    }

    /// Returns the hash of a block. It is not the network's formula. Its end tells the height, so that a block is found by its hash.
    pub(super) fn hash(&self, height: u64) -> Option<Felt> {
        let (_, run) = self.run_of(height)?;
        let mut bytes: [u8; 32] = Sha256::digest([&run.digest[..], &height.to_be_bytes()].concat()).into();
        let (front, end) = bytes.split_last_chunk_mut::<8>()?;
        *end = (height ^ mask(front)?).to_be_bytes();
        *front.first_mut()? &= 0x03;
        Some(Felt::from_bytes_be(&bytes))
    }

    /// Returns the height of the block with a hash.
    pub(super) fn height_of(&self, hash: Felt) -> Option<u64> {
        let bytes = hash.to_bytes_be();
        let (front, end) = bytes.split_last_chunk::<8>()?;
        let height = u64::from_be_bytes(*end) ^ mask(front)?;
        (self.hash(height) == Some(hash)).then_some(height)
    }

    /// Returns whether the state of a block is still known.
    pub(super) fn has(&self, height: u64) -> bool {
        self.run_of(height).is_some()
    }

    pub(super) fn slot(&self, at: At, slot: &Slot) -> Felt {
        let newest = || self.state.get(slot).copied().unwrap_or_default();
        match at {
            At::Pending => self.writes.get(slot).copied().unwrap_or_else(newest),
            At::Height(height) => {
                let mut later = self.bodies.range(height.saturating_add(1)..);
                later.find_map(|(_, body)| body.before.get(slot).copied()).unwrap_or_else(newest)
            }
        }
    }

    /// Lets something be done on top of a state.
    pub(super) fn on<R>(&self, at: At, act: impl FnOnce(&mut Machine<'_>) -> R) -> R {
        let base = |slot: &Slot| self.slot(at, slot);
        let block = match at {
            At::Pending => self.head.saturating_add(1),
            At::Height(height) => height,
        };
        act(&mut Machine { world: &self.world, base: &base, writes: BTreeMap::new(), block, events: 0 })
    }

    pub(super) fn nonce(&self, at: At, account: Felt) -> Felt {
        self.slot(at, &(account, NONCE))
    }

    /// Executes a transaction after those that wait.
    pub(super) fn try_out(&self, at: At, transaction: &Invoke, is_charged: bool) -> Outcome {
        let block = match at {
            At::Pending => self.head.saturating_add(1),
            At::Height(height) => height,
        };
        let base = |slot: &Slot| self.slot(at, slot);
        execute(&self.world, &base, &BTreeMap::new(), block, transaction, is_charged)
    }

    /// Returns why an account's signature or its existence stands against a transaction.
    pub(super) fn validate(&self, at: At, transaction: &Invoke, hash: Felt) -> Result<(), Refused> {
        if self.slot(at, &(transaction.sender, CLASS)) != ACCOUNT_CLASS {
            return Err(Refused(55, format!("Requested contract address {} is not deployed.", hex(transaction.sender))));
        }
        if !is_signed(transaction.sender, hash, &transaction.signature) {
            let text = format!("Account: invalid signature. Sender: {}", hex(transaction.sender));
            return Err(Refused(55, text));
        }
        Ok(())
    }

    /// Takes a transaction as a node does. It waits for the next block.
    pub(super) fn submit(&mut self, transaction: Invoke) -> Result<Felt, Refused> {
        let hash = transaction.hash(self.world.chain_id);
        if self.find(hash).is_some() {
            return Err(Refused(59, String::new()));
        }
        if self.pending.len() >= MAX_PENDING {
            return Err(Refused(63, "The mempool is full.".to_owned()));
        }
        if transaction.version != Felt::THREE {
            return Err(Refused(61, String::new()));
        }
        self.validate(At::Pending, &transaction, hash)?;
        let (sender, nonce) = (transaction.sender, transaction.nonce);
        let same = |entry: &Entry| matches!(&entry.input, Input::Invoke(other) if other.sender == sender && other.nonce == nonce);
        let replaced = self.pending.iter().position(same);
        let next = self.nonce(At::Pending, sender);
        if replaced.is_none() && nonce != next {
            let words = "Invalid transaction nonce of contract at address";
            return Err(Refused(52, format!("{words} {}. Account nonce: {next}; got: {nonce}.", hex(sender))));
        }
        transaction.check_bounds().map_err(|text| Refused(53, text))?;
        let (has, max) = (self.on(At::Pending, |machine| machine.balance(STRK, sender)), transaction.max_fee());
        if has < max {
            return Err(Refused(54, format!("Resource bounds exceed the balance ({has}): the maximal fee is {max}.")));
        }
        match replaced.and_then(|place| self.pending.get_mut(place)) {
            Some(entry) => {
                let Input::Invoke(old) = &entry.input else { return Err(Refused(64, String::new())) };
                let ([_, (_, old_price), _], [_, (_, price), _]) = (old.bounds, transaction.bounds);
                let is_higher = |old: u128, new: u128| new >= old.saturating_add(old.div_ceil(10));
                if !is_higher(old_price, price) || !is_higher(old.tip.into(), transaction.tip.into()) {
                    return Err(Refused(64, String::new()));
                }
                entry.hash = hash;
                entry.input = Input::Invoke(Box::new(transaction));
                self.redo();
            }
            None => self.push(hash, transaction),
        }
        Ok(hash)
    }

    fn push(&mut self, hash: Felt, transaction: Invoke) {
        let outcome = self.try_out(At::Pending, &transaction, true);
        let events = outcome.events();
        let Outcome { reverted, gas, fee, writes, .. } = outcome;
        self.writes.extend(writes);
        self.pending.push(Entry { hash, input: Input::Invoke(Box::new(transaction)), reverted, gas, fee, events });
    }

    /// Executes what waits once more, because something before it has changed. What has the wrong nonce now is dropped.
    fn redo(&mut self) {
        self.writes.clear();
        for entry in std::mem::take(&mut self.pending) {
            if let Input::Invoke(transaction) = entry.input
                && self.nonce(At::Pending, transaction.sender) == transaction.nonce
            {
                self.push(entry.hash, *transaction);
            }
        }
    }

    /// Makes tokens from nowhere, in a block of its own.
    pub(super) fn mint(&mut self, token: Felt, account: Felt, amount: U256, now: u64) -> Result<(), String> {
        self.arrive([token, account], amount, now, |machine| machine.mint(token, account, amount))
            .ok_or("the balance would be too large")?;
        Ok(())
    }

    /// The issuer of a token freezes an account, or pauses the token where none is named, in a block of its own.
    pub(super) fn stop(&mut self, token: Felt, account: Option<Felt>, now: u64) {
        let stopped = |machine: &mut Machine<'_>| {
            machine.stop(token, account);
            Some(Vec::new())
        };
        let _ = self.arrive([token, account.unwrap_or_default()], U256::ZERO, now, stopped);
    }

    /// Changes the state in a block of its own, which shows a message that brings an account this much of a token.
    fn arrive(
        &mut self,
        [token, account]: [Felt; 2],
        amount: U256,
        now: u64,
        change: impl FnOnce(&mut Machine<'_>) -> Option<Vec<Event>>,
    ) -> Option<()> {
        self.mints = self.mints.saturating_add(1);
        let changed = self.on(At::Height(self.head), |machine| {
            let events = change(machine)?;
            Some((events, std::mem::take(&mut machine.writes)))
        });
        let (events, writes) = changed?;
        let hash = Sha256::digest([&self.mints.to_be_bytes()[..], &self.branch.to_be_bytes(), &account.to_bytes_be()].concat());
        let hash = hash.get(1..).map(Felt::from_bytes_be_slice).unwrap_or_default();
        let input = Input::Mint([token, account], amount);
        let entry = Entry { hash, input, reverted: None, gas: [0; 3], fee: U256::ZERO, events };
        self.append(1, now, vec![entry], writes);
        self.redo();
        Some(())
    }

    /// Makes blocks. What waits goes into the first.
    pub(super) fn mine(&mut self, blocks: u64, now: u64) {
        let (entries, writes) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.writes));
        self.append(blocks, now, entries, writes);
    }

    fn append(&mut self, blocks: u64, now: u64, entries: Vec<Entry>, writes: BTreeMap<Slot, Felt>) {
        let start = self.head.saturating_add(1);
        let from = self.time(self.head).unwrap_or(now);
        let to = now.max(from);
        let mut digest = Sha256::new();
        digest.update(self.runs.last_key_value().map(|(_, run)| run.digest).unwrap_or_default());
        for number in [start, blocks, to, self.branch] {
            digest.update(number.to_be_bytes());
        }
        for (place, entry) in entries.iter().enumerate() {
            digest.update(entry.hash.to_bytes_be());
            self.index.insert(entry.hash, (start, place));
        }
        self.runs.insert(start, Run { blocks, times: [from, to], digest: digest.finalize().into() });
        if !entries.is_empty() {
            let before = writes.into_iter().map(|(slot, value)| (slot, self.state.insert(slot, value).unwrap_or_default())).collect();
            self.bodies.insert(start, Body { entries, before });
        }
        self.head = self.head.saturating_add(blocks);
        self.on_l1 = self.on_l1.max(self.head.saturating_sub(LAG));
        self.prune();
    }

    /// Drops the oldest blocks as a node does that keeps no archive.
    fn prune(&mut self) {
        while self.bodies.len() > MAX_BODIES || self.runs.len() > MAX_RUNS {
            let Some(oldest) = self.runs.first_entry().filter(|run| run.key().saturating_add(run.get().blocks) <= self.on_l1) else {
                return;
            };
            for entry in self.bodies.remove(&oldest.remove_entry().0).into_iter().flat_map(|body| body.entries) {
                self.index.remove(&entry.hash);
            }
        }
    }

    /// Takes the newest blocks back, and what they held.
    pub(super) fn take_back(&mut self, depth: u64) -> Result<(), String> {
        let head = self.head.saturating_sub(depth);
        if head < self.on_l1 {
            return Err(format!("L1 has accepted block {}, which is never replaced", self.on_l1));
        }
        for (_, body) in self.bodies.split_off(&head.saturating_add(1)).into_iter().rev() {
            self.state.extend(body.before);
            for entry in body.entries {
                self.index.remove(&entry.hash);
            }
        }
        // The run that holds the new head stays as it was, so that its blocks keep their times.
        self.runs.split_off(&head.saturating_add(1));
        self.head = head;
        self.branch = self.branch.saturating_add(1);
        self.redo();
        Ok(())
    }

    /// Returns a transaction, and the height of its block if it has one.
    pub(super) fn find(&self, hash: Felt) -> Option<(&Entry, Option<u64>)> {
        if let Some((height, place)) = self.index.get(&hash) {
            return Some((self.bodies.get(height)?.entries.get(*place)?, Some(*height)));
        }
        self.pending.iter().find(|entry| entry.hash == hash).map(|entry| (entry, None))
    }

    /// Calls a function without a transaction.
    pub(super) fn call(&self, at: At, to: Felt, selector: Felt, calldata: &[Felt]) -> Result<Frame, super::machine::Failure> {
        self.on(at, |machine| machine.call(Felt::ZERO, to, selector, calldata))
    }
}

fn mask(front: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*front.split_first_chunk::<8>()?.1.first_chunk()?))
}
