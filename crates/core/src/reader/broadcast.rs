//! Sending a signed transaction: the same three rounds on every chain.

use std::fmt;

use super::{Fault, Identity, Known, Machine, Replies, Reply, Request, Sent, Submission, Turn};
use crate::report::Refusal;

/// What a chain decides about sending a transaction. [`Broadcast`] decides the order.
///
/// **Not covered by semantic versioning.** The family crates implement it.
pub trait Sending: Send + Sync + Sized + 'static {
    /// Decodes a transaction, and requires that it has the stated id.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at `/payload` or `/id`.
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal>;

    /// Returns how an endpoint shows which chain it serves.
    fn identity(&self) -> Identity;

    /// Returns what else is asked before the transaction is sent. Nothing by default.
    fn before(&self) -> Option<Request> {
        None
    }

    /// Checks the reply to [`Sending::before`]. Returns why the transaction can no longer be mined; `None` if nothing is wrong with it.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the transaction must not be sent to this endpoint.
    fn check(&self, reply: &Reply<'_>) -> Result<Option<NotTaken>, Fault> {
        let _ = reply;
        Ok(None)
    }

    /// Returns the request that sends the transaction.
    fn send(&self) -> Request;

    /// Reads the reply to the transaction.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the reply is about another transaction, or none at all.
    fn read_sent(&self, reply: &Reply<'_>) -> Result<Result<Sent, NotTaken>, Fault>;

    /// Returns the request that looks the transaction up, after the endpoint has not taken it.
    fn find(&self) -> Request;

    /// Reads what the endpoint knows of the transaction; `None` if it does not know it.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the reply cannot be used.
    fn read_found(&self, reply: &Reply<'_>) -> Result<Option<Sent>, Fault>;
}

/// Why an endpoint has not taken a transaction. It stands only if the endpoint does not know the transaction already.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the transaction is at fault, or the node")]
pub enum NotTaken {
    /// The transaction itself is invalid. Contains the node's reason.
    Invalid(String),
    /// The node has a problem of its own, and may have relayed the transaction.
    Failed(Fault),
}

/// Sends a signed transaction to one endpoint.
///
/// The first round asks for the chain's identity alone: the transaction may contain the secret, and must not reach an endpoint of another
/// chain, and not at all to one that would no longer use it. The second one sends. If the endpoint does not take the transaction, the
/// third one looks it up, because nodes reject what they know already.
pub struct Broadcast<S: Sending> {
    sending: S,
    stage: Stage,
}

/// What the last request asked for.
#[derive(Debug)]
enum Stage {
    Identity,
    Send,
    Find(NotTaken),
    Done,
}

impl<S: Sending> fmt::Debug for Broadcast<S> {
    /// Leaves out the transaction, because a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broadcast({:?})", self.stage)
    }
}

impl<S: Sending> Machine for Broadcast<S> {
    type Subject = Submission;
    type Output = Sent;
    const MAX_ROUNDS: usize = 3;

    fn start(submission: &Submission, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let sending = S::decode(submission, known)?;
        let before = sending.before().into_iter().collect();
        Ok((Self { sending, stage: Stage::Identity }, before))
    }

    fn identity(&self) -> Identity {
        self.sending.identity()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Sent>, Fault> {
        let sending = &self.sending;
        let (stage, turn) = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Identity => {
                let dead = if sending.before().is_some() { sending.check(&replies.get(0)?)? } else { None };
                match dead {
                    Some(why) => (Stage::Find(why), Turn::Ask(vec![sending.find()])),
                    None => (Stage::Send, Turn::Ask(vec![sending.send()])),
                }
            }
            Stage::Send => match sending.read_sent(&replies.get(0)?)? {
                Ok(sent) => (Stage::Done, Turn::Done(sent)),
                Err(why) => (Stage::Find(why), Turn::Ask(vec![sending.find()])),
            },
            Stage::Find(why) => match (sending.read_found(&replies.get(0)?)?, why) {
                (Some(sent), _) => (Stage::Done, Turn::Done(sent)),
                (None, NotTaken::Invalid(why)) => (Stage::Done, Turn::Done(Sent::rejected(&why))),
                (None, NotTaken::Failed(fault)) => return Err(fault),
            },
            Stage::Done => return Err(Fault::TooMuch("the reading is complete")),
        };
        self.stage = stage;
        Ok(turn)
    }
}
