//! What an endpoint said a moment ago: its newest blocks for all who asked before, and each order for as long as these are the same.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use countersign::evm::alloy_primitives::B256;
use futures_util::lock::Mutex as AsyncMutex;

use super::htlc::{Blocks, Question, View};

/// Most orders that are kept: all of them are dropped when there are more.
const MOST: usize = 4_096;

/// What one endpoint said.
#[derive(Default)]
pub(crate) struct Kept {
    /// How many readings of the newest blocks have begun.
    pub(super) readings: AtomicU64,
    /// The newest blocks, and which reading they are from. Who reads them holds the lock, so that many orders that are looked at
    /// together ask once.
    pub(super) blocks: AsyncMutex<Option<(u64, Blocks)>>,
    views: Mutex<HashMap<Question, (Marks, View)>>,
}

/// The newest, the safe and the final block.
pub(super) type Marks = [Option<B256>; 3];

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Kept {
    /// Returns what was read of an order, if the chain has not moved since.
    pub(super) fn view(&self, question: &Question, marks: &Marks) -> Option<View> {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.get(question).filter(|(at, _)| at == marks).map(|(_, view)| view.clone())
    }

    pub(super) fn keep(&self, question: &Question, marks: Marks, view: &View) {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= MOST {
            views.clear();
        }
        views.insert(question.clone(), (marks, view.clone()));
    }
}
