//! Objects, transactions and checkpoints.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sui_sdk_types::hash::Hasher;
use sui_sdk_types::{
    Address, BalanceChange, CheckpointContents, CheckpointSummary, CheckpointTransactionInfo, Digest, GasCostSummary, Identifier,
    MoveStruct, Object, ObjectData, Owner, SignedTransaction, StructTag, TransactionEffects, TransactionEvents, TypeTag,
};

use super::htlc;
use crate::chains::{Change, Event};

/// The reference price of gas, in MIST.
pub(super) const GAS_PRICE: u64 = 500;
/// How many checkpoints are kept.
const CHECKPOINTS: u64 = 1_000;
/// How many transactions are kept.
const TRANSACTIONS: usize = 10_000;
/// How many of them are looked at when one has to go.
const MAX_STEPS: usize = 8;
/// The day on which the main network began, in Unix milliseconds. An epoch takes a day.
const GENESIS: u64 = 1_681_257_600_000;
const DAY: u64 = 86_400_000;

/// Returns the epoch at a time, and when it began.
pub(super) const fn epoch(millis: u64) -> (u64, u64) {
    let epoch = millis.saturating_sub(GENESIS) / DAY;
    (epoch, GENESIS.saturating_add(epoch.saturating_mul(DAY)))
}

/// An id or digest that only the sandbox has.
pub(super) fn filler(what: &str) -> Digest {
    Hasher::digest(format!("countersign sandbox: {what}"))
}

/// A coin's type and balance; `None` for another object.
pub(super) fn coin(object: &Object) -> Option<(&TypeTag, u64)> {
    let data = object.as_struct()?;
    let balance = data.contents().get(32..)?.try_into().ok()?;
    Some((data.object_type().is_coin()?, u64::from_le_bytes(balance)))
}

/// Objects by id, and by owner.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    objects: BTreeMap<Address, Arc<Object>>,
    owned: BTreeMap<Address, BTreeSet<Address>>,
}

impl View {
    pub(super) fn get(&self, id: &Address) -> Option<&Arc<Object>> {
        self.objects.get(id)
    }

    pub(super) fn put(&mut self, object: Arc<Object>) {
        let id = object.object_id();
        self.remove(&id);
        if let Owner::Address(owner) | Owner::Object(owner) = object.owner() {
            self.owned.entry(*owner).or_default().insert(id);
        }
        self.objects.insert(id, object);
    }

    pub(super) fn remove(&mut self, id: &Address) {
        let Some(object) = self.objects.remove(id) else { return };
        if let Owner::Address(owner) | Owner::Object(owner) = object.owner()
            && let Some(owned) = self.owned.get_mut(owner)
        {
            owned.remove(id);
            if owned.is_empty() {
                self.owned.remove(owner);
            }
        }
    }

    /// The objects of an account, or the dynamic fields of an object, whose ids come after another.
    pub(super) fn owned(&self, owner: Owner, after: Option<Address>) -> impl Iterator<Item = &Arc<Object>> {
        let of = if let Owner::Address(of) | Owner::Object(of) = owner { of } else { Address::ZERO };
        let ids = self.owned.get(&of).into_iter().flatten().filter(move |id| after.is_none_or(|after| **id > after));
        ids.filter_map(|id| self.objects.get(id)).filter(move |object| *object.owner() == owner)
    }

    /// The coins of an account, with their balances.
    pub(super) fn coins<'v>(&'v self, owner: Address, of: &'v TypeTag) -> impl Iterator<Item = (&'v Arc<Object>, u64)> {
        self.owned(Owner::Address(owner), None).filter_map(move |object| {
            let (coin_type, balance) = coin(object)?;
            (coin_type == of).then_some((object, balance))
        })
    }
}

/// A transaction that was executed.
#[derive(Debug)]
pub(super) struct Executed {
    pub(super) signed: SignedTransaction,
    pub(super) digest: Digest,
    pub(super) effects: TransactionEffects,
    pub(super) events: TransactionEvents,
    pub(super) balances: Vec<BalanceChange>,
    /// The types of the objects that were changed.
    pub(super) types: BTreeMap<Address, String>,
    pub(super) written: Vec<Arc<Object>>,
    pub(super) removed: Vec<Address>,
    pub(super) swaps: Vec<([u8; 32], Change)>,
    /// Its checkpoint and the time of that.
    pub(super) checkpoint: Option<(u64, u64)>,
}

