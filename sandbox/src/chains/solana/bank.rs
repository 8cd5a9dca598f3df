//! The cluster's state: slots and blockhashes, the accounts as recent blocks left them, and the executed
//! transactions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use litesvm::LiteSVM;
use litesvm::types::TransactionMetadata;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use solana_account::{AccountSharedData, ReadableAccount};
use solana_address::Address;
use solana_hash::Hash;
use solana_instruction::error::InstructionError;
use solana_message::VersionedMessage;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;

use super::htlc::{TOKEN, token_account};
use super::nonce;
use crate::clock::Clock;

/// The first slot. It is plausible for mainnet, and later than the slots in which its features were activated.
const FIRST: u64 = 461_000_000;
/// How many slots of mainnet had no block.
const SKIPPED: u64 = 22_000_000;
/// The number of blocks for which a blockhash is valid.
pub(super) const MAX_AGE: u64 = 150;
/// The minimum validity of a blockhash, in seconds. Blocks on demand come faster than wallets can sign.
const MIN_AGE_SECONDS: u64 = MAX_AGE * SLOT_MILLIS / 1_000;
/// The number of recent blocks whose hashes and times are kept.
const BLOCKS: usize = 8_192;
/// The number of blocks that are stored when more are made at once.
const LATEST: u64 = MAX_AGE * 2;
/// The number of transactions that are stored. Older ones are pruned, as on a node.
const RECORDS: usize = 16_384;
/// The maximum number of pending transactions. Further ones are dropped silently, as on a node.
const MAX_PENDING: usize = 4_096;
/// Milliseconds between slots.
pub(super) const SLOT_MILLIS: u64 = 400;
/// Slots per epoch.
const EPOCH: u64 = 432_000;

pub(super) const CLOCK: Address = Address::from_str_const(super::CLOCK);
/// The account of the recent blockhashes.
pub(super) const RECENT_BLOCKHASHES: Address = Address::from_str_const(super::RECENT_BLOCKHASHES);
const SYSVARS: Address = Address::from_str_const("Sysvar1111111111111111111111111111111111111");
/// The fee per signature, which each entry of that account repeats.
const SIGNATURE_FEE: u64 = 5_000;
/// The length of such an entry, in bytes.
pub(super) const BLOCKHASH: usize = 40;
/// Programs that deploy programs. A broken deployed program would end the virtual machine, and the sandbox needs
/// none.
const LOADERS: [Address; 4] = [
    Address::from_str_const("BPFLoader1111111111111111111111111111111111"),
    Address::from_str_const("BPFLoader2111111111111111111111111111111111"),
    Address::from_str_const("BPFLoaderUpgradeab1e11111111111111111111111"),
    Address::from_str_const("LoaderV411111111111111111111111111111111111"),
];

/// The commitment level of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Commitment {
    Processed,
    Confirmed,
    Finalized,
}

impl Commitment {
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Processed, Self::Confirmed, Self::Finalized].into_iter().find(|mark| mark.name() == name)
    }

    /// Returns after how many further blocks a transaction reaches this commitment. On mainnet it is 32 for the last
    /// level, which is too slow for tests.
    pub(super) const fn lag(self) -> u64 {
        match self {
            Self::Processed => 0,
            Self::Confirmed => 1,
            Self::Finalized => 4,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Confirmed => "confirmed",
            Self::Finalized => "finalized",
        }
    }
}

/// A recent block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) slot: u64,
    /// The block's time, in seconds since 1970.
    pub(super) time: u64,
    pub(super) hash: Hash,
}

/// A transaction in a block.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) slot: u64,
    pub(super) time: u64,
    pub(super) transaction: VersionedTransaction,
    pub(super) error: Option<TransactionError>,
    pub(super) meta: TransactionMetadata,
    /// The lamports of each account, before and after.
    pub(super) lamports: [Vec<u64>; 2],
    /// The tokens of each token account, before and after, in the nodes' format.
    pub(super) tokens: [Vec<Value>; 2],
}

impl Record {
    pub(super) fn signature(&self) -> Signature {
        id(&self.transaction)
    }
}

