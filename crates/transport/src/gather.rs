//! Asks the endpoints of a chain until enough of them agree.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_core::reader::{Agree, Answer, Drive, Failure, FailureKind, Fault, Known, Miscount, Quorum, Remembered, Request, Verdict};
use countersign_core::{Code, Refusal, sort};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tracing::{Instrument as _, debug, debug_span};

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
    gather_until(chains, timer, memory, chain, start, is_answered, |_| true).await
}

/// Reads from all endpoints of a chain concurrently, for a choice among what they show, as of coins. Ends when every endpoint has spoken
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
    gather_until(chains, timer, memory, chain, start, |_| false, |_| true).await
}

/// Does the same for the [middle](countersign_core::reader::median) of what they show, as of a price that must not be a liar's. While an even
/// number of endpoints agree, it waits for the others until their time limit: of two prices, a dishonest endpoint could choose the lower one.
///
/// # Errors
///
/// The same errors as [`gather`].
pub async fn gather_middle<R: Drive<Observation: Agree>>(
    chains: &impl Chains,
    timer: &impl Transport,
    memory: &Memory,
    chain: &str,
    start: impl Fn(&Known) -> Result<R, Refusal> + MaybeSend + MaybeSync,
) -> Result<Quorum<R::Observation>, GatherError> {
    gather_until(chains, timer, memory, chain, start, |_| false, |agreed| agreed % 2 == 1).await
}

async fn gather_until<R: Drive<Observation: Agree>>(
    chains: &impl Chains,
    timer: &impl Transport,
    memory: &Memory,
    chain: &str,
    start: impl Fn(&Known) -> Result<R, Refusal> + MaybeSend + MaybeSync,
    is_answered: impl Fn(&Quorum<R::Observation>) -> bool + MaybeSend + MaybeSync,
    is_enough: impl Fn(usize) -> bool + MaybeSend + MaybeSync,
) -> Result<Quorum<R::Observation>, GatherError> {
    let endpoints = chains.endpoints(chain).ok_or_else(|| GatherError::NotConnected(chain.to_owned()))?;
    let quorum = Mutex::new(Quorum::new(endpoints.links.iter().map(|link| link.provider.as_str()), endpoints.needed)?);
    let mut readings: Vec<(&Link, Box<dyn Reading + '_>)> = Vec::new();
    for link in distinct(&endpoints.links) {
        let reader = start(&memory.known(chain, &link.provider).with_rpc(link.is_rpc))?;
        readings.push((link, Box::new(OneReading { reader: Some(reader), outcome: None, quorum: &quorum })));
    }
    let place = Place { chains, timer, memory, chain };
    let question = Question { quorum: &quorum, is_answered, is_enough };
    // The endpoints of a chain are asked in one span. Each of them has a span of its own in it.
    on_heap(|| listen(place, readings, &question)).instrument(debug_span!("chain", chain)).await;
    drop(question);
    let quorum = quorum.into_inner().unwrap_or_else(PoisonError::into_inner);
    remember(memory, chain, &quorum);
    Ok(quorum)
}

/// Returns the endpoints, each name once.
fn distinct(links: &[Link]) -> Vec<&Link> {
    let mut names = HashSet::new();
    links.iter().filter(|link| names.insert(&link.name)).collect()
}

/// What all readings of one chain share.
#[derive(Clone, Copy)]
struct Place<'g> {
    chains: &'g dyn crate::chains::Erased,
    timer: &'g dyn crate::transport::Erased,
    memory: &'g Memory,
    chain: &'g str,
}

/// The reading of one endpoint, whatever is read. The loops that drive it have no type parameter: with that of the reader, a program
/// would contain them once for everything that it reads.
trait Reading: MaybeSend {
    /// Returns the requests to send now; none once the reading has ended.
    fn requests(&self) -> &[Request];

    /// Ends the reading with what the endpoint has shown before, if that is remembered and would be shown again. Returns whether it has.
    fn recall(&mut self, place: Place<'_>, endpoint: &str) -> bool;

    /// Takes the answers to the requests.
    fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount>;

    /// Ends the reading because the endpoint did not answer.
    fn fail(&mut self, failure: Failure);

    /// Takes what the endpoint shows from the reader, and remembers it; or the fault for which the reading was given up.
    fn end(&mut self, place: Place<'_>, endpoint: &str, fault: Option<Fault>);

    /// Returns what the endpoint did wrong, after [`Reading::end`].
    fn fault(&self) -> Option<&Fault>;

    /// Lets the quorum hear what the provider's endpoint shows.
    fn speak(self: Box<Self>, provider: &str);
}

struct OneReading<'q, R: Drive> {
    /// Taken at the end.
    reader: Option<R>,
    outcome: Option<Result<R::Observation, Fault>>,
    quorum: &'q Mutex<Quorum<R::Observation>>,
}

impl<R: Drive<Observation: Agree>> Reading for OneReading<'_, R> {
    fn requests(&self) -> &[Request] {
        self.reader.as_ref().map(R::requests).unwrap_or_default()
    }

    fn recall(&mut self, place: Place<'_>, endpoint: &str) -> bool {
        let Some(reader) = &self.reader else { return false };
        let kept = reader.stamp().and_then(|stamp| place.memory.observation(place.chain, endpoint, &stamp));
        self.outcome = kept.filter(|kept| reader.is_of_subject(kept)).map(Ok);
        self.outcome.is_some()
    }

    fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount> {
        self.reader.as_mut().map_or(Ok(()), |reader| reader.answer(answers))
    }

    fn fail(&mut self, failure: Failure) {
        if let Some(reader) = &mut self.reader {
            reader.fail(failure);
        }
    }