/// A checkpoint.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) summary: CheckpointSummary,
    pub(super) digest: Digest,
    pub(super) transactions: Vec<Digest>,
}

/// The chain's state.
///
/// A transaction is executed when it comes in, and its sender gets the effects; readers see it from its checkpoint on.
#[derive(Debug)]
pub(super) struct Ledger {
    /// What the newest checkpoint shows.
    pub(super) seen: View,
    /// The same after the transactions that wait for a checkpoint.
    pub(super) live: View,
    pub(super) executed: BTreeMap<Digest, Executed>,
    order: VecDeque<Digest>,
    pub(super) pending: Vec<Digest>,
    checkpoints: VecDeque<Checkpoint>,
    coins: u64,
    total: u64,
    pub(super) events: Vec<Event>,
}

impl Ledger {
    pub(super) fn new(height: u64, millis: u64) -> Self {
        let mut ledger = Self {
            seen: View::default(),
            live: View::default(),
            executed: BTreeMap::new(),
            order: VecDeque::new(),
            pending: Vec::new(),
            checkpoints: VecDeque::new(),
            coins: 0,
            total: height.saturating_mul(16),
            events: Vec::new(),
        };
        let first = ledger.checkpoint(height, Some(filler("the checkpoint before")), millis, &[]);
        ledger.checkpoints.push_back(first);
        ledger.set_clock(height, millis);
        ledger
    }

    /// Creates a coin from nowhere.
    pub(super) fn mint(&mut self, owner: Address, coin_type: TypeTag, amount: u64) {
        self.coins = self.coins.saturating_add(1);
        let digest = filler(&format!("coin {}", self.coins));
        let contents = [Address::derive_id(digest, 0).as_ref(), &amount.to_le_bytes()[..]].concat();
        let version = self.newest().0.saturating_add(self.coins);
        self.system(StructTag::coin(coin_type), true, version, contents, Owner::Address(owner), digest);
    }

    fn system(&mut self, kind: StructTag, public: bool, version: u64, contents: Vec<u8>, owner: Owner, digest: Digest) {
        let data = MoveStruct::new(kind, public, version, contents).map(ObjectData::Struct);
        if let Some(object) = data.map(|data| Arc::new(Object::new(data, owner, digest, 0))) {
            self.seen.put(Arc::clone(&object));
            self.live.put(object);
        }
    }

    fn set_clock(&mut self, height: u64, millis: u64) {
        let name = (Identifier::from_static("clock"), Identifier::from_static("Clock"));
        let kind = StructTag::new(Address::TWO, name.0, name.1, vec![]);
        let contents = [CLOCK.as_ref(), &millis.to_le_bytes()[..]].concat();
        self.system(kind, false, height, contents, Owner::Shared(1), filler(&format!("clock {height}")));
    }

    /// Takes in what was executed.
    pub(super) fn execute(&mut self, executed: Executed) {
        for id in &executed.removed {
            self.live.remove(id);
        }
        for object in &executed.written {
            self.live.put(Arc::clone(object));
        }
        self.pending.push(executed.digest);
        self.order.push_back(executed.digest);
        self.executed.insert(executed.digest, executed);
        if self.order.len() > TRANSACTIONS.max(self.pending.len()) {
            self.prune();
        }
    }

