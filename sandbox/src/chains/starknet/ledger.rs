//! Blocks, their state changes, and the pending transactions.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use starknet_core::types::StarknetError;
use starknet_crypto::Felt;

use super::contracts::{NONCES, Slot, Token, View};
use super::felts::selector;
use super::invoke::{Invoke, Outcome, hash_of, outbids};

/// How many blocks L1 lags behind.
pub(super) const LAG: u64 = 5;
/// The height at which the sandbox starts. It is plausible for mainnet.
const START: u64 = 4_000_000;
/// The number of blocks before the start, and the milliseconds between blocks.
const EARLIER: u64 = 64;
pub(super) const INTERVAL: u64 = 4_000;

/// Blocks that were made at once. The first contains the transactions.
#[derive(Debug)]
struct Run {
    blocks: u64,
    /// The times of the preceding block and of the last of these blocks, in seconds.
    times: [u64; 2],
    /// A hash of everything up to here.
    digest: [u8; 32],
}

/// A transaction in a block, or a pending one.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) hash: Felt,
    pub(super) transaction: Invoke,
    pub(super) outcome: Outcome,
}

/// A block that changed something.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) entries: Vec<Entry>,
    /// The values that it replaced.
    before: BTreeMap<Slot, Felt>,
}

/// A state of the chain.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    /// After the pending transactions.
    Pending,
    Height(u64),
}

/// The chain.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) chain_id: Felt,
    pub(super) tokens: Vec<Token>,
    state: BTreeMap<Slot, Felt>,
    runs: BTreeMap<u64, Run>,
    pub(super) bodies: BTreeMap<u64, Body>,
    pub(super) head: u64,
    /// The newest block that L1 has accepted.
    pub(super) on_l1: u64,
    pub(super) pending: Vec<Entry>,
    writes: BTreeMap<Slot, Felt>,
    /// Counts rollbacks, so that replacing blocks have different hashes.
    branch: u64,
}

impl Ledger {
    /// Starts a chain. `now` is the time of its newest block, in seconds.
    pub(super) fn new(chain_id: Felt, tokens: Vec<Token>, now: u64) -> Self {
        let head = START.saturating_add(EARLIER);
        let start = now.saturating_sub(EARLIER.saturating_mul(INTERVAL) / 1_000);
        let digest = Sha256::digest([&chain_id.to_bytes_be()[..], b"countersign sandbox"].concat()).into();
        let first = Run { blocks: EARLIER.saturating_add(1), times: [start, now], digest };
        Self {
            chain_id,
            state: tokens.iter().map(|token| ((token.htlc, selector("token")), token.address)).collect(),
            tokens,
            runs: BTreeMap::from([(START, first)]),
            bodies: BTreeMap::new(),
            head,
            on_l1: head.saturating_sub(LAG),
            pending: Vec::new(),
            writes: BTreeMap::new(),
            branch: 0,
        }
    }

    fn run_of(&self, height: u64) -> Option<(u64, &Run)> {
        let (start, run) = self.runs.range(..=height).next_back().filter(|_| height <= self.head)?;
        Some((*start, run))
    }

    /// Returns the time of a block, in seconds. Blocks that were made at once are spread evenly.
    pub(super) fn time(&self, height: u64) -> Option<u64> {
        let (start, run) = self.run_of(height)?;
        let [from, to] = run.times;
        let place = u128::from(height.saturating_sub(start).saturating_add(1));
        let part = u128::from(to.saturating_sub(from)).saturating_mul(place).checked_div(u128::from(run.blocks))?;
        Some(from.saturating_add(u64::try_from(part).ok()?))
    }

    /// Returns the hash of a block. This is not the network's formula. It ends in the height, by which a block is
    /// found.
    pub(super) fn hash(&self, height: u64) -> Option<Felt> {
        let (_, run) = self.run_of(height)?;
        let mut bytes: [u8; 32] = Sha256::digest([&run.digest[..], &height.to_be_bytes()].concat()).into();
        *bytes.last_chunk_mut()? = height.to_be_bytes();
        *bytes.first_mut()? &= 0x03;
        Some(Felt::from_bytes_be(&bytes))
    }

    /// Returns the height of the block with a hash.
    pub(super) fn height_of(&self, hash: Felt) -> Option<u64> {
        let height = u64::from_be_bytes(*hash.to_bytes_be().last_chunk()?);
        (self.hash(height) == Some(hash)).then_some(height)
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

    /// Returns a view of a state, on top of which calls can be executed.
    pub(super) fn view(&self, at: At) -> View<'_> {
        let block = match at {
            At::Pending => self.head.saturating_add(1),
            At::Height(height) => height,
        };
        View { ledger: self, at, block, writes: BTreeMap::new(), events: Vec::new(), calls: Vec::new(), changes: Vec::new() }
    }

