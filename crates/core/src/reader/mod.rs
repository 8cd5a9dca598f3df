//! Reading a chain without I/O.
//!
//! A [`Reader`] says what to ask an endpoint, in the chain's ordinary RPC ([`Request`]), takes the answers as untrusted bytes
//! ([`Answer`]), and ends in an [`Observation`] or a [`Fault`]. It opens no connection, reads no clock and waits for nothing, so the same
//! rules hold on every transport and in every language. A [`Quorum`] then compares the observations of several endpoints.
//!
//! ```text
//! Reader::new(subject, known) ──> next() ──> Ask(requests) ──> send them ──> answer(answers) ──┐
//!                                   ^                                                          │
//!                                   └──────────────────────────────────────────────────────────┘
//!                                   └──> Done(observation) or Failed(fault)
//! ```
//!
//! What to ask and what the answers mean is decided by a [`Machine`], which a family crate writes. The reader drives it, enforces the
//! limits, asks for the chain's identity in every round, and is the only maker of an observation. Nobody outside a family crate can make
//! that crate's observations, because Rust allows only the family crate to implement [`Machine`] for its own types.
//!
//! Specification: `docs/spec/chains.md#readers`.

mod answer;
mod ask;
mod broadcast;
mod components;
mod fate;
mod fault;
mod funds;
pub mod json_rpc;
mod known;
mod quorum;
mod request;
mod shown;
#[cfg(test)]
mod tests;
mod urgency;

use std::fmt;

pub use answer::{Answer, Failure, FailureKind, Replies, Reply, RpcError};
pub use ask::{Ask, Equal, Judged, Question};
pub use broadcast::{Broadcast, NotTaken, Sending};
pub use components::{OVERDUE_MULTIPLE, high_median, median, middle, newest_first, outbid, overdue_limit, rebid};
pub use fate::{Fate, FateOf, Trace, Tracing};
pub use fault::{Fault, FaultCode};
pub use funds::{Expense, check_allowance, check_balance, check_low_fee, check_worth};
pub use known::Known;
pub use quorum::{Agree, Doubt, Quorum, Verdict};
pub use request::{Format, Request};
pub use shown::{Head, Sent, Submission};
pub use urgency::Urgency;

use crate::json::{self, Cursor, Value};
use crate::report::Refusal;

/// The maximum number of requests in one round.
pub const MAX_REQUESTS: usize = 1_024;
/// The maximum length in bytes of all answers of one reading.
pub const MAX_TOTAL: usize = 64 * 1024 * 1024;

/// What a family asks, and what the answers mean: one state for each round. It neither loops nor waits.
///
/// **Not covered by semantic versioning.** The family crates implement it, and [`Reader`] calls it.
pub trait Machine: fmt::Debug + Send + Sync + Sized + 'static {
    /// What is read: the terms of an HTLC, a sender, a transaction id.
    type Subject: fmt::Debug + Clone + PartialEq + Send + Sync + 'static;
    /// What the answers show.
    type Output: fmt::Debug + Clone + Send + Sync + 'static;
    /// The maximum number of rounds.
    const MAX_ROUNDS: usize;

    /// Returns the machine, and the requests of its first round.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if the subject cannot be read, because it is the caller's and invalid.
    fn start(subject: &Self::Subject, known: &Known) -> Result<(Self, Vec<Request>), Refusal>;

    /// Returns what identifies the chain. It is asked in every round, because a connection may change its chain between two rounds.
    fn identity(&self) -> Identity;

    /// Reads the replies to the last requests, in their order.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the endpoint's answers cannot be used. It ends the reading.
    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Self::Output>, Fault>;

    /// Returns what this reading adds to what is known about the endpoint. Called after the last round.
    fn learned(&self) -> Known {
        Known::default()
    }

    /// Returns a name for everything that is still to be read, once the blocks are known at which it will be read: an earlier
    /// observation of the same endpoint with an equal stamp would be equal. `None` where the requests do not name blocks.
    fn stamp(&self) -> Option<Vec<u8>> {
        None
    }
}

/// The outcome of one round of a [`Machine`].
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a machine asks or is done")]
pub enum Turn<O> {
    /// There is another round.
    Ask(Vec<Request>),
    /// The reading is complete.
    Done(O),
}

