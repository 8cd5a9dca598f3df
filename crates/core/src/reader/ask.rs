//! Questions that one round answers.

use std::fmt;

use countersign_chains::BlockHeight;

use super::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use crate::report::{Code, Refusal};

/// A question that one round answers: a balance, the newest block, the status of a transaction. It is the subject of an [`Ask`].
///
/// **Not covered by semantic versioning.** The family crates implement it.
pub trait Question: fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// What the answers show.
    type Output: fmt::Debug + Clone + Send + Sync + 'static;

    /// Returns how an endpoint shows which chain it serves.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if the question cannot be asked, because it is the caller's and invalid.
    fn identity(&self) -> Result<Identity, Refusal>;

    /// Returns the requests.
    fn requests(&self) -> Vec<Request>;

    /// Reads the replies, in the order of the requests.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the endpoint's answers cannot be used.
    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<Self::Output, Fault>;

    /// Returns the height of the newest block that the answers show; 0 if they show none.
    fn height(_: &Self::Output) -> BlockHeight {
        BlockHeight::default()
    }
}

/// The machine that asks a [`Question`] in one round.
#[derive(Debug)]
pub struct Ask<Q: Question> {
    question: Q,
    identity: Identity,
    known: Known,
    height: BlockHeight,
}

impl<Q: Question> Machine for Ask<Q> {
    type Subject = Q;
    type Output = Q::Output;
    const MAX_ROUNDS: usize = 1;

    fn start(question: &Q, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine =
            Self { question: question.clone(), identity: question.identity()?, known: known.clone(), height: BlockHeight::default() };
        Ok((machine, question.requests()))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Q::Output>, Fault> {
        let output = self.question.read(replies, &self.known)?;
        self.height = Q::height(&output);
        Ok(Turn::Done(output))
    }

    fn learned(&self) -> Known {
        Known::default().with_height(self.height)
    }
}

/// An output that endpoints must show equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct Equal<T>(pub T);

impl<T: Clone + PartialEq> Agree for Equal<T> {
    type Key = T;

    fn key(&self) -> T {
        self.0.clone()
    }
}

/// Whether an endpoint's answers let an intended act pass. Endpoints must agree that they do, or on the code of the refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it passes or is refused")]
pub struct Judged<T>(pub Result<T, Refusal>);

impl<T> Judged<Equal<Option<T>>> {
    /// Judges the transaction that an endpoint shows under an id. A transaction that cannot be one of an order is a refusal on which
    /// endpoints can agree. Anything else that is wrong with it is the fault of the endpoint; so is a transaction with another id, whatever
    /// it is. `id_of` returns the id that follows from the content, where the content could be decoded that far.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of the endpoint.
    pub fn found<I>(read: Result<T, Refusal>, id: I, id_of: impl FnOnce(Option<&T>) -> Option<I>) -> Result<Self, Fault>
    where
        I: PartialEq + fmt::Display,
    {
        if let Some(actual) = id_of(read.as_ref().ok())
            && actual != id
        {
            let refusal = Refusal::new(Code::TransactionMismatch, "").with_expected(id.to_string()).with_actual(actual.to_string());
            return Err(refusal.with_reason("the endpoint shows another transaction under this id").into());
        }
        match read {
            Ok(transaction) => Ok(Self(Ok(Equal(Some(transaction))))),
            Err(refusal) if refusal.code() == Code::TransactionMismatch => Ok(Self(Err(refusal))),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Creates what an endpoint shows that does not know the transaction.
    #[must_use]
    pub const fn unknown() -> Self {
        Self(Ok(Equal(None)))
    }
}

impl<T: Agree> Agree for Judged<T> {
    type Key = Result<T::Key, Code>;

    fn key(&self) -> Self::Key {
        self.0.as_ref().map(T::key).map_err(Refusal::code)
    }
}