/// The outcome of a simulated transaction.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) slot: u64,
    pub(super) error: Option<TransactionError>,
    pub(super) meta: TransactionMetadata,
    /// The accounts that the transaction wrote to.
    pub(super) accounts: BTreeMap<Address, AccountSharedData>,
}

/// Accounts before a block changed them, or `None` for accounts that did not exist.
type Before = BTreeMap<Address, Option<AccountSharedData>>;

pub(super) struct Bank {
    svm: LiteSVM,
    clock: Arc<Clock>,
    genesis: Hash,
    blocks: VecDeque<Block>,
    /// The changes of blocks that are not final, oldest first.
    undo: VecDeque<(u64, Before)>,
    records: VecDeque<Record>,
    /// The position of each transaction, counted from the first one that ever ran.
    places: BTreeMap<Signature, usize>,
    pruned: usize,
    pending: Vec<VersionedTransaction>,
}

/// Returns the id of a transaction, which is its first signature.
pub(super) fn id(transaction: &VersionedTransaction) -> Signature {
    transaction.signatures.first().copied().unwrap_or_default()
}

/// Returns the height of the block in a slot.
pub(super) const fn height(slot: u64) -> u64 {
    slot.saturating_sub(SKIPPED)
}

impl Bank {
    pub(super) fn new(svm: LiteSVM, genesis: Hash, clock: Arc<Clock>) -> Self {
        // Signatures, blockhashes and duplicates are checked in this file, because simulations and blocks need
        // different rules.
        let svm = svm.with_sigverify(false).with_blockhash_check(false).with_transaction_history(0);
        let (blocks, undo, records) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (places, pending) = (BTreeMap::new(), Vec::new());
        let mut bank = Self { svm, clock, genesis, blocks, undo, records, places, pruned: 0, pending };
        let time = bank.clock.seconds().saturating_sub(120);
        bank.blocks.push_back(Block { slot: FIRST, time, hash: bank.blockhash(FIRST) });
        bank.extend(LATEST);
        bank.set_clock(bank.tip());
        bank
    }

    pub(super) const fn genesis(&self) -> Hash {
        self.genesis
    }

    pub(super) const fn svm(&self) -> &LiteSVM {
        &self.svm
    }

    /// Returns the newest slot.
    pub(super) fn tip(&self) -> u64 {
        self.blocks.back().map_or(FIRST, |block| block.slot)
    }

    /// Returns the newest slot with a commitment.
    pub(super) fn slot(&self, commitment: Commitment) -> u64 {
        self.tip().saturating_sub(commitment.lag())
    }

    /// Returns how far a slot has come.
    pub(super) fn commitment(&self, slot: u64) -> Commitment {
        let marks = [Commitment::Finalized, Commitment::Confirmed];
        marks.into_iter().find(|mark| slot <= self.slot(*mark)).unwrap_or(Commitment::Processed)
    }

    /// Returns a block, unless it is no longer stored.
    pub(super) fn block(&self, slot: u64) -> Option<&Block> {
        let first = self.blocks.front()?.slot;
        self.blocks.get(usize::try_from(slot.checked_sub(first)?).ok()?)
    }