/// How an endpoint shows which chain it serves.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "the family crates construct it")]
pub struct Identity {
    /// The request for the identity.
    pub request: Request,
    /// The identity of the pinned chain.
    pub expected: String,
    /// Reads the identity from the reply.
    pub read: fn(&Reply<'_>) -> Result<String, Fault>,
}

/// Reads one subject from one endpoint. See the [module](self) for the loop that drives it.
#[derive(Debug)]
pub struct Reader<M: Machine> {
    subject: M::Subject,
    stage: Stage<M>,
    rounds: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Stage<M: Machine> {
    /// The first request asks for the identity.
    Asking {
        machine: M,
        identity: Identity,
        requests: Vec<Request>,
    },
    Done(Observation<M>),
    Failed(Fault),
}

/// What a reader needs next.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a reader asks, is done or has failed")]
pub enum Next<'r, M: Machine> {
    /// Send these requests, all at once, and hand over the answers in their order.
    Ask(&'r [Request]),
    /// The reading is complete.
    Done(&'r Observation<M>),
    /// The endpoint's answers cannot be used.
    Failed(&'r Fault),
}

/// A reader of any kind, as a transport drives it: [`Reader`], and the facade's reader of any family.
pub trait Drive: Send + Sync {
    /// What the reader ends in.
    type Observation: Remembered;

    /// Returns the requests to send now; none once the reading has ended.
    fn requests(&self) -> &[Request];

    /// Takes the answers to these requests: see [`Reader::answer`].
    ///
    /// # Errors
    ///
    /// [`Miscount`] for another number of answers.
    fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount>;

    /// Ends the reading because the endpoint did not answer: see [`Reader::fail`].
    fn fail(&mut self, failure: Failure);

    /// Returns a name for everything that is still to be read: see [`Reader::stamp`].
    fn stamp(&self) -> Option<Vec<u8>>;

    /// Returns whether an observation is of the subject that is read here. One of another subject must not take its place, whatever its
    /// stamp.
    fn is_of_subject(&self, kept: &Self::Observation) -> bool;

    /// Returns the observation.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of a reader that has failed, or of one that was not driven to its end.
    fn finish(self) -> Result<Self::Observation, Fault>;
}

/// An observation, as a transport remembers it.
pub trait Remembered: Clone + Send + Sync + 'static {
    /// Returns what the reading adds to what is known about the endpoint.
    fn known(&self) -> &Known;

    /// Returns the stamp of the reading.
    fn stamp(&self) -> Option<&[u8]>;
}

impl<M: Machine> Remembered for Observation<M> {
    fn known(&self) -> &Known {
        &self.known
    }

    fn stamp(&self) -> Option<&[u8]> {
        self.stamp.as_deref()
    }
}

impl<M: Machine> Drive for Reader<M> {
    type Observation = Observation<M>;

    fn requests(&self) -> &[Request] {
        if let Stage::Asking { requests, .. } = &self.stage { requests } else { &[] }
    }

    fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount> {
        Self::answer(self, answers)
    }

    fn fail(&mut self, failure: Failure) {
        Self::fail(self, failure);
    }

    fn stamp(&self) -> Option<Vec<u8>> {
        Self::stamp(self)
    }

    fn is_of_subject(&self, kept: &Observation<M>) -> bool {
        kept.subject == self.subject
    }

    fn finish(self) -> Result<Observation<M>, Fault> {
        Self::finish(self)
    }
}

/// The number of answers is not the number of requests. The reader is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Miscount {
    /// The number of requests.
    pub expected: usize,
    /// The number of answers.
    pub actual: usize,
}

impl fmt::Display for Miscount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers to {} requests", self.actual, self.expected)
    }
}

impl std::error::Error for Miscount {}

/// What one endpoint shows of a subject. Only a [`Reader`] makes one.
///
/// ```compile_fail
/// use countersign::reader::{Known, Machine, Observation};
///
/// // Its fields are private, and it has no constructor.
/// fn forge<M: Machine>(subject: M::Subject, output: M::Output) -> Observation<M> {
///     Observation { subject, output, known: Known::default(), stamp: None }
/// }
/// ```
#[derive(Debug)]
pub struct Observation<M: Machine> {
    subject: M::Subject,
    output: M::Output,
    known: Known,
    stamp: Option<Vec<u8>>,
}

impl<M: Machine> Clone for Observation<M> {
    fn clone(&self) -> Self {
        let Self { subject, output, known, stamp } = self;
        Self { subject: subject.clone(), output: output.clone(), known: known.clone(), stamp: stamp.clone() }
    }
}

