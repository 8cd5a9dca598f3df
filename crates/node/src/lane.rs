//! Requests to one endpoint: a few at a time, and calls that wait share the next one.
//!
//! A thousand orders that are looked at in the same second must not be three thousand requests: public endpoints answer a few dozen
//! a second. Nothing waits while an endpoint is free.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use crate::error::NodeError;

/// Most requests to an endpoint at the same time.
const AT_ONCE: usize = 4;
/// Most calls in a shared request, until the endpoint refuses one with so many.
const MOST_SHARED: usize = 100;

/// The requests to one endpoint.
pub(crate) struct Lane {
    state: Mutex<State>,
    most_shared: AtomicUsize,
}

#[derive(Default)]
struct State {
    under_way: usize,
    waiting: VecDeque<Waiter>,
}

/// Somebody whose request waits.
pub(crate) struct Waiter {
    /// The calls as JSON objects without an id; empty for a request that cannot be shared.
    pub(crate) calls: Vec<serde_json::Value>,
    turn: oneshot::Sender<Turn>,
}

/// What a waiting request is told.
enum Turn {
    /// To send itself now, together with the calls of these others.
    Send(Vec<Waiter>),
    /// That its calls were sent with another request, whose response this is.
    Answered(Shared),
    /// To wait once more.
    Again,
}

/// The response to a request that was shared.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) body: Result<Arc<Vec<u8>>, NodeError>,
    /// The id of the first call.
    pub(crate) first: usize,
    /// How many calls the request had.
    pub(crate) all: usize,
}

/// What a request may do after it has waited.
pub(crate) enum Admission<'l> {
    /// It is sent, with the calls of others. Dropping the permit lets the next request go.
    Send(Permit<'l>, Vec<Waiter>),
    /// Its calls were sent by somebody else.
    Answered(Shared),
}

/// One of the requests that are under way.
pub(crate) struct Permit<'l>(&'l Lane);

impl Default for Lane {
    fn default() -> Self {
        Self { state: Mutex::default(), most_shared: AtomicUsize::new(MOST_SHARED) }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lane")
    }
}

impl Lane {
    /// Waits until a request may be sent, or until its calls were sent with another one. `calls` is empty for a request that cannot be
    /// shared.
    pub(crate) async fn enter(&self, calls: &[serde_json::Value]) -> Admission<'_> {
        loop {
            let mut wait = {
                let mut state = self.lock();
                if state.under_way < AT_ONCE {
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
                // Whoever was to send the request gave up.
                Ok(Turn::Again) | Err(oneshot::Canceled) => {}
            }
        }
    }

    /// Notes that the endpoint did not take a request with so many calls.
    pub(crate) fn share_less(&self, calls: usize) {
        self.most_shared.fetch_min(calls / 2, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next request go that somebody still waits for.
    fn next(&self) {
        let mut state = self.lock();
        while let Some(first) = state.waiting.pop_front() {
            let mut others = Vec::new();
            let mut calls = first.calls.len();
            while let Some(next) = state.waiting.front() {
                let more = calls.saturating_add(next.calls.len());
                if first.calls.is_empty() || next.calls.is_empty() || more > self.most_shared.load(Ordering::Relaxed) {
                    break;
                }
                calls = more;
                others.extend(state.waiting.pop_front());
            }
            match first.turn.send(Turn::Send(others)) {
                Ok(()) => return,
                // Nobody waits for the first any more. The others take their places again.
                Err(Turn::Send(others)) => others.into_iter().rev().for_each(|waiter| state.waiting.push_front(waiter)),
                Err(_) => {}
            }
        }
        state.under_way = state.under_way.saturating_sub(1);
    }
}

/// Somebody who waits for its turn. Who gives up just when the turn comes passes it on.
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
    /// Hands over the response to the shared request. Whoever does not wait any more needs none.
    pub(crate) fn answer(self, shared: Shared) {
        let _ = self.turn.send(Turn::Answered(shared));
    }

    /// Makes it wait once more.
    pub(crate) fn again(self) {
        let _ = self.turn.send(Turn::Again);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.next();
    }
}
