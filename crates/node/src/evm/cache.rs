//! Caches what an endpoint has reported: its newest blocks, for all callers that were waiting for them, and each order until those blocks
//! change.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use countersign::evm::alloy_primitives::B256;
use futures_util::lock::Mutex as AsyncMutex;

use super::htlc::{Blocks, OrderQuery, View};

/// The maximum number of cached orders. The cache is cleared when it is full.
const MAX_ORDERS: usize = 4_096;

/// The cache of one endpoint.
#[derive(Default)]
pub(crate) struct Cache {
    /// The number of reads of the newest blocks that have begun.
    pub(super) readings: AtomicU64,
    /// The newest blocks, and the number of the read that they come from. The lock is held during a read, so that many orders that are
    /// read together need only one request for the blocks.
    pub(super) blocks: AsyncMutex<Option<(u64, Blocks)>>,
    views: Mutex<HashMap<OrderQuery, (Marks, View)>>,
}

/// The hashes of the newest, the safe and the final block.
pub(super) type Marks = [Option<B256>; 3];

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache")
    }
}

impl Cache {
    /// Returns the cached view of an order, unless the newest blocks have changed since it was read.
    pub(super) fn view(&self, query: &OrderQuery, marks: &Marks) -> Option<View> {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.get(query).filter(|(at, _)| at == marks).map(|(_, view)| view.clone())
    }

    pub(super) fn keep(&self, query: &OrderQuery, marks: Marks, view: &View) {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= MAX_ORDERS {
            views.clear();
        }
        views.insert(query.clone(), (marks, view.clone()));
    }
}
