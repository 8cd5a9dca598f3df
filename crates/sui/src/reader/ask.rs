//! Questions that one round answers.

use std::fmt;

use countersign_core::Refusal;
use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};

use super::identity;

/// What is read, and on which network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct On<S> {
    /// The network.
    pub network: Network,
    /// What is read.
    pub subject: S,
}

impl<S> On<S> {
    /// Creates the subject of a reading.
    #[must_use]
    pub const fn new(network: Network, subject: S) -> Self {
        Self { network, subject }
    }
}

/// What an endpoint shows, where the endpoints must show the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct Equal<T>(pub T);

impl<T: Clone + PartialEq> Agree for Equal<T> {
    type Key = T;

    fn key(&self) -> T {
        self.0.clone()
    }
}

/// A question that one round answers. It is not exported, so that only this crate can ask such questions.
#[expect(unnameable_types, reason = "nobody else implements it")]
pub trait Question: fmt::Debug + Send + Sync + 'static {
    /// What the question is about.
    type Subject: fmt::Debug + Clone + PartialEq + Send + Sync + 'static;
    /// What the answer shows.
    type Output: fmt::Debug + Clone + Send + Sync + 'static;

    /// Returns the requests.
    fn requests(subject: &Self::Subject) -> Vec<Request>;

    /// Reads the replies.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the answers cannot be used.
    fn read(subject: &Self::Subject, replies: &Replies<'_>, known: &Known) -> Result<Self::Output, Fault>;

    /// Returns the height of the newest checkpoint, if the answer shows it, and else 0.
    fn height(_: &Self::Output) -> u64 {
        0
    }
}

/// Asks a question in one round: for example [`Balance`](super::Balance) or [`Check`](super::Check).
#[derive(Debug)]
pub struct Ask<Q: Question> {
    subject: Q::Subject,
    identity: Identity,
    known: Known,
    height: u64,
}

impl<Q: Question> Machine for Ask<Q> {
    type Subject = On<Q::Subject>;
    type Output = Q::Output;
    const MAX_ROUNDS: usize = 1;

    fn start(on: &On<Q::Subject>, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (identity, known) = (identity(&on.network)?, Known::default().with_height(known.height()));
        Ok((Self { subject: on.subject.clone(), identity, known, height: 0 }, Q::requests(&on.subject)))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Q::Output>, Fault> {
        let output = Q::read(&self.subject, replies, &self.known)?;
        self.height = Q::height(&output);
        Ok(Turn::Done(output))
    }

    fn learned(&self) -> Known {
        Known::default().with_height(self.height)
    }
}
