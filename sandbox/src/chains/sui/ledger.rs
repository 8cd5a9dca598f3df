//! Objects, transactions and checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use sui_rpc::proto::sui::rpc::v2::ExecutedTransaction;
use sui_rpc::proto::timestamp_ms_to_proto;
use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::hash::Hasher;
use sui_sdk_types::{
    Address, CheckpointSummary, Digest, GasCostSummary, Identifier, MoveStruct, Object, ObjectData, Owner, StructTag, TransactionEffects,
};

use super::funds;
use crate::chains::engine::{Change, Event};

/// The reference gas price, in MIST.
pub(super) const GAS_PRICE: u64 = 500;
/// The price of a byte of storage, in MIST.
const STORAGE_PRICE: u64 = 7_600;
/// The time at which mainnet started, in Unix milliseconds. An epoch lasts a day.
const GENESIS: u64 = 1_681_257_600_000;
pub(super) const DAY: u64 = 86_400_000;
/// The clock object.
pub(super) const CLOCK: Address = Address::from_static("0x6");

/// Returns the number of the epoch at a time, and when it began.
pub(super) const fn epoch(millis: u64) -> (u64, u64) {
    let epoch = millis.saturating_sub(GENESIS) / DAY;
    (epoch, GENESIS.saturating_add(epoch.saturating_mul(DAY)))
}

/// Returns a digest that no real chain has.
fn filler(what: &str) -> Digest {
    Hasher::digest(format!("countersign sandbox: {what}"))
}

pub(super) type Objects = BTreeMap<Address, Arc<Object>>;

/// Returns the balance of a coin of SUI, or `None` for any other object.
pub(super) fn balance(object: &Object) -> Option<u64> {
    let data = object.as_struct().filter(|data| *data.object_type() == StructTag::gas_coin())?;
    Some(u64::from_le_bytes(data.contents().get(32..)?.try_into().ok()?))
}

/// Returns an account's coins of SUI with their balances.
pub(super) fn coins(objects: &Objects, owner: Address) -> impl Iterator<Item = (&Arc<Object>, u64)> {
    let owned = objects.values().filter(move |object| *object.owner() == Owner::Address(owner));
    owned.filter_map(|object| Some((object, balance(object)?)))
}

/// Returns the type and contents of a coin of SUI.
pub(super) fn coin(id: Address, balance: u64) -> (StructTag, Vec<u8>) {
    (StructTag::gas_coin(), [id.as_ref(), &balance.to_le_bytes()[..]].concat())
}

/// Returns an object of a Move type, including its storage cost.
pub(super) fn object((kind, contents): (StructTag, Vec<u8>), version: u64, owner: Owner, by: Digest) -> Option<Arc<Object>> {
    let is_public = ["coin", "package"].contains(&kind.module().as_str());
    let data = ObjectData::Struct(MoveStruct::new(kind, is_public, version, contents)?);
    let size = Object::new(data.clone(), owner, by, 0).to_bcs().map_or(0, |bytes| bytes.len());
    let rebate = STORAGE_PRICE.saturating_mul(size.try_into().unwrap_or(u64::MAX));
    Some(Arc::new(Object::new(data, owner, by, rebate)))
}

/// An executed transaction.
#[derive(Debug)]
pub(super) struct Executed {
    pub(super) digest: Digest,
    pub(super) effects: TransactionEffects,
    /// The transaction as a node shows it. The checkpoint is absent until there is one.
    pub(super) message: ExecutedTransaction,
    /// The new contents of objects. `None` means deleted.
    pub(super) after: BTreeMap<Address, Option<Arc<Object>>>,
    pub(super) swaps: Vec<([u8; 32], Change)>,
}

/// The chain's state.
///
/// A transaction is executed on arrival, and its sender receives the effects. Readers see it from its checkpoint on.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The objects as of the newest checkpoint.
    pub(super) seen: Objects,
    /// The objects after the pending transactions.
    pub(super) live: Objects,
    pub(super) executed: BTreeMap<Digest, Executed>,
    pub(super) pending: Vec<Digest>,
    /// The newest checkpoint. Older ones are not kept.
    pub(super) newest: CheckpointSummary,
    coins: u64,
    pub(super) events: Vec<Event>,
}

