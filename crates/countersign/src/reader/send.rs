//! Sends a signed transaction to one endpoint.

use countersign_core::reader::{
    Agree, Answer, Doubt, Drive, Failure, Fault, Known, Machine, Miscount, Observation, Quorum, Reader, Remembered, Request, Sent,
    Submission, Verdict,
};
use countersign_core::{Code, Family, Network, Refusal};

use super::any_reader;

any_reader! { AnySender of Broadcast: Submission => SendObservation by SendReader }

/// Sends one signed transaction to one endpoint, after it has shown that it serves the right chain. If the endpoint refuses the
/// transaction, the reader asks whether the chain knows it already.
#[derive(Debug)]
pub struct SendReader(AnySender);

/// What one endpoint says to a transaction that was sent to it. Only a [`SendReader`] makes one.
#[derive(Debug, Clone)]
pub struct SendObservation {
    sent: Sent,
    known: Known,
}

impl SendReader {
    /// Creates the sender of a transaction. `id` is its id as explorers write it, and `payload` the form that nodes accept: see
    /// [`BroadcastTransaction`](crate::BroadcastTransaction).
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] if this build lacks the family of the chain, and another [`Refusal`] if the payload is malformed.
    pub fn new(network: &Network, id: &str, payload: &str, known: &Known) -> Result<Self, Refusal> {
        let submission = Submission::new(network, id, payload);
        AnySender::new(network.family(), &submission, known).map(Self)
    }
}

impl SendObservation {
    fn new<M: Machine<Output = Sent>>(observation: Observation<M>) -> Self {
        let known = observation.known().clone();
        Self { sent: observation.into_output(), known }
    }

    /// An earlier word on a transaction never takes the place of sending it.
    const fn is_of(&self, _: &Submission) -> bool {
        false
    }

    /// Returns what the endpoint says.
    #[must_use]
    pub const fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Returns whether the endpoint accepts the transaction: the question to put to a quorum.
    ///
    /// # Errors
    ///
    /// The endpoint's reason.
    pub fn accepts(&self) -> Result<(), String> {
        match &self.sent {
            Sent::Accepted => Ok(()),
            Sent::Rejected(why) => Err(why.clone()),
        }
    }
}

/// Why a transaction does not count as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is rejected, or nobody knows")]
pub enum NotSent {
    /// Too few endpoints accept it, and this one rejects it.
    Rejected {
        /// The endpoint.
        endpoint: String,
        /// Its reason.
        message: String,
        /// The number of endpoints that reject it.
        by: usize,
        /// The number of endpoints that accept it. Each of them may have relayed it.
        accepted: usize,
        /// The number of endpoints that must agree.
        needed: usize,
    },
    /// Too few endpoints accept it, and none rejects it. One of them may have relayed it.
    Unknown(Doubt<String>),
}

impl NotSent {
    /// Returns whether as many endpoints reject the transaction as must agree, and none accepts it. That a single one rejects it says
    /// nothing, because it may lie, or lack what the transaction depends on.
    #[must_use]
    pub const fn is_by_quorum(&self) -> bool {
        matches!(self, Self::Rejected { by, accepted: 0, needed, .. } if *by >= *needed)
    }
}

/// Returns whether a transaction counts as sent: as many endpoints accept it as must agree, because a single one may keep it to itself.
///
/// # Errors
///
/// [`NotSent`].
pub fn check_sent(quorum: &Quorum<SendObservation>) -> Result<(), NotSent> {
    let doubt = match quorum.ask(SendObservation::accepts) {
        Verdict::Stands(..) => return Ok(()),
        Verdict::Open(doubt) | Verdict::Falls(doubt) => doubt,
    };
    let mut rejections = quorum.heard().filter_map(|(name, word)| Some((name.to_owned(), word.ok()?.accepts().err()?)));
    let Some((endpoint, message)) = rejections.next() else { return Err(NotSent::Unknown(doubt)) };
    let by = rejections.count().saturating_add(1);
    let accepted = quorum.heard().filter(|(_, word)| word.is_ok_and(|one| one.accepts().is_ok())).count();
    Err(NotSent::Rejected { endpoint, message, by, accepted, needed: quorum.needed() })
}

impl Agree for SendObservation {
    type Key = bool;

    fn key(&self) -> bool {
        self.sent.key()
    }
}

impl Remembered for SendObservation {
    fn known(&self) -> &Known {
        &self.known
    }

    fn stamp(&self) -> Option<&[u8]> {
        None
    }
}
