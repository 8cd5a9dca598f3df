//! Limits the requests to one endpoint: only a few run at a time, and calls that wait share the next request.
//!
//! Reading a thousand orders in the same second must not send three thousand requests, because public endpoints answer only a few dozen
//! per second. No request waits while the endpoint is free.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use crate::error::NodeError;

/// The maximum number of concurrent requests to an endpoint.
const MAX_CONCURRENT: usize = 4;
/// The maximum number of calls in a shared request. It is lowered when the endpoint refuses a request with so many.
const MAX_SHARED: usize = 100;

/// The requests to one endpoint.
pub(crate) struct Lane {
    state: Mutex<State>,
    max_shared: AtomicUsize,
}

#[derive(Default)]
struct State {
    under_way: usize,
    waiting: VecDeque<Waiter>,
}

/// A caller whose request waits.
pub(crate) struct Waiter {
    /// The calls as JSON objects without an id; empty for a request that cannot be shared.
    pub(crate) calls: Vec<serde_json::Value>,
    turn: oneshot::Sender<Turn>,
}

/// The message that ends a caller's wait.
enum Turn {
    /// The caller sends its request now, together with the calls of these waiters.
    Send(Vec<Waiter>),
    /// Another caller has sent the calls. This is the response.
    Answered(Shared),
    /// The caller must wait again.
    Again,
}

/// The response to a shared request.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) body: Result<Arc<Vec<u8>>, NodeError>,
    /// The id of this caller's first call.
    pub(crate) first: usize,
    /// The number of calls in the request.
    pub(crate) all: usize,
}

/// The outcome of waiting.
pub(crate) enum Admission<'l> {
    /// The caller may send its request, and must include the calls of these waiters. Dropping the permit admits the next request.
    Send(Permit<'l>, Vec<Waiter>),
    /// Another caller has sent the calls.
    Answered(Shared),
}

/// The right to have one request under way.
pub(crate) struct Permit<'l>(&'l Lane);

impl Default for Lane {
    fn default() -> Self {
        Self { state: Mutex::default(), max_shared: AtomicUsize::new(MAX_SHARED) }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lane")
    }
}

impl Lane {
    /// Waits until a request may be sent, or until another caller has sent its calls. `calls` is empty for a request that cannot be
    /// shared.
    pub(crate) async fn enter(&self, calls: &[serde_json::Value]) -> Admission<'_> {
        loop {
            let mut wait = {
                let mut state = self.lock();
                if state.under_way < MAX_CONCURRENT {
                    state.under_way = state.under_way.saturating_add(1);
                    return Admission::Send(Permit(self), Vec::new());
                }
                let (turn, wait) = oneshot::channel();
                state.waiting.push_back(Waiter { calls: calls.to_vec(), turn });
                Wait { lane: self, turn: wait }
            };
            match (&mut wait.turn).await {
                Ok(Turn::Send(others)) => return Admission::Send(Permit(self), others),
                Ok(Turn::Answered(shared)) => return Admission::Answered(shared),
                // The caller that was to send the request was cancelled.
                Ok(Turn::Again) | Err(oneshot::Canceled) => {}
            }
        }
    }

    /// Lowers the limit after the endpoint refused a request with so many calls.
    pub(crate) fn share_less(&self, calls: usize) {
        self.max_shared.fetch_min(calls / 2, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits the next request whose caller still waits.
    fn next(&self) {
        let mut state = self.lock();
        while let Some(first) = state.waiting.pop_front() {
            let mut others = Vec::new();
            let mut calls = first.calls.len();
            while let Some(next) = state.waiting.front() {
                let more = calls.saturating_add(next.calls.len());
                if first.calls.is_empty() || next.calls.is_empty() || more > self.max_shared.load(Ordering::Relaxed) {
                    break;
                }
                calls = more;
                others.extend(state.waiting.pop_front());
            }
            match first.turn.send(Turn::Send(others)) {
                Ok(()) => return,
                // The first caller no longer waits. The others return to the queue.
                Err(Turn::Send(others)) => others.into_iter().rev().for_each(|waiter| state.waiting.push_front(waiter)),
                Err(_) => {}
            }
        }
        state.under_way = state.under_way.saturating_sub(1);
    }
}

/// A wait for a turn. If the caller is cancelled just when its turn comes, dropping this passes the turn on.
struct Wait<'l> {
    lane: &'l Lane,
    turn: oneshot::Receiver<Turn>,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.turn.close();
        if let Ok(Some(Turn::Send(others))) = self.turn.try_recv() {
            {
                let mut state = self.lane.lock();
                others.into_iter().rev().for_each(|waiter| state.waiting.push_front(waiter));
            }
            self.lane.next();
        }
    }
}

impl Waiter {
    /// Hands over the response to the shared request. A caller that no longer waits does not need it.
    pub(crate) fn answer(self, shared: Shared) {
        let _ = self.turn.send(Turn::Answered(shared));
    }

    /// Makes the caller wait again.
    pub(crate) fn again(self) {
        let _ = self.turn.send(Turn::Again);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.next();
    }
}
