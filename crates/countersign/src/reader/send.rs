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
    },
    /// Too few endpoints accept it, and none rejects it. One of them may have relayed it.
    Unknown(Doubt<String>),
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
    let rejection = quorum.heard().find_map(|(name, word)| Some((name.to_owned(), word.ok()?.accepts().err()?)));
    Err(rejection.map_or_else(|| NotSent::Unknown(doubt), |(endpoint, message)| NotSent::Rejected { endpoint, message }))
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