    /// Drops the oldest transaction, and the orders that it ended: without it, nobody can read how they ended. A real node keeps them,
    /// but swaps must not fill the memory. What funded an open order stays, and so does what published the package.
    fn prune(&mut self) {
        for _ in 0..MAX_STEPS {
            let Some(digest) = self.order.pop_front() else { return };
            let Some(executed) = self.executed.get(&digest) else { continue };
            let changed = |id: &&Address| self.live.get(id).is_some_and(|object| object.previous_transaction() == digest);
            let orders = executed.types.keys().filter(changed).filter_map(|id| Some((*id, htlc::has_ended(self.live.get(id)?)?)));
            let orders: Vec<(Address, bool)> = orders.collect();
            if executed.signed.signatures.is_empty() || orders.iter().any(|(_, has_ended)| !has_ended) {
                self.order.push_back(digest);
                continue;
            }
            for (id, _) in orders {
                self.live.remove(&id);
                self.seen.remove(&id);
            }
            self.executed.remove(&digest);
            return;
        }
    }

    /// Makes checkpoints. If there are more than are kept, those between are never made: a node would have pruned them.
    pub(super) fn mine(&mut self, count: u64, millis: u64) {
        if count == 0 {
            return;
        }
        let (height, previous, time) = self.newest();
        let (height, millis) = (height.saturating_add(1), millis.max(time));
        let transactions = std::mem::take(&mut self.pending);
        let mut next = self.checkpoint(height, Some(previous), millis, &transactions);
        for digest in transactions {
            let Some(executed) = self.executed.get_mut(&digest) else { continue };
            executed.checkpoint = Some((height, millis));
            for id in std::mem::take(&mut executed.removed) {
                self.seen.remove(&id);
            }
            for object in std::mem::take(&mut executed.written) {
                self.seen.put(object);
            }
            let transaction = digest.to_base58();
            self.events.extend(executed.swaps.iter().map(|(id, change)| {
                let (swap_id, transaction) = (hex::encode(id), transaction.clone());
                Event { swap_id, transaction, height, change: change.clone() }
            }));
        }
        let last = height.saturating_add(count.saturating_sub(1));
        for height in height.saturating_add(1).max(last.saturating_sub(CHECKPOINTS))..=last {
            let previous = next.digest;
            self.checkpoints.push_back(next);
            next = self.checkpoint(height, Some(previous), millis, &[]);
        }
        self.checkpoints.push_back(next);
        let kept = usize::try_from(CHECKPOINTS).unwrap_or(usize::MAX);
        self.checkpoints.drain(..self.checkpoints.len().saturating_sub(kept));
        self.set_clock(last, millis);
    }

    fn checkpoint(&mut self, height: u64, previous_digest: Option<Digest>, timestamp_ms: u64, transactions: &[Digest]) -> Checkpoint {
        self.total = self.total.saturating_add(1).saturating_add(u64::try_from(transactions.len()).unwrap_or_default());
        let executed = transactions.iter().filter_map(|digest| self.executed.get(digest));
        let info = |one: &Executed| CheckpointTransactionInfo::new(one.digest, one.effects.digest(), one.signed.signatures.clone());
        let contents = CheckpointContents::new_v1(executed.map(info).collect());
        let summary = CheckpointSummary {
            epoch: epoch(timestamp_ms).0,
            sequence_number: height,
            network_total_transactions: self.total,
            content_digest: contents.digest(),
            previous_digest,
            epoch_rolling_gas_cost_summary: GasCostSummary::default(),
            timestamp_ms,
            checkpoint_commitments: vec![],
            end_of_epoch_data: None,
            version_specific_data: vec![],
        };
        Checkpoint { digest: summary.digest(), summary, transactions: transactions.to_vec() }
    }

    /// Height, digest and time of the newest checkpoint.
    pub(super) fn newest(&self) -> (u64, Digest, u64) {
        let newest = self.checkpoints.back();
        newest.map_or((0, Digest::ZERO, 0), |newest| (newest.summary.sequence_number, newest.digest, newest.summary.timestamp_ms))
    }

    /// The lowest checkpoint that is kept.
    pub(super) fn lowest(&self) -> u64 {
        self.checkpoints.front().map_or(0, |first| first.summary.sequence_number)
    }

    pub(super) fn find_checkpoint(&self, is_it: impl Fn(&Checkpoint) -> bool) -> Option<&Checkpoint> {
        self.checkpoints.iter().rev().find(|checkpoint| is_it(checkpoint))
    }
}

/// The clock object.
pub(super) const CLOCK: Address = Address::from_static("0x6");
