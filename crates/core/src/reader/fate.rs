//! What becomes of a transaction that was sent: the same two rounds on every chain.

use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::{Agree, Fault, Identity, Known, Machine, Replies, Request, Submission, Turn};
use crate::report::Refusal;

/// What becomes of a signed transaction that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is in a block, can never be, or neither is known")]
pub enum Fate {
    /// It may still be included, or nobody can tell.
    Open,
    /// It is in a block, and succeeded.
    Included,
    /// It can never be included, or a final block contains it as a failure. Either way it pays nothing. Contains the reason in words.
    Dead(String),
}

impl Agree for Fate {
    type Key = Discriminant<Self>;

    /// Returns which fate it is, without the words of the reason.
    fn key(&self) -> Self::Key {
        discriminant(self)
    }
}

/// What an endpoint knows of a transaction by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the four places where a transaction can be")]
pub enum Trace {
    /// The endpoint does not know it.
    Unknown,
    /// It waits, or it is in a block that may still be replaced and failed there.
    Waiting,
    /// It is in a block, and succeeded.
    Included,
    /// It failed in a final block. Contains the reason in words.
    Failed(String),
}

/// What a chain decides about the fate of a transaction. [`FateOf`] decides the order.
///
/// **Not covered by semantic versioning.** The family crates implement it.
pub trait Tracing: Send + Sync + Sized + 'static {
    /// Decodes a transaction, and requires that it has the stated id.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at `/payload` or `/id`.
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal>;

    /// Returns how an endpoint shows which chain it serves.
    fn identity(&self) -> Identity;

    /// Returns the requests that look the transaction up.
    fn find(&self) -> Vec<Request>;

    /// Reads what the endpoint knows of the transaction. Called after [`Tracing::read_marks`].
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the replies cannot be used.
    fn read_found(&self, replies: &Replies<'_>) -> Result<Trace, Fault>;

    /// Returns the requests that show how far the chain is.
    fn marks(&self) -> Vec<Request>;

    /// Reads how far the chain is. Returns the requests for the proof that the transaction can never be included; `None` if it still can,
    /// or if the endpoint has no such proof.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the replies cannot be used.
    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault>;

    /// Reads the proof. Returns the reason in words why the transaction can never be included; `None` if it still can.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the replies cannot be used.
    fn read_proof(&mut self, replies: &Replies<'_>) -> Result<Option<String>, Fault>;

    /// Returns what the reading adds to what is known about the endpoint.
    fn learned(&self) -> Known {
        Known::default()
    }
}

/// Reads from one endpoint what becomes of a transaction.
///
/// The first round looks the transaction up and reads how far the chain is, the second one reads the proof that it can never be included.
/// The transaction is looked up again together with the proof, because it may have been included since the first round. It is dead only if
/// the endpoint does not know it in either round. A missing or odd answer is a fault, or leaves the fate open.
pub struct FateOf<T: Tracing> {
    tracing: T,
    stage: Stage,
}

/// What the last requests asked for.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Marks,
    Proof,
    Done,
}

impl<T: Tracing> fmt::Debug for FateOf<T> {
    /// Leaves out the transaction, because a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FateOf({:?})", self.stage)
    }
}

impl<T: Tracing> Machine for FateOf<T> {
    type Subject = Submission;
    type Output = Fate;
    const MAX_ROUNDS: usize = 2;

    fn start(submission: &Submission, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let tracing = T::decode(submission, known)?;
        let requests = with_find(&tracing, tracing.marks());
        Ok((Self { tracing, stage: Stage::Marks }, requests))
    }

    fn identity(&self) -> Identity {
        self.tracing.identity()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Fate>, Fault> {
        let tracing = &mut self.tracing;
        let Some((found, others)) = replies.all().split_at_checked(tracing.find().len()) else {
            return Err(Fault::TooMuch("the transaction was not looked up"));
        };
        let (found, others) = (Replies::new(found), Replies::new(others));
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let (requests, reason) = match stage {
            Stage::Marks => (tracing.read_marks(&others)?, None),
            Stage::Proof => (None, tracing.read_proof(&others)?),
            Stage::Done => return Err(Fault::TooMuch("the reading is complete")),
        };
        let fate = match (tracing.read_found(&found)?, requests, reason) {
            (Trace::Included, ..) => Fate::Included,
            (Trace::Failed(why), ..) | (Trace::Unknown, None, Some(why)) => Fate::Dead(why),
            (Trace::Unknown, Some(requests), _) => {
                self.stage = Stage::Proof;
                return Ok(Turn::Ask(with_find(tracing, requests)));
            }
            (Trace::Unknown | Trace::Waiting, ..) => Fate::Open,
        };
        Ok(Turn::Done(fate))
    }

    fn learned(&self) -> Known {
        self.tracing.learned()
    }
}

/// Puts the requests that look the transaction up before the others.
fn with_find<T: Tracing>(tracing: &T, others: Vec<Request>) -> Vec<Request> {
    let mut requests = tracing.find();
    requests.extend(others);
    requests
}