    fn end(&mut self, place: Place<'_>, endpoint: &str, fault: Option<Fault>) {
        let reader = self.reader.take();
        if let Some(fault) = fault {
            self.outcome = Some(Err(fault));
        } else if let (None, Some(reader)) = (&self.outcome, reader) {
            let shown = reader.finish();
            if let Ok(observation) = &shown {
                place.memory.keep(place.chain, endpoint, observation);
            }
            self.outcome = Some(shown);
        }
    }

    fn fault(&self) -> Option<&Fault> {
        self.outcome.as_ref()?.as_ref().err()
    }

    fn speak(self: Box<Self>, provider: &str) {
        if let Some(outcome) = self.outcome {
            self.quorum.lock().unwrap_or_else(PoisonError::into_inner).hear(provider, outcome);
        }
    }
}

/// How far a quorum has come.
#[derive(PartialEq, Eq)]
enum Standing {
    /// Nothing more has to be heard.
    Answered,
    /// Enough endpoints agree, but the question does not stand.
    Agreed,
    /// Too few endpoints agree.
    Open,
}

/// What is asked, whatever it is.
trait Asked: MaybeSync {
    fn standing(&self) -> Standing;
}

struct Question<'q, O, F, E> {
    quorum: &'q Mutex<Quorum<O>>,
    is_answered: F,
    /// Whether the others are waited for no longer than the grace if this many agree, which is never too few.
    is_enough: E,
}

impl<O: Agree + Remembered, F: Fn(&Quorum<O>) -> bool + MaybeSync, E: Fn(usize) -> bool + MaybeSync> Asked for Question<'_, O, F, E> {
    fn standing(&self) -> Standing {
        let quorum = self.quorum.lock().unwrap_or_else(PoisonError::into_inner);
        if quorum.is_complete() || (self.is_answered)(&quorum) {
            Standing::Answered
        } else if quorum.agreed::<()>().is_ok_and(|group| (self.is_enough)(group.len())) {
            Standing::Agreed
        } else {
            Standing::Open
        }
    }
}

/// Drives the readings of all endpoints, and lets the quorum hear each as it ends.
async fn listen(place: Place<'_>, readings: Vec<(&Link, Box<dyn Reading + '_>)>, asked: &dyn Asked) {
    // The number of endpoints of each provider that have not spoken.
    let mut silent: HashMap<&str, usize> = HashMap::new();
    let mut running = FuturesUnordered::new();
    for (link, mut reading) in readings {
        let count = silent.entry(&link.provider).or_default();
        *count = count.saturating_add(1);
        let asking = async move {
            let given_up = {
                let driven = pin!(drive(place, link, &mut *reading));
                within(place.timer, if link.is_rpc { SCAN_TIMEOUT } else { READING_TIMEOUT }, driven)
                    .await
                    .unwrap_or_else(|| Err(Fault::Unanswered(FailureKind::Timeout.into())))
            };
            reading.end(place, &link.name, given_up.err());
            match reading.fault() {
                None => debug!("read"),
                Some(fault) => debug!(code = fault.code().name(), "not read"),
            }
            (link, reading)
        };
        running.push(asking.instrument(debug_span!("endpoint", endpoint = link.name)));
    }
    let mut grace = None;
    loop {
        let heard = match asked.standing() {
            Standing::Answered => break,
            Standing::Agreed => {
                let grace = grace.get_or_insert_with(|| place.timer.sleep(STRAGGLER_TIMEOUT));
                match select(running.next(), grace).await {
                    Either::Left((heard, _)) => heard,
                    Either::Right(_) => break,
                }
            }
            Standing::Open => running.next().await,
        };
        let Some((link, reading)) = heard else { break };
        // An answer that a reader refused may have been the one about the identity.
        if !matches!(reading.fault(), None | Some(Fault::Unanswered(_))) {
            place.chains.forget(place.chain, &link.name);
        }
        let left = silent.get(link.provider.as_str()).map_or(0, |count| count.saturating_sub(1));
        silent.insert(&link.provider, left);
        // A provider speaks once, by the first of its endpoints that answers.
        if reading.fault().is_none() || left == 0 {
            reading.speak(&link.provider);
        }
    }
}

/// Drives one reading until the reader needs nothing more.
async fn drive(place: Place<'_>, link: &Link, reading: &mut dyn Reading) -> Result<(), Fault> {
    while !reading.requests().is_empty() && !reading.recall(place, &link.name) {
        let limit = if link.is_rpc { SCAN_TIMEOUT } else { ROUND_TIMEOUT };
        let answers = within(place.timer, limit, place.chains.ask(place.chain, &link.name, reading.requests())).await;
        match answers {
            Some(answers) => reading.answer(&answers).map_err(|miscount| {
                Fault::Malformed(Refusal::new(Code::WrongType, "").with_reason(format!("the connection returned {miscount}")))
            })?,
            None => reading.fail(FailureKind::Timeout.into()),
        }
    }
    Ok(())
}

/// Waits for a future, but not longer than `limit`.
async fn within<F: Future + Unpin>(timer: &dyn crate::transport::Erased, limit: Duration, future: F) -> Option<F::Output> {
    match select(future, timer.sleep(limit)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

/// Remembers what the endpoints that agree have shown. Of the heights, at most the one that as many endpoints as must agree have reached:
/// an absurd height that a single endpoint shows is forgotten. Of the others, only the progress of their searches is remembered: an endpoint
/// may need several readings until it can agree.
fn remember<O: Agree + Remembered>(memory: &Memory, chain: &str, quorum: &Quorum<O>) {
    let group = quorum.agreed::<()>().unwrap_or_default();
    let heights = group.iter().map(|one| one.known().height());
    let reached = sort::nth(heights, quorum.needed().saturating_sub(1), sort::descending).unwrap_or_default();
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
