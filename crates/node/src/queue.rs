//! Limits the requests to one endpoint: only a few run at a time, and those that wait share the next one.
//!
//! Reading a thousand orders in the same second must not send three thousand requests, because public endpoints answer only a few dozen
//! per second. Equal requests that wait are sent once. No request waits while the endpoint is free.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_core::reader::{Answer, Request};
use futures_channel::oneshot;

/// The maximum number of concurrent requests to an endpoint.
const MAX_CONCURRENT: usize = 4;
/// The maximum number of calls in one batch. It is lowered when the endpoint refuses a batch with so many.
const MAX_BATCH: usize = 100;

/// The requests to one endpoint.
pub(crate) struct RequestQueue {
    state: Mutex<State>,
    max_batch: AtomicUsize,
}

#[derive(Default)]
struct State {
    under_way: usize,
    waiting: VecDeque<Waiter>,
}

/// A caller whose requests wait.
pub(crate) struct Waiter {
    /// JSON-RPC calls, or one other request, or nothing: a request that cannot be shared.
    requests: Vec<Request>,
    turn: oneshot::Sender<Handoff>,
}

/// The message that ends a caller's wait.
enum Handoff {
    /// The caller sends its requests now, together with those of these waiters.
    Send(Vec<Waiter>),
    /// Another caller has sent the requests. These are the answers.
    Answered(Vec<Answer>),
    /// Another caller has sent the requests, and the endpoint refused so many at once.
    Refused,
}

/// The outcome of waiting.
pub(crate) enum Admission<'q> {
    /// The caller may send its requests, and must include those of these waiters. Dropping the permit admits the next request.
    Send(Slot<'q>, Vec<Waiter>),
    /// Another caller has sent the requests. These are the answers.
    Answered(Vec<Answer>),
    /// Another caller has sent the requests, and the endpoint refused so many at once.
    Refused,
}

/// The right to have one request under way.
pub(crate) struct Slot<'q>(&'q RequestQueue);

/// Different requests, which are sent together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<Request>,
    places: HashMap<Request, usize>,
}

impl Batch {
    /// Adds requests, and returns their places among those that are sent.
    pub(crate) fn add(&mut self, requests: &[Request]) -> Vec<usize> {
        let Self { requests: all, places } = self;
        let place = |request: &Request| match places.get(request) {
            Some(place) => *place,
            None => {
                places.insert(request.clone(), all.len());
                all.push(request.clone());
                all.len().saturating_sub(1)
            }
        };
        requests.iter().map(place).collect()
    }

    /// Returns whether other requests can be sent together with these: JSON-RPC calls in one batch, or the same request.
    fn takes(&self, requests: &[Request], max: usize) -> bool {
        let is_call = |request: &Request| matches!(request, Request::JsonRpc { .. });
        let added = requests.iter().filter(|request| !self.places.contains_key(request)).count();
        let are_calls = || self.requests.iter().chain(requests).all(is_call);
        !self.requests.is_empty() && !requests.is_empty() && (added == 0 || are_calls() && self.requests.len().saturating_add(added) <= max)
    }
}

impl Default for RequestQueue {
    fn default() -> Self {
        Self { state: Mutex::default(), max_batch: AtomicUsize::new(MAX_BATCH) }
    }
}

impl fmt::Debug for RequestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestQueue")
    }
}

impl RequestQueue {
    /// Waits until requests may be sent, or until another caller has sent them. `requests` are JSON-RPC calls or one other request; they
    /// are empty for a request that cannot be shared.
    pub(crate) async fn enter(&self, requests: &[Request]) -> Admission<'_> {
        loop {
            let mut wait = {
                let mut state = self.lock();
                if state.under_way < MAX_CONCURRENT {
                    state.under_way = state.under_way.saturating_add(1);
                    return Admission::Send(Slot(self), Vec::new());
                }
                let (turn, wait) = oneshot::channel();
                state.waiting.push_back(Waiter { requests: requests.to_vec(), turn });
                Wait { queue: self, turn: wait }
            };
            match (&mut wait.turn).await {
                Ok(Handoff::Send(others)) => return Admission::Send(Slot(self), others),
                Ok(Handoff::Answered(answers)) => return Admission::Answered(answers),
                Ok(Handoff::Refused) => return Admission::Refused,
                // The caller that was to send the requests was cancelled.
                Err(oneshot::Canceled) => {}
            }
        }
    }

    /// Returns the maximum number of calls in one batch.
    pub(crate) fn max_batch(&self) -> usize {
        self.max_batch.load(Ordering::Relaxed).max(1)
    }

    /// Lowers the limit after the endpoint refused a batch with so many calls.
    pub(crate) fn batch_less(&self, calls: usize) {
        self.max_batch.fetch_min(calls / 2, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits the next request whose caller still waits, and with it all others that can be sent together with it.
    fn next(&self) {
        let mut state = self.lock();
        while let Some(first) = state.waiting.pop_front() {
            let mut batch = Batch::default();
            batch.add(&first.requests);
            let (mut others, mut rest) = (Vec::new(), VecDeque::new());
            for waiter in state.waiting.drain(..).filter(|waiter| !waiter.turn.is_canceled()) {
                if batch.takes(&waiter.requests, self.max_batch()) {
                    batch.add(&waiter.requests);
                    others.push(waiter);
                } else {
                    rest.push_back(waiter);
                }
            }
            state.waiting = rest;
            match first.turn.send(Handoff::Send(others)) {
                Ok(()) => return,
                // The first caller no longer waits. The others return to the queue.
                Err(Handoff::Send(others)) => others.into_iter().rev().for_each(|waiter| state.waiting.push_front(waiter)),
                Err(_) => {}
            }
        }
        state.under_way = state.under_way.saturating_sub(1);
    }
}

/// A wait for a turn. If the caller is cancelled just when its turn comes, dropping this passes the turn on.
struct Wait<'q> {
    queue: &'q RequestQueue,
    turn: oneshot::Receiver<Handoff>,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.turn.close();
        if let Ok(Some(Handoff::Send(others))) = self.turn.try_recv() {
            {
                let mut state = self.queue.lock();
                others.into_iter().rev().for_each(|waiter| state.waiting.push_front(waiter));
            }
            self.queue.next();
        }
    }
}

impl Waiter {
    pub(crate) fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Hands over the answers. A caller that no longer waits does not need them.
    pub(crate) fn answer(self, answers: Vec<Answer>) {
        let _ = self.turn.send(Handoff::Answered(answers));
    }

    /// Makes the caller ask for less at once.
    pub(crate) fn refuse(self) {
        let _ = self.turn.send(Handoff::Refused);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.next();
    }
}
