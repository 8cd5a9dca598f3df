//! Sends a signed transaction to one endpoint.

use countersign_core::reader::{
    Agree, Answer, Doubt, Drive, Failure, Fault, Known, Machine, Miscount, Observation, Quorum, Reader, Remembered, Request, Sent,
    Submission, Verdict,
};
use countersign_core::{Code, Family, Network, Refusal};

use crate::states::{any_family, each_family};

any_family! {
    /// The sender of one family.
    #[allow(unreachable_pub, reason = "the macro declares public enums")]
    #[allow(clippy::large_enum_variant, reason = "a reader lives for one reading, and is never stored by the thousand")]
    AnySender:
        Reader<countersign_evm::reader::Broadcast>,
        Reader<countersign_tron::reader::Broadcast>,
        Reader<countersign_starknet::reader::Broadcast>,
        Reader<countersign_solana::reader::Broadcast>,
        Reader<countersign_sui::reader::Broadcast>,
        Reader<countersign_bitcoin::reader::Broadcast>
}

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
    /// [`Broadcast`](crate::Broadcast).
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] if this build lacks the family of the chain, and another [`Refusal`] if the payload is malformed.
    pub fn new(network: &Network, id: &str, payload: &str, known: &Known) -> Result<Self, Refusal> {
        let submission = Submission::new(network, id, payload);
        Ok(Self(match network.family() {
            #[cfg(feature = "evm")]
            Family::Evm => AnySender::Evm(Reader::new(&submission, known)?),
            #[cfg(feature = "tron")]
            Family::Tron => AnySender::Tron(Reader::new(&submission, known)?),
            #[cfg(feature = "starknet")]
            Family::Starknet => AnySender::Starknet(Reader::new(&submission, known)?),
            #[cfg(feature = "solana")]
            Family::Solana => AnySender::Solana(Reader::new(&submission, known)?),
            #[cfg(feature = "sui")]
            Family::Sui => AnySender::Sui(Reader::new(&submission, known)?),
            #[cfg(feature = "bitcoin")]
            Family::Bitcoin => AnySender::Bitcoin(Reader::new(&submission, known)?),
            #[allow(unreachable_patterns, reason = "a build with every family has no other")]
            other => return Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other)),
        }))
    }
}

impl Drive for SendReader {
    type Observation = SendObservation;

    fn requests(&self) -> &[Request] {
        each_family!(&self.0, AnySender => |reader| reader.requests())
    }

    fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount> {
        each_family!(&mut self.0, AnySender => |reader| reader.answer(answers))
    }

    fn fail(&mut self, failure: Failure) {
        each_family!(&mut self.0, AnySender => |reader| reader.fail(failure));
    }

    fn stamp(&self) -> Option<Vec<u8>> {
        None
    }

    fn is_of_subject(&self, _: &SendObservation) -> bool {
        false
    }

    fn finish(self) -> Result<SendObservation, Fault> {
        each_family!(self.0, AnySender => |reader| reader.finish().map(SendObservation::new))
    }
}

impl SendObservation {
    fn new<M: Machine<Output = Sent>>(observation: Observation<M>) -> Self {
        let known = observation.known().clone();
        Self { sent: observation.into_output(), known }
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