impl<M: Machine> Observation<M> {
    /// Returns what was read.
    #[must_use]
    pub const fn subject(&self) -> &M::Subject {
        &self.subject
    }

    /// Returns what the endpoint shows.
    #[must_use]
    pub const fn output(&self) -> &M::Output {
        &self.output
    }

    /// Returns what the endpoint shows, without the proof that a reader made it.
    #[must_use]
    pub fn into_output(self) -> M::Output {
        self.output
    }

    /// Returns what this reading adds to what is known about the endpoint. Add it with [`Known::learn`] if the quorum agrees with the
    /// observation.
    #[must_use]
    pub const fn known(&self) -> &Known {
        &self.known
    }

    /// Returns the [`Reader::stamp`] of the reading.
    #[must_use]
    pub fn stamp(&self) -> Option<&[u8]> {
        self.stamp.as_deref()
    }
}

impl<M: Machine> Reader<M> {
    /// Creates a reader. `known` is what the endpoint showed before.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if the subject cannot be read.
    pub fn new(subject: &M::Subject, known: &Known) -> Result<Self, Refusal> {
        let (machine, requests) = M::start(subject, known)?;
        let stage = Stage::ask(machine, requests);
        Ok(Self { subject: subject.clone(), stage, rounds: 1, bytes: 0 })
    }

    /// Returns what the reader needs next. Calling it again changes nothing.
    #[must_use]
    pub const fn next(&self) -> Next<'_, M> {
        match &self.stage {
            Stage::Asking { requests, .. } => Next::Ask(requests.as_slice()),
            Stage::Done(observation) => Next::Done(observation),
            Stage::Failed(fault) => Next::Failed(fault),
        }
    }

    /// Takes the answers to the requests of [`Reader::next`], one for each, in their order. A reader that is done or has failed takes no
    /// answers.
    ///
    /// # Errors
    ///
    /// [`Miscount`] for another number of answers. What an endpoint did wrong is not an error here: [`Reader::next`] shows it.
    pub fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount> {
        let expected = if let Stage::Asking { requests, .. } = &self.stage { requests.len() } else { 0 };
        if answers.len() != expected {
            return Err(Miscount { expected, actual: answers.len() });
        }
        if let Stage::Asking { machine, identity, requests } = &mut self.stage {
            self.bytes = answers.iter().fold(self.bytes, |sum, answer| sum.saturating_add(answer.len()));
            let turn = turn(machine, identity, requests, answers, self.bytes);
            let stamp = machine.stamp();
            self.stage = match turn {
                Ok(Turn::Done(output)) => {
                    let known = machine.learned();
                    Stage::Done(Observation { subject: self.subject.clone(), output, known, stamp })
                }
                Ok(Turn::Ask(_)) if self.rounds >= M::MAX_ROUNDS => {
                    Stage::Failed(Fault::TooMuch("the reading needs more rounds than it may have"))
                }
                Ok(Turn::Ask(next)) => {
                    self.rounds = self.rounds.saturating_add(1);
                    match std::mem::replace(&mut self.stage, Stage::Failed(Fault::TooMuch(""))) {
                        Stage::Asking { machine, .. } => Stage::ask(machine, next),
                        other => other,
                    }
                }
                Err(fault) => Stage::Failed(fault),
            };
        }
        Ok(())
    }

    /// Ends the reading because the endpoint did not answer in time.
    pub fn fail(&mut self, failure: Failure) {
        if matches!(self.stage, Stage::Asking { .. }) {
            self.stage = Stage::Failed(Fault::Unanswered(failure));
        }
    }

    /// Returns the subject.
    #[must_use]
    pub const fn subject(&self) -> &M::Subject {
        &self.subject
    }

    /// Returns the number of rounds so far.
    #[must_use]
    pub const fn rounds(&self) -> usize {
        self.rounds
    }

    /// Returns a name for everything that is still to be read. An earlier observation of the same endpoint with an equal stamp can be
    /// used instead of reading on. `None` if there is no such name, or not yet.
    #[must_use]
    pub fn stamp(&self) -> Option<Vec<u8>> {
        if let Stage::Asking { machine, .. } = &self.stage { machine.stamp() } else { None }
    }

    /// Returns the observation.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of a reader that has failed, or of one that was not driven to its end.
    pub fn finish(self) -> Result<Observation<M>, Fault> {
        match self.stage {
            Stage::Done(observation) => Ok(observation),
            Stage::Failed(fault) => Err(fault),
            Stage::Asking { .. } => Err(Fault::Unanswered(FailureKind::Timeout.into())),
        }
    }
}