    pub(super) fn nonce(&self, at: At, account: Felt) -> Felt {
        self.slot(at, &(NONCES, account))
    }

    /// Accepts a transaction as a node does. It is pending until the next block.
    pub(super) fn submit(&mut self, transaction: Invoke) -> Result<Felt, StarknetError> {
        let hash = hash_of(&transaction, self.chain_id);
        if self.find(hash).is_some() {
            return Err(StarknetError::DuplicateTx);
        }
        if transaction.is_query {
            return Err(StarknetError::UnsupportedTxVersion);
        }
        self.validate(At::Pending, &transaction)?;
        let key = |transaction: &Invoke| (transaction.sender_address, transaction.nonce);
        let replaced = self.pending.iter().position(|entry| key(&entry.transaction) == key(&transaction));
        if replaced.is_none() {
            self.check_nonce(At::Pending, &transaction)?;
        }
        self.check_bounds(At::Pending, &transaction)?;
        match replaced.and_then(|place| self.pending.get_mut(place)) {
            Some(entry) if outbids(&transaction, &entry.transaction) => {
                (entry.hash, entry.transaction) = (hash, transaction);
                self.redo();
            }
            Some(_) => return Err(StarknetError::ReplacementTransactionUnderpriced),
            None => self.push(hash, transaction),
        }
        Ok(hash)
    }

    fn push(&mut self, hash: Felt, transaction: Invoke) {
        let mut outcome = self.execute(At::Pending, &transaction, true);
        self.writes.append(&mut outcome.writes);
        self.pending.push(Entry { hash, transaction, outcome });
    }

    /// Executes the pending transactions again after a change before them. A transaction whose nonce is now wrong is
    /// dropped.
    fn redo(&mut self) {
        self.writes.clear();
        for Entry { hash, transaction, .. } in std::mem::take(&mut self.pending) {
            if self.check_nonce(At::Pending, &transaction).is_ok() {
                self.push(hash, transaction);
            }
        }
    }

    /// Changes the state without a transaction, in a block of its own, to credit tokens or to act as an issuer.
    /// Without a time, the change applies before the chain's first block.
    pub(super) fn change(&mut self, now: Option<u64>, act: impl FnOnce(&mut View<'_>) -> Result<(), String>) -> Result<(), String> {
        let mut view = self.view(At::Height(self.head));
        act(&mut view)?;
        let writes = view.writes;
        match now {
            None => self.state.extend(writes),
            Some(now) => self.append(1, now, Vec::new(), writes),
        }
        self.redo();
        Ok(())
    }

    /// Makes blocks. The first contains the pending transactions.
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
        for entry in &entries {
            digest.update(entry.hash.to_bytes_be());
        }
        self.runs.insert(start, Run { blocks, times: [from, to], digest: digest.finalize().into() });
        if !writes.is_empty() {
            let before = writes.into_iter().map(|(slot, value)| (slot, self.state.insert(slot, value).unwrap_or_default())).collect();
            self.bodies.insert(start, Body { entries, before });
        }
        self.head = self.head.saturating_add(blocks);
        self.on_l1 = self.on_l1.max(self.head.saturating_sub(LAG));
    }

    /// Rolls back the newest blocks with their transactions.
    pub(super) fn take_back(&mut self, depth: u64) -> Result<(), String> {
        let head = self.head.saturating_sub(depth);
        if head < self.on_l1 {
            return Err(format!("L1 has accepted block {}, which is never replaced", self.on_l1));
        }
        for (_, body) in self.bodies.split_off(&head.saturating_add(1)).into_iter().rev() {
            self.state.extend(body.before);
        }
        // The run that contains the new head is not shortened, so that its blocks keep their times.
        self.runs.split_off(&head.saturating_add(1));
        self.head = head;
        self.branch = self.branch.saturating_add(1);
        self.redo();
        Ok(())
    }

    /// Returns a transaction, with the height of its block if it has one.
    pub(super) fn find(&self, hash: Felt) -> Option<(&Entry, Option<u64>)> {
        let mined = self.bodies.iter().rev().flat_map(|(height, body)| body.entries.iter().map(|entry| (entry, Some(*height))));
        self.pending.iter().map(|entry| (entry, None)).chain(mined).find(|(entry, _)| entry.hash == hash)
    }
}
