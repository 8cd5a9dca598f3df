//! Orders in memory: for tests, and for swaps that need not survive the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign::U256;
use zeroize::Zeroizing;

use super::journal::Entry;
use super::kept::{OrderState, OrderStore, SignedUnder, StoreError};
use crate::request::OrderId;
use crate::secret::Secret;
use crate::stored::CreatedOrder;

/// A store in memory: for tests, and for swaps that need not survive the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<BTreeMap<String, Kept>>>);

#[derive(Debug)]
struct Kept {
    swap: CreatedOrder,
    record: Option<Vec<u8>>,
    pins: Option<Arc<SignedUnder>>,
    secret: Option<Zeroizing<String>>,
    index: Option<u32>,
    branch: u16,
    at_least: Option<U256>,
    journal: Vec<Entry>,
    locked: bool,
}

/// The lock on an order of a [`MemoryStore`], released on drop.
#[derive(Debug)]
pub struct MemoryGuard {
    store: MemoryStore,
    id: String,
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        if let Some(kept) = self.store.kept().get_mut(&self.id) {
            kept.locked = false;
        }
    }
}

impl MemoryStore {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(id: &OrderId) -> String {
    id.as_str().to_ascii_lowercase()
}

impl OrderStore for MemoryStore {
    type Guard = MemoryGuard;

    async fn create(&self, order: &OrderState) -> Result<(), StoreError> {
        let mut orders = self.kept();
        let (id, hash) = (key(order.swap.id()), order.swap.request().secret_hash);
        if orders.contains_key(&id) {
            return Err(StoreError::Exists(id));
        }
        if let Some(other) = orders.values().find(|kept| hash.is_some() && kept.swap.request().secret_hash == hash) {
            return Err(StoreError::SecretUsed(other.swap.id().clone()));
        }
        let kept = Kept {
            swap: order.swap.clone(),
            record: None,
            pins: None,
            secret: order.secret.as_ref().map(Secret::to_hex),
            index: order.index,
            branch: order.branch,
            at_least: order.at_least,
            journal: Vec::new(),
            locked: false,
        };
        orders.insert(id, kept);
        Ok(())
    }

    async fn lock(&self, id: &OrderId) -> Result<MemoryGuard, StoreError> {
        let id = key(id);
        match self.kept().get_mut(&id) {
            None => Err(StoreError::Unknown(id)),
            Some(kept) if kept.locked => Err(StoreError::Busy),
            Some(kept) => {
                kept.locked = true;
                Ok(MemoryGuard { store: self.clone(), id })
            }
        }
    }

    async fn load(&self, id: &OrderId) -> Result<OrderState, StoreError> {
        let id = key(id);
        let orders = self.kept();
        let kept = orders.get(&id).ok_or(StoreError::Unknown(id))?;
        let secret = kept.secret.as_ref().map(|secret| Secret::parse(secret)).transpose();
        let secret = secret.map_err(|error| StoreError::Failed(error.to_string()))?;
        let (record, pins, journal) = (kept.record.clone(), kept.pins.clone(), kept.journal.clone());
        let (index, branch, at_least) = (kept.index, kept.branch, kept.at_least);
        Ok(OrderState { swap: kept.swap.clone(), record, pins, secret, index, branch, at_least, journal })
    }

    async fn keep_record(&self, guard: &MemoryGuard, body: &[u8]) -> Result<(), StoreError> {
        let mut orders = self.kept();
        let kept = orders.get_mut(&guard.id).ok_or_else(|| StoreError::Unknown(guard.id.clone()))?;
        match &kept.record {
            Some(record) if record != body => Err(StoreError::Exists(guard.id.clone())),
            _ => {
                kept.record = Some(body.to_owned());
                Ok(())
            }
        }
    }

    async fn keep_pins(&self, guard: &MemoryGuard, pins: &SignedUnder) -> Result<(), StoreError> {
        let mut orders = self.kept();
        let kept = orders.get_mut(&guard.id).ok_or_else(|| StoreError::Unknown(guard.id.clone()))?;
        kept.pins = Some(Arc::new(pins.clone()));
        Ok(())
    }

    async fn append(&self, guard: &MemoryGuard, entry: &Entry) -> Result<(), StoreError> {
        let mut orders = self.kept();
        let kept = orders.get_mut(&guard.id).ok_or_else(|| StoreError::Unknown(guard.id.clone()))?;
        kept.journal.push(entry.clone());
        Ok(())
    }

    async fn replace_journal(&self, guard: &MemoryGuard, entries: &[Entry]) -> Result<(), StoreError> {
        let mut orders = self.kept();
        let kept = orders.get_mut(&guard.id).ok_or_else(|| StoreError::Unknown(guard.id.clone()))?;
        kept.journal = entries.to_vec();
        Ok(())
    }

    async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        self.kept().values().map(|kept| Ok(kept.swap.id().clone())).collect()
    }
}
