//! Reads from one endpoint what becomes of a transaction that was sent.

use countersign_core::reader::{
    Agree, Answer, Drive, Failure, Fate, Fault, Known, Machine, Miscount, Observation, Reader, Remembered, Request, Submission,
};
use countersign_core::{Code, Family, Network, Refusal};

use super::any_reader;

any_reader! { AnyFate of FateOf: Submission => FateObservation by FateReader }

/// Reads from one endpoint whether a transaction that was sent can still be included.
#[derive(Debug)]
pub struct FateReader(AnyFate);

/// What becomes of a transaction, according to one endpoint. Only a [`FateReader`] makes one.
#[derive(Debug, Clone)]
pub struct FateObservation {
    fate: Fate,
    known: Known,
}

impl FateReader {
    /// Creates the reader of a transaction. `id` is its id as explorers write it, and `payload` the form that nodes accept: see
    /// [`BroadcastTransaction`](crate::BroadcastTransaction). `known` is what the endpoint showed before: keep what
    /// [`FateObservation`] adds to it, because on Solana the death of a transaction shows only in two readings.
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] if this build lacks the family of the chain, and another [`Refusal`] if the payload is malformed.
    pub fn new(network: &Network, id: &str, payload: &str, known: &Known) -> Result<Self, Refusal> {
        let submission = Submission::new(network, id, payload);
        AnyFate::new(network.family(), &submission, known).map(Self)
    }
}

impl FateObservation {
    fn new<M: Machine<Output = Fate>>(observation: Observation<M>) -> Self {
        let known = observation.known().clone();
        Self { fate: observation.into_output(), known }
    }

    /// The fate changes with every block, so an earlier one never takes the place of a reading.
    const fn is_of(&self, _: &Submission) -> bool {
        false
    }

    /// Returns what becomes of the transaction.
    #[must_use]
    pub const fn fate(&self) -> &Fate {
        &self.fate
    }

    /// Returns whether the transaction can never be included: the question to put to a quorum. Only if as many endpoints as must agree say
    /// so, each alone, may another transaction take its place.
    ///
    /// # Errors
    ///
    /// What the endpoint shows instead, in words.
    pub fn is_dead(&self) -> Result<(), String> {
        match &self.fate {
            Fate::Dead(_) => Ok(()),
            Fate::Open => Err("the transaction may still be included".to_owned()),
            Fate::Included => Err("the transaction is in a block".to_owned()),
        }
    }
}

impl Agree for FateObservation {
    type Key = <Fate as Agree>::Key;

    fn key(&self) -> Self::Key {
        self.fate.key()
    }
}

impl Remembered for FateObservation {
    fn known(&self) -> &Known {
        &self.known
    }

    fn stamp(&self) -> Option<&[u8]> {
        None
    }
}
