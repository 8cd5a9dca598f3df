//! Asks the endpoints of a chain until enough of them agree.

use std::collections::{HashMap, HashSet};
use std::pin::{Pin, pin};
use std::time::Duration;

use countersign_core::reader::{Agree, Drive, FailureKind, Fault, Known, Quorum, Remembered, Verdict};
use countersign_core::{Code, Refusal};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tracing::{Instrument as _, Span, debug, debug_span};

use crate::chains::{Chains, Link};
use crate::memory::Memory;
use crate::transport::{MaybeSend, MaybeSync, Transport, on_heap};

/// The time limit for one round of one endpoint.
const ROUND_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for one endpoint.
const READING_TIMEOUT: Duration = Duration::from_secs(20);
/// Both limits for the RPC of a Bitcoin-like node, which may have to scan all its outputs.
const SCAN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the other endpoints are waited for when enough agree, but the question does not stand.
const STRAGGLER_TIMEOUT: Duration = Duration::from_secs(2);

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError {
    /// There is no connection to the chain. Contains its name.
    #[error("not connected to {0}")]
    NotConnected(String),
    /// The subject cannot be read, or the endpoints cannot form a quorum.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Reads from all endpoints of a chain concurrently, and ends as soon as the answer to `question` stands. `start` creates the reader of
/// one endpoint from what is known about it.
///
/// It also ends when every endpoint has spoken or used up its time, and two seconds after enough endpoints agree without the question
/// standing. Put the same question to the returned quorum for its verdict; other questions may be put to it as well.
///
/// # Errors
///
/// [`GatherError::NotConnected`], or [`GatherError::Refused`] if `start` refuses. What the endpoints did wrong is in the quorum.
pub async fn gather<R, T, E>(
    chains: &impl Chains,
    timer: &impl Transport,
    memory: &Memory,
    chain: &str,
    start: impl Fn(&Known) -> Result<R, Refusal> + MaybeSend + MaybeSync,
    question: impl Fn(&R::Observation) -> Result<T, E> + MaybeSend + MaybeSync,
) -> Result<Quorum<R::Observation>, GatherError>
where
    R: Drive<Observation: Agree>,
    T: Ord,
{
    let is_answered = |quorum: &Quorum<R::Observation>| match quorum.ask(&question) {
        Verdict::Stands(..) => true,
        Verdict::Falls(_) => quorum.agreed::<E>().is_ok(),
        Verdict::Open(_) => false,
    };
    on_heap(|| gather_until(chains, timer, memory, chain, start, is_answered)).instrument(span(chain)).await
}

/// Reads from all endpoints of a chain concurrently, for a choice among what they show, as of a fee. Ends when every endpoint has spoken
/// or used up its time, and two seconds after enough endpoints agree.
///
/// # Errors
///
/// The same errors as [`gather`].
pub async fn gather_all<R: Drive<Observation: Agree>>(
    chains: &impl Chains,
    timer: &impl Transport,
    memory: &Memory,
    chain: &str,
    start: impl Fn(&Known) -> Result<R, Refusal> + MaybeSend + MaybeSync,
) -> Result<Quorum<R::Observation>, GatherError> {
    on_heap(|| gather_until(chains, timer, memory, chain, start, |_| false)).instrument(span(chain)).await
}

/// Returns the span in which the endpoints of a chain are asked. Each of them has a span of its own in it.
fn span(chain: &str) -> Span {
    debug_span!("chain", chain)
}

async fn gather_until<R: Drive<Observation: Agree>>(
    chains: &impl Chains,
    timer: &impl Transport,
    memory: &Memory,
    chain: &str,
    start: impl Fn(&Known) -> Result<R, Refusal> + MaybeSend + MaybeSync,
    is_answered: impl Fn(&Quorum<R::Observation>) -> bool + MaybeSend + MaybeSync,
) -> Result<Quorum<R::Observation>, GatherError> {
    let endpoints = chains.endpoints(chain).ok_or_else(|| GatherError::NotConnected(chain.to_owned()))?;
    let mut quorum = Quorum::new(endpoints.links.iter().map(|link| link.provider.as_str()), endpoints.needed)?;
    let mut names = HashSet::new();
    // The number of endpoints of each provider that have not spoken.
    let mut silent: HashMap<&str, usize> = HashMap::new();
    let mut running = FuturesUnordered::new();
    for link in endpoints.links.iter().filter(|link| names.insert(&link.name)) {
        let count = silent.entry(&link.provider).or_default();
        *count = count.saturating_add(1);
        let reader = start(&memory.known(chain, &link.provider).with_rpc(link.is_rpc))?;
        let asking = async move {
            let reading = pin!(read(chains, timer, memory, chain, link, reader));
            let outcome = within(timer, if link.is_rpc { SCAN_TIMEOUT } else { READING_TIMEOUT }, reading)
                .await
                .unwrap_or_else(|| Err(Fault::Unanswered(FailureKind::Timeout.into())));
            match &outcome {
                Ok(_) => debug!("read"),
                Err(fault) => debug!(code = fault.code().name(), "not read"),
            }
            (link, outcome)
        };
        running.push(asking.instrument(debug_span!("endpoint", endpoint = link.name)));
    }
    let mut grace = None;
    while !quorum.is_complete() && !is_answered(&quorum) {
        let heard = if quorum.agreed::<()>().is_ok() {
            let grace: &mut Pin<Box<_>> = grace.get_or_insert_with(|| Box::pin(timer.sleep(STRAGGLER_TIMEOUT)));
            match select(running.next(), grace).await {
                Either::Left((heard, _)) => heard,
                Either::Right(_) => break,
            }
        } else {
            running.next().await
        };
        let Some((link, outcome)) = heard else { break };
        // An answer that a reader refused may have been the one about the identity.
        if !matches!(&outcome, Ok(_) | Err(Fault::Unanswered(_))) {
            chains.forget(chain, &link.name);
        }
        let left = silent.get(link.provider.as_str()).map_or(0, |count| count.saturating_sub(1));
        silent.insert(&link.provider, left);
        // A provider speaks once, by the first of its endpoints that answers.
        if outcome.is_ok() || left == 0 {
            quorum.hear(&link.provider, outcome);
        }
    }
    remember(memory, chain, &quorum);
    Ok(quorum)
}

/// Drives one reader to its end.
async fn read<R: Drive>(
    chains: &impl Chains,
    timer: &impl Transport,
    memory: &Memory,
    chain: &str,
    link: &Link,
    mut reader: R,
) -> Result<R::Observation, Fault> {
    while !reader.requests().is_empty() {
        let kept = reader.stamp().and_then(|stamp| memory.observation(chain, &link.name, &stamp));
        if let Some(kept) = kept.filter(|kept| reader.is_of_subject(kept)) {
            return Ok(kept);
        }
        let answers = {
            let asking = pin!(chains.ask(chain, &link.name, reader.requests()));
            within(timer, if link.is_rpc { SCAN_TIMEOUT } else { ROUND_TIMEOUT }, asking).await
        };
        match answers {
            Some(answers) => reader.answer(&answers).map_err(|miscount| {
                Fault::Malformed(Refusal::new(Code::WrongType, "").with_reason(format!("the connection returned {miscount}")))
            })?,
            None => reader.fail(FailureKind::Timeout.into()),
        }
    }
    let observation = reader.finish()?;
    memory.keep(chain, &link.name, &observation);
    Ok(observation)
}

/// Waits for a future, but not longer than `limit`.
async fn within<F: Future + Unpin>(timer: &impl Transport, limit: Duration, future: F) -> Option<F::Output> {
    match select(future, pin!(timer.sleep(limit))).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

/// Remembers what the endpoints that agree have shown. Of the heights, at most the one that as many endpoints as must agree have reached:
/// an absurd height that a single endpoint shows is forgotten. Of the others, only the progress of their searches is remembered: an endpoint
/// may need several readings until it can agree.
fn remember<O: Agree + Remembered>(memory: &Memory, chain: &str, quorum: &Quorum<O>) {
    let group = quorum.agreed::<()>().unwrap_or_default();
    let mut heights: Vec<_> = group.iter().map(|one| one.known().height()).collect();
    heights.sort_unstable_by(|one, other| other.cmp(one));
    let reached = heights.get(quorum.needed().saturating_sub(1)).copied().unwrap_or_default();
    for (name, word) in quorum.heard() {
        let Ok(observation) = word else { continue };
        let known = observation.known();
        if group.iter().any(|member| std::ptr::eq(*member, observation)) {
            memory.learn(chain, name, &known.clone().with_height(known.height().min(reached)));
        } else {
            memory.learn(chain, name, &known.progress_only());
        }
    }
}