impl Ledger {
    pub(super) fn new(height: u64, millis: u64) -> Self {
        let newest = summary(height, filler("the checkpoint before"), millis, &[]);
        let (seen, live, executed, pending, events) = Default::default();
        let mut ledger = Self { seen, live, executed, pending, newest, coins: 0, events };
        ledger.set_clock();
        ledger
    }

    /// Creates a coin. Nobody pays for it.
    pub(super) fn mint(&mut self, owner: Address, amount: u64) {
        self.coins = self.coins.saturating_add(1);
        let (digest, version) = (filler(&format!("coin {}", self.coins)), self.newest.sequence_number.saturating_add(self.coins));
        self.put(object(coin(Address::derive_id(digest, 0), amount), version, Owner::Address(owner), digest));
    }

    /// Credits an address balance, and moves all coins of the account there.
    pub(super) fn gather(&mut self, owner: Address, amount: u64) {
        let held: Vec<_> = coins(&self.live, owner).map(|(coin, balance)| (coin.object_id(), balance)).collect();
        let sum = held.iter().fold(amount, |sum, (_, balance)| sum.saturating_add(*balance));
        for (id, _) in held {
            self.seen.remove(&id);
            self.live.remove(&id);
        }
        let balance = funds::balance(&self.live, owner).saturating_add(sum);
        self.coins = self.coins.saturating_add(1);
        let (digest, version) = (filler(&format!("coin {}", self.coins)), self.newest.sequence_number.saturating_add(self.coins));
        self.put(funds::object(owner, balance, version, digest));
    }

    fn set_clock(&mut self) {
        let (height, millis) = (self.newest.sequence_number, self.newest.timestamp_ms);
        let kind = StructTag::new(Address::TWO, Identifier::from_static("clock"), Identifier::from_static("Clock"), vec![]);
        let contents = [CLOCK.as_ref(), &millis.to_le_bytes()[..]].concat();
        self.put(object((kind, contents), height, Owner::Shared(1), filler(&format!("clock {height}"))));
    }

    fn put(&mut self, object: Option<Arc<Object>>) {
        if let Some(object) = object {
            self.seen.insert(object.object_id(), Arc::clone(&object));
            self.live.insert(object.object_id(), object);
        }
    }

    /// Applies an executed transaction.
    pub(super) fn execute(&mut self, executed: Executed) {
        apply(&mut self.live, executed.after.clone());
        self.pending.push(executed.digest);
        self.executed.insert(executed.digest, executed);
    }

    /// Makes checkpoints. Those between the first and the last are skipped, because no client requests them.
    pub(super) fn mine(&mut self, count: u64, millis: u64) {
        if count == 0 {
            return;
        }
        let (height, millis) = (self.newest.sequence_number, millis.max(self.newest.timestamp_ms));
        let (first, last) = (height.saturating_add(1), height.saturating_add(count));
        let pending = std::mem::take(&mut self.pending);
        self.newest = summary(first, self.newest.digest(), millis, &pending);
        for digest in pending {
            let Some(executed) = self.executed.get_mut(&digest) else { continue };
            executed.message.set_checkpoint(first);
            executed.message.set_timestamp(timestamp_ms_to_proto(millis));
            apply(&mut self.seen, std::mem::take(&mut executed.after));
            self.events.extend(executed.swaps.iter().map(|(id, change)| {
                let (swap_id, transaction) = (hex::encode(id), digest.to_base58());
                Event { swap_id, transaction, height: first, change: change.clone() }
            }));
        }
        if last > first {
            self.newest = summary(last, self.newest.digest(), millis, &[]);
        }
        self.set_clock();
    }
}

fn apply(objects: &mut Objects, after: BTreeMap<Address, Option<Arc<Object>>>) {
    for (id, object) in after {
        match object {
            Some(object) => drop(objects.insert(id, object)),
            None => drop(objects.remove(&id)),
        }
    }
}

/// Returns a checkpoint of these transactions.
fn summary(sequence_number: u64, previous: Digest, timestamp_ms: u64, transactions: &[Digest]) -> CheckpointSummary {
    CheckpointSummary {
        epoch: epoch(timestamp_ms).0,
        sequence_number,
        network_total_transactions: sequence_number.saturating_mul(16),
        content_digest: filler(&format!("{transactions:?}")),
        previous_digest: Some(previous),
        epoch_rolling_gas_cost_summary: GasCostSummary::default(),
        timestamp_ms,
        checkpoint_commitments: vec![],
        end_of_epoch_data: None,
        version_specific_data: vec![],
    }
}