    pub(super) fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.blocks.iter()
    }

    /// Returns the blockhash of a slot. It depends only on the slot, so empty blocks need not be made one by one.
    fn blockhash(&self, slot: u64) -> Hash {
        let hash = Sha256::new().chain_update(self.genesis.as_ref()).chain_update(slot.to_le_bytes());
        Hash::new_from_array(hash.finalize().into())
    }

    /// Returns the block that has a blockhash, if the blockhash is still valid in a slot.
    pub(super) fn find_blockhash(&self, hash: &Hash, slot: u64) -> Option<&Block> {
        let now = self.block(slot)?.time;
        let found = self.blocks.iter().rev().find(|block| block.hash == *hash).filter(|block| block.slot <= slot);
        found.filter(|block| slot.saturating_sub(block.slot) < MAX_AGE || now.saturating_sub(block.time) < MIN_AGE_SECONDS)
    }

    /// Returns the account whose nonce a message has in place of a blockhash, if the account has it in a slot.
    fn nonce(&self, message: &VersionedMessage, slot: u64) -> Option<Address> {
        let key = nonce::account_of(message)?;
        self.account(&key, slot).filter(|account| nonce::is_stored(account, message)).map(|_| key)
    }

    /// Returns whether a message can be in the block after a slot.
    fn is_current(&self, message: &VersionedMessage, slot: u64) -> bool {
        self.find_blockhash(message.recent_blockhash(), slot).is_some() || self.nonce(message, slot).is_some()
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn is_pending(&self, signature: &Signature) -> bool {
        self.pending.iter().any(|waiting| id(waiting) == *signature)
    }

    pub(super) fn record(&self, signature: &Signature) -> Option<&Record> {
        self.records.get(self.places.get(signature)?.checked_sub(self.pruned)?)
    }

    /// Returns the stored transactions, oldest first.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter()
    }

    /// Returns how many transactions have ever run.
    fn count(&self) -> usize {
        self.pruned.saturating_add(self.records.len())
    }

    fn current(&self, key: &Address) -> Option<AccountSharedData> {
        self.svm.accounts_db().get_account(key).filter(|account| account.lamports() > 0)
    }

    /// Returns an account as it was in a slot.
    pub(super) fn account(&self, key: &Address, slot: u64) -> Option<AccountSharedData> {
        if *key == CLOCK {
            let mut account = self.current(key)?;
            account.set_data_from_slice(&wincode::serialize(&self.clock_of(slot)).ok()?);
            return Some(account);
        }
        if *key == RECENT_BLOCKHASHES {
            let data = self.recent_blockhashes(slot);
            return Some(solana_account::Account { lamports: 1, data, owner: SYSVARS, executable: false, rent_epoch: u64::MAX }.into());
        }
        let before = self.undo.iter().filter(|(block, _)| *block > slot).find_map(|(_, before)| before.get(key));
        before.map_or_else(|| self.current(key), Clone::clone)
    }

    /// Sets an account in all slots.
    pub(super) fn put(&mut self, key: Address, account: AccountSharedData) -> Result<(), String> {
        self.undo.iter_mut().for_each(|(_, before)| {
            before.remove(&key);
        });
        self.svm.set_account(key, account.into()).map_err(|error| error.to_string())
    }

    /// Returns the data of the recent blockhashes account: the number of entries, then each blockhash with the
    /// signature fee, newest first.
    fn recent_blockhashes(&self, slot: u64) -> Vec<u8> {
        let hashes =
            self.blocks.iter().rev().filter(|block| block.slot <= slot).take_while(|block| slot.saturating_sub(block.slot) < MAX_AGE);
        let entries: Vec<_> = hashes.map(|block| [&block.hash.to_bytes()[..], &SIGNATURE_FEE.to_le_bytes()].concat()).collect();
        let count = u64::try_from(entries.len()).unwrap_or_default();
        [count.to_le_bytes().to_vec(), entries.concat()].concat()
    }

    fn clock_of(&self, slot: u64) -> solana_clock::Clock {
        let time = self.block(slot).map_or_else(|| self.clock.seconds(), |block| block.time);
        let epoch = slot / EPOCH;
        let unix_timestamp = i64::try_from(time).unwrap_or(i64::MAX);
        // Computes when the epoch began, assuming the nominal speed.
        let since = i64::try_from((slot % EPOCH).saturating_mul(SLOT_MILLIS) / 1_000).unwrap_or_default();
        let epoch_start_timestamp = unix_timestamp.saturating_sub(since);
        solana_clock::Clock { slot, epoch_start_timestamp, epoch, leader_schedule_epoch: epoch.saturating_add(1), unix_timestamp }
    }

    fn set_clock(&mut self, slot: u64) {
        let clock = self.clock_of(slot);
        self.svm.set_sysvar(&clock);
    }

    /// Adds empty blocks. Their times are spread over the period since the last block.
    fn extend(&mut self, count: u64) {
        let Some(last) = self.blocks.back().copied() else { return };
        let passed = self.clock.seconds().saturating_sub(last.time);
        if count > LATEST {
            // The stored blocks must have consecutive slots.
            self.blocks.clear();
        }
        for number in count.saturating_sub(LATEST)..count {
            let number = number.saturating_add(1);
            let slot = last.slot.saturating_add(number);
            let share = u128::from(passed).saturating_mul(number.into()).checked_div(count.into()).unwrap_or_default();
            let time = last.time.saturating_add(u64::try_from(share).unwrap_or_default());
            self.blocks.push_back(Block { slot, time, hash: self.blockhash(slot) });
        }
        let excess = self.blocks.len().saturating_sub(BLOCKS);
        self.blocks.drain(..excess);
    }

    /// Makes blocks. The pending transactions run in the first. Returns how many transactions ran.
    pub(super) fn mine(&mut self, count: u64) -> usize {
        if count == 0 {
            return 0;
        }
        let (ran, waiting) = (self.count(), std::mem::take(&mut self.pending));
        self.extend(1);
        self.set_clock(self.tip());
        if !waiting.is_empty() {
            self.undo.push_back((self.tip(), Before::new()));
            waiting.into_iter().for_each(|transaction| self.run(transaction));
        }
        if count >= MAX_AGE {
            // So many blocks at once represent time that has passed, so older blockhashes have expired.
            self.blocks.drain(..self.blocks.len().saturating_sub(1));
        }
        if count > 1 {
            self.extend(count.saturating_sub(1));
            self.set_clock(self.tip());
        }
        let root = self.slot(Commitment::Finalized);
        self.undo.retain(|(slot, _)| *slot > root);
        self.count().saturating_sub(ran)
    }

    fn run(&mut self, transaction: VersionedTransaction) {
        let signature = id(&transaction);
        let (message, tip) = (&transaction.message, self.tip());
        // A transaction before it may have used its nonce.
        let is_late = nonce::account_of(message).is_some() && !self.is_current(message, tip);
        if self.places.contains_key(&signature) || is_late {
            return;
        }
        let nonce = self.nonce(message, tip);
        let keys = transaction.message.static_account_keys().to_vec();
        let before: Vec<_> = keys.iter().map(|key| self.current(key)).collect();
        let tokens = self.tokens(&keys);
        let (meta, error) = match self.svm.send_transaction(transaction.clone()) {
            Ok(meta) => (meta, None),
            Err(failed) => (failed.meta, Some(failed.err)),
        };
        // A transaction that pays no fee is not in any block.
        if meta.signature != signature {
            return;
        }
        // Of a transaction that fails, only the fee and the nonce are used.
        if let Some((key, mut account)) = nonce.filter(|_| error.is_some()).and_then(|key| Some((key, self.current(&key)?))) {
            nonce::advance(&mut account);
            let _ = self.svm.set_account(key, account.into());
        }
        let after: Vec<_> = keys.iter().map(|key| self.current(key)).collect();
        let lamports = [&before, &after].map(|accounts| accounts.iter().map(lamports_of).collect());
        if let Some((_, undo)) = self.undo.back_mut() {
            let changed = keys.iter().zip(before).zip(&after).filter(|((_, before), after)| before != *after);
            changed.for_each(|((key, before), _)| {
                undo.entry(*key).or_insert(before);
            });
        }
        let (slot, time) = self.blocks.back().map_or((FIRST, 0), |block| (block.slot, block.time));
        let tokens = [tokens, self.tokens(&keys)];
        self.places.insert(signature, self.count());
        self.records.push_back(Record { slot, time, transaction, error, meta, lamports, tokens });
        while self.records.len() > RECORDS {
            if let Some(oldest) = self.records.pop_front() {
                self.places.remove(&oldest.signature());
                self.pruned = self.pruned.saturating_add(1);
            }
        }
    }

    /// Returns the token balances of the token accounts among these accounts.
    fn tokens(&self, keys: &[Address]) -> Vec<Value> {
        let one = |(index, key): (usize, &Address)| {
            let account = self.current(key).filter(|account| *account.owner() == TOKEN)?;
            let token = token_account(account.data())?;
            let decimals = self.decimals(&token.mint)?;
            Some(json!({
                "accountIndex": index, "mint": token.mint.to_string(), "owner": token.owner.to_string(), "programId": TOKEN.to_string(),
                "uiTokenAmount": ui_amount(token.amount, decimals),
            }))
        };
        keys.iter().enumerate().filter_map(one).collect()
    }

    pub(super) fn decimals(&self, mint: &Address) -> Option<u8> {
        self.current(mint).filter(|account| *account.owner() == TOKEN)?.data().get(44).copied()
    }

    /// Runs a function on the state of a slot, which must not be older than the newest final one.
    fn on<R>(&mut self, slot: u64, act: impl FnOnce(&LiteSVM) -> R) -> R {
        let mut older = Before::new();
        for (_, before) in self.undo.iter().filter(|(block, _)| *block > slot) {
            before.iter().for_each(|(key, account)| {
                older.entry(*key).or_insert_with(|| account.clone());
            });
        }
        let newest: Before = older.keys().map(|key| (*key, self.current(key))).collect();
        self.swap(older);
        self.set_clock(slot);
        let outcome = act(&self.svm);
        self.swap(newest);
        self.set_clock(self.tip());
        outcome
    }

    fn swap(&mut self, accounts: Before) {
        for (key, account) in accounts {
            // An account without lamports does not exist. Programs and system variables are never among these
            // accounts.
            let _ = self.svm.set_account(key, account.unwrap_or_default().into());
        }
    }

    /// Simulates a transaction on the state of a slot. Signatures are not verified.
    pub(super) fn simulate(&mut self, transaction: &VersionedTransaction, slot: u64) -> Simulated {
        let refused = |error| Simulated { slot, error: Some(error), meta: TransactionMetadata::default(), accounts: BTreeMap::new() };
        if !self.is_current(&transaction.message, slot) {
            return refused(TransactionError::BlockhashNotFound);
        }
        if self.places.contains_key(&id(transaction)) {
            return refused(TransactionError::AlreadyProcessed);
        }
        if let Some(index) = calls_loader(&transaction.message) {
            return refused(TransactionError::InstructionError(index, InstructionError::UnsupportedProgramId));
        }
        self.on(slot, |svm| match svm.simulate_transaction(transaction.clone()) {
            Ok(info) => Simulated { slot, error: None, meta: info.meta, accounts: info.post_accounts.into_iter().collect() },
            Err(failed) => Simulated { meta: failed.meta, ..refused(failed.err) },
        })
    }

    /// Queues a transaction for the next block. The caller has verified its signatures. A transaction that can never
    /// be in a block is dropped, as on a node.
    pub(super) fn submit(&mut self, transaction: VersionedTransaction) {
        let signature = id(&transaction);
        let is_known = self.places.contains_key(&signature) || self.is_pending(&signature);
        let is_current = self.is_current(&transaction.message, self.tip());
        if !is_known && is_current && calls_loader(&transaction.message).is_none() && self.pending.len() < MAX_PENDING {
            self.pending.push(transaction);
        }
    }
}

/// Returns the index of the first instruction that calls a loader.
fn calls_loader(message: &VersionedMessage) -> Option<u8> {
    let keys = message.static_account_keys();
    let calls = |program: u8| keys.get(usize::from(program)).is_some_and(|program| LOADERS.contains(program));
    let index = message.instructions().iter().position(|instruction| calls(instruction.program_id_index))?;
    u8::try_from(index).ok()
}

fn lamports_of(account: &Option<AccountSharedData>) -> u64 {
    account.as_ref().map_or(0, ReadableAccount::lamports)
}

/// Returns an amount of tokens in the nodes' format.
pub(super) fn ui_amount(amount: u64, decimals: u8) -> Value {
    let places = usize::from(decimals);
    let digits = format!("{amount:0>width$}", width = places.saturating_add(1));
    let (whole, part) = digits.split_at(digits.len().saturating_sub(places));
    let part = part.trim_end_matches('0');
    let text = if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") };
    let number = text.parse::<f64>().ok();
    json!({"amount": amount.to_string(), "decimals": decimals, "uiAmount": number, "uiAmountString": text})
}
