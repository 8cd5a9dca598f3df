//! Following an order as a stream of what changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use countersign::Registry;
use countersign::wire::{OrderRecord, SwapRecord};
use futures_util::{Stream, stream};

use crate::client::Client;
use crate::error::Error;
use crate::request::OrderId;
use crate::response::Answer;
use crate::retry::{jittered, random};
use crate::status::Status;
use crate::transport::Transport;

/// How often an order is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a set of options")]
pub struct Pace {
    /// Longest wait after something changed.
    pub quickest: Duration,
    /// Longest wait ever: each answer without news makes the wait half as long again.
    pub slowest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { quickest: Duration::from_secs(4), slowest: Duration::from_secs(60) }
    }
}

impl Pace {
    fn slower(&self, wait: Duration) -> Duration {
        wait.saturating_mul(3).checked_div(2).unwrap_or(wait).min(self.slowest)
    }
}

/// News of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Where it stands.
    pub status: Status,
    /// The record that says so.
    pub record: OrderRecord,
    /// Something that an earlier record knew is gone: a cached answer, or a block that was replaced.
    pub went_back: bool,
}

/// What is remembered of an order between two answers: a few words, however long the order is followed.
#[derive(Debug, Clone, Copy)]
struct Memory {
    wait: Duration,
    seen: Option<(u64, u16)>,
    done: bool,
}

/// Follows an order: the first answer and every change, until it is complete or refunded.
///
/// `judge` looks at each answer before anybody else does; what it refuses ends the stream. So does any other failure
/// that will not pass; one that may is an item of the stream, which then goes on at its slowest.
pub fn track<'t, T: Transport>(
    client: &'t Client<T>,
    id: &'t OrderId,
    registry: &'t Registry,
    pace: Pace,
    judge: impl Fn(&Answer<OrderRecord>) -> Result<(), Error> + 't,
) -> impl Stream<Item = Result<Progress, Error>> + 't {
    let start = Memory { wait: Duration::ZERO, seen: None, done: false };
    stream::unfold((start, judge), move |(mut memory, judge)| async move {
        if memory.done {
            return None;
        }
        loop {
            if !memory.wait.is_zero() {
                client.transport().sleep(jittered(memory.wait, random())).await;
            }
            let answer = match client.order(id).await {
                Ok(answer) => judge(&answer).map(|()| answer.value),
                Err(error) => Err(error),
            };
            let record = match answer {
                Ok(record) => record,
                Err(error) => {
                    memory.done = !error.is_transient();
                    memory.wait = pace.slowest;
                    return Some((Err(error), (memory, judge)));
                }
            };
            let status = Status::of(&record, registry, client.transport().now());
            let now = (digest(&record, &status), known(&record));
            let before = memory.seen.replace(now);
            if before.is_some_and(|(digest, _)| digest == now.0) {
                memory.wait = pace.slower(memory.wait);
                continue;
            }
            memory.wait = pace.quickest;
            memory.done = status.is_final();
            let went_back = before.is_some_and(|(_, known)| known & !now.1 != 0);
            return Some((Ok(Progress { status, record, went_back }), (memory, judge)));
        }
    })
}

/// Everything that is news, as a number.
fn digest(record: &OrderRecord, status: &Status) -> u64 {
    let mut hasher = DefaultHasher::new();
    status.state.hash(&mut hasher);
    for swap in [&record.source_swap, &record.destination_swap] {
        (&swap.initiate_tx_hash, &swap.redeem_tx_hash, &swap.refund_tx_hash).hash(&mut hasher);
        (swap.initiate_block_number, swap.redeem_block_number, swap.refund_block_number).hash(&mut hasher);
        (swap.current_confirmations, swap.filled_amount, swap.secret.is_empty()).hash(&mut hasher);
    }
    hasher.finish()
}

/// One bit for each thing that has happened.
fn known(record: &OrderRecord) -> u16 {
    let facts = |swap: &SwapRecord| {
        [
            !swap.initiate_tx_hash.is_empty(),
            !swap.redeem_tx_hash.is_empty(),
            !swap.refund_tx_hash.is_empty(),
            swap.initiate_block_number != 0,
            swap.redeem_block_number != 0,
            swap.refund_block_number != 0,
            !swap.secret.is_empty(),
        ]
    };
    let (source, destination) = (facts(&record.source_swap), facts(&record.destination_swap));
    source.into_iter().chain(destination).fold(0, |bits, fact| (bits << 1) | u16::from(fact))
}