impl<M: Machine> Stage<M> {
    fn ask(machine: M, mut requests: Vec<Request>) -> Self {
        if requests.len() >= MAX_REQUESTS {
            return Self::Failed(Fault::TooMuch("the reading needs more requests than it may send"));
        }
        let identity = machine.identity();
        requests.insert(0, identity.request.clone());
        Self::Asking { machine, identity, requests }
    }
}

/// Parses the answers, checks the identity and lets the machine read the rest.
fn turn<M: Machine>(
    machine: &mut M,
    identity: &Identity,
    requests: &[Request],
    answers: &[Answer],
    bytes: usize,
) -> Result<Turn<M::Output>, Fault> {
    let mut turn = Ok(Turn::Ask(Vec::new()));
    read_replies(identity, requests, answers, bytes, &mut |replies| turn = machine.answer(replies))?;
    turn
}

/// Parses the answers, checks the identity and lets `machine` read the rest, once. It does not depend on the machine's type, because a
/// program would otherwise contain it for everything that it reads.
fn read_replies(
    identity: &Identity,
    requests: &[Request],
    answers: &[Answer],
    bytes: usize,
    machine: &mut dyn FnMut(&Replies<'_>),
) -> Result<(), Fault> {
    if bytes > MAX_TOTAL {
        return Err(Fault::TooMuch("the answers are too long"));
    }
    // An answer that is too long by itself is refused where it is parsed.
    let in_json = requests.iter().zip(answers).filter(|(request, answer)| is_json(request, answer) && answer.len() <= json::MAX_BYTES);
    if in_json.fold(0_usize, |sum, (_, answer)| sum.saturating_add(answer.len())) > json::MAX_BYTES {
        return Err(Fault::TooMuch("the answers of one round are too long"));
    }
    let values = requests.iter().zip(answers).map(|(request, answer)| parse(request, answer)).collect::<Result<Vec<_>, _>>()?;
    let replies: Vec<_> =
        requests.iter().zip(answers).zip(&values).map(|((request, answer), value)| reply(request, answer, value.as_ref())).collect();
    let Some((first, rest)) = replies.split_first() else { return Err(Fault::TooMuch("nothing was asked")) };
    let actual = (identity.read)(first)?;
    if actual != identity.expected {
        return Err(Fault::WrongChain { expected: identity.expected.clone(), actual: crate::report::text::escape_untrusted(&actual) });
    }
    machine(&Replies::new(rest));
    Ok(())
}

/// Returns whether an answer is parsed as JSON.
const fn is_json(request: &Request, answer: &Answer) -> bool {
    matches!(
        (request, answer),
        (Request::JsonRpc { .. }, Answer::Result(_))
            | (Request::Get { format: Format::Json, .. } | Request::Post { format: Format::Json, .. }, Answer::Http { status: 200, .. })
    )
}

/// Parses an answer in JSON; `None` for any other.
fn parse<'a>(request: &Request, answer: &'a Answer) -> Result<Option<Value<'a>>, Refusal> {
    match (request, answer) {
        (Request::JsonRpc { .. }, Answer::Result(text)) => json::parse(text).map(Some).map_err(|refusal| refusal.with_prefix("/result")),
        (
            Request::Get { format: Format::Json, .. } | Request::Post { format: Format::Json, .. },
            Answer::Http { status: 200, body, .. },
        ) => json::parse(body).map(Some),
        _ => Ok(None),
    }
}

fn reply<'a>(request: &Request, answer: &'a Answer, value: Option<&'a Value<'a>>) -> Reply<'a> {
    let format = match request {
        Request::JsonRpc { .. } => None,
        Request::Get { format, .. } | Request::Post { format, .. } => Some(*format),
    };
    match (answer, value) {
        (_, Some(value)) => Reply::Json(Cursor::root(value, if format.is_none() { "/result" } else { "" })),
        (Answer::Http { status, body, grpc_status }, None) => match format {
            Some(Format::GrpcWeb) => Reply::Grpc { status: *status, body, grpc_status: grpc_status.as_deref() },
            Some(_) if *status == 200 => Reply::Bytes(body),
            _ => Reply::Status { status: *status, body },
        },
        (Answer::Result(bytes), None) => Reply::Bytes(bytes),
        (Answer::Error(error), None) => Reply::Error(error),
        (Answer::Failed(failure), None) => Reply::Failed(failure),
    }
}
