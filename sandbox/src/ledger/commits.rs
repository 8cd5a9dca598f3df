//! One commit for everybody who waits: a disk takes a few hundred commits a second, whatever is in them.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use super::LedgerError;
use crate::order::Order;

/// An order to write.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) order: Order,
    /// What finds a new order again; `None` where the order is there already.
    pub(super) request: Option<String>,
}

#[derive(Debug, Default)]
struct Batch {
    /// The reason of a failure, once it is decided.
    outcome: OnceLock<Option<Arc<LedgerError>>>,
}

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<Entry>,
    batch: Arc<Batch>,
    is_writing: bool,
}

/// Everybody who has something to write.
#[derive(Debug, Default)]
pub(super) struct Commits {
    queue: Mutex<Queue>,
    written: Condvar,
}

impl Commits {
    /// Returns when the entries are on disk. `write` is called by one of those who wait, for all of them.
    pub(super) fn commit(&self, entries: Vec<Entry>, write: impl Fn(Vec<Entry>) -> Result<(), LedgerError>) -> Result<(), LedgerError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.entries.extend(entries);
        let mine = Arc::clone(&queue.batch);
        loop {
            if let Some(outcome) = mine.outcome.get() {
                return outcome.clone().map_or(Ok(()), |error| Err(LedgerError::Commit(error)));
            }
            if queue.is_writing {
                queue = self.written.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_writing = true;
            let batch = std::mem::take(&mut queue.batch);
            let entries = std::mem::take(&mut queue.entries);
            drop(queue);
            let outcome = write(entries).err().map(Arc::new);
            // Nobody else decides on a batch that has been taken.
            let _ = batch.outcome.set(outcome);
            queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.is_writing = false;
            self.written.notify_all();
        }
    }
}
