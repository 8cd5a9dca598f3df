//! Follows an order as a stream of changes (`docs/spec/service.md#tracking`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::time::Duration;

use countersign::wire::SwapRecord;
use countersign::{OrderRecord, Registry};
use futures_util::{Stream, stream};
use serde::Serialize;

use crate::client::Client;
use crate::error::Error;
use crate::request::OrderId;
use crate::response::Answer;
use crate::retry::{jittered, random};
use crate::status::Status;
use countersign_transport::Transport;

/// The smallest wait between two requests for an order, whatever the [`Pace`] is. Jitter can halve it.
pub(crate) const MIN_POLL: Duration = Duration::from_millis(50);

/// How often the record of an order is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a set of options")]
pub struct Pace {
    /// The longest wait after a change; jitter can halve it.
    pub quickest: Duration,
    /// The longest wait of all. Each response without a change increases the wait by half, up to this.
    pub slowest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { quickest: Duration::from_secs(4), slowest: Duration::from_secs(60) }
    }
}

impl Pace {
    pub(crate) fn slower(&self, wait: Duration) -> Duration {
        wait.saturating_mul(3).checked_div(2).unwrap_or(wait).min(self.slowest)
    }
}

/// A change of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// The status.
    pub status: Status,
    /// The record that the status follows from.
    pub record: OrderRecord,
    /// Whether something that the previous record showed is missing: the response was cached, or a block was replaced.
    pub went_back: bool,
}

/// The state between two responses, of constant size.
#[derive(Debug, Clone, Copy)]
struct Memory {
    wait: Duration,
    started: bool,
    seen: Option<(u64, u16)>,
    done: bool,
}

/// Follows an order. The stream's items are its first record and every change, until the order is complete or refunded.
///
/// The client and the registry may be references, or shared with the stream through an [`Arc`](std::sync::Arc).
///
/// `verify` checks each response before it becomes an item. An [`Error::Refused`] or [`Error::Input`] is the last item. After any other
/// error the stream continues at its slowest pace, because a paid order must be followed until it ends.
pub fn track<T: Transport>(
    client: impl Deref<Target = Client<T>>,
    registry: impl Deref<Target = Registry>,
    id: OrderId,
    pace: Pace,
    verify: impl FnMut(&Answer<OrderRecord>) -> Result<(), Error>,
) -> impl Stream<Item = Result<Progress, Error>> {
    let memory = Memory { wait: Duration::ZERO, started: false, seen: None, done: false };
    stream::unfold(Tracker { client, registry, id, pace, verify, memory }, |mut tracker| async move {
        let item = tracker.next().await?;
        Some((item, tracker))
    })
}

struct Tracker<C, R, V> {
    client: C,
    registry: R,
    id: OrderId,
    pace: Pace,
    verify: V,
    memory: Memory,
}

impl<T, C, R, V> Tracker<C, R, V>
where
    T: Transport,
    C: Deref<Target = Client<T>>,
    R: Deref<Target = Registry>,
    V: FnMut(&Answer<OrderRecord>) -> Result<(), Error>,
{
    /// Waits for the next change or error; `None` after the last item.
    async fn next(&mut self) -> Option<Result<Progress, Error>> {
        if self.memory.done {
            return None;
        }
        loop {
            if std::mem::replace(&mut self.memory.started, true) {
                self.client.transport().sleep(jittered(self.memory.wait.max(MIN_POLL), random())).await;
            }
            let answer = self.client.order(&self.id).await;
            let record = match answer.and_then(|answer| (self.verify)(&answer).map(|()| answer.value)) {
                Ok(record) => record,
                Err(error) => {
                    // A paid order must be followed until it ends, so only a refusal ends the stream.
                    self.memory.done = matches!(error, Error::Refused(_) | Error::Input(_));
                    self.memory.wait = self.pace.slowest;
                    return Some(Err(error));
                }
            };
            let status = Status::from_record(&record, &self.registry, self.client.transport().now());
            let now = (digest(&record, &status), known(&record));
            let before = self.memory.seen.replace(now);
            if before.is_some_and(|(digest, _)| digest == now.0) {
                self.memory.wait = self.pace.slower(self.memory.wait);
                continue;
            }
            self.memory.wait = self.pace.quickest;
            self.memory.done = status.is_final();
            let went_back = before.is_some_and(|(_, known)| known & !now.1 != 0);
            return Some(Ok(Progress { status, record, went_back }));
        }
    }
}

/// Returns a hash of the fields whose changes are reported.
fn digest(record: &OrderRecord, status: &Status) -> u64 {
    let mut hasher = DefaultHasher::new();
    status.state.hash(&mut hasher);
    for swap in [&record.source_swap, &record.destination_swap] {
        (&swap.initiate_tx_hash, &swap.redeem_tx_hash, &swap.refund_tx_hash).hash(&mut hasher);
        (swap.initiate_block_number, swap.redeem_block_number, swap.refund_block_number).hash(&mut hasher);
        (swap.current_confirmations, swap.filled_amount, &swap.secret).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns one bit for each event that the record shows.
fn known(record: &OrderRecord) -> u16 {
    let facts = |swap: &SwapRecord| {
        [
            swap.initiate_tx_hash.is_some(),
            swap.redeem_tx_hash.is_some(),
            swap.refund_tx_hash.is_some(),
            swap.initiate_block_number.is_some(),
            swap.redeem_block_number.is_some(),
            swap.refund_block_number.is_some(),
            swap.secret.is_some(),
        ]
    };
    let (source, destination) = (facts(&record.source_swap), facts(&record.destination_swap));
    source.into_iter().chain(destination).fold(0, |bits, fact| (bits << 1) | u16::from(fact))
}
