//! Reading an HTLC on any chain, through connections of the caller's own.
//!
//! An [`HtlcReader`] says what to ask one endpoint, in the chain's ordinary RPC, and takes the answers as untrusted bytes. It opens no
//! connection and reads no clock. A [`HtlcQuorum`] compares what several endpoints show, and [`Funded::judge`](crate::Funded::judge)
//! makes the proof that lets the secret go. `countersign-transport` has the loop for Rust, with time limits; the bindings have it for other
//! languages.
//!
//! ```
//! use countersign::reader::{Answer, Fault, HtlcQuorum, HtlcReader, Known, Request};
//! use countersign::chains::{FinalityRule, UnixTime};
//! use countersign::evidence::{Hold, VerifiedTerms};
//! use countersign::{Funded, Refusal};
//!
//! /// Reads the destination from two endpoints. `send` sends one request to one of them, as
//! /// it is.
//! fn read(
//!     terms: &VerifiedTerms,
//!     send: impl Fn(&str, &Request) -> Answer,
//!     rule: &FinalityRule,
//!     now: UnixTime,
//! ) -> Result<Result<Funded, Hold>, Refusal> {
//!     let mut quorum = HtlcQuorum::new(["one", "another"], 2)?;
//!     for endpoint in ["one", "another"] {
//!         let mut reader = HtlcReader::new(&terms.destination, &Known::default())?;
//!         while !reader.requests().is_empty() {
//!             let answers: Vec<_> =
//!                 reader.requests().iter().map(|request| send(endpoint, request)).collect();
//!             reader.answer(&answers).expect("one answer for each request");
//!         }
//!         quorum.hear(endpoint, reader.finish());
//!     }
//!     Ok(Funded::judge(terms, &quorum, rule, now))
//! }
//! ```
//!
//! # Only a reader makes an observation
//!
//! ```compile_fail
//! use countersign::{reader::HtlcObservation, evidence::HtlcTerms};
//! use countersign::reader::Finding;
//!
//! // Its fields are private, and it has no constructor.
//! fn forge(terms: HtlcTerms, finding: Finding) -> HtlcObservation {
//!     HtlcObservation { terms, finding }
//! }
//! ```
//!
//! A machine that somebody else declares makes observations of its own type, which are not those of a family:
//!
//! ```compile_fail
//! use countersign::reader::{HtlcObservation, Machine, Observation};
//!
//! fn forge<Mine: Machine>(mine: Observation<Mine>) -> HtlcObservation {
//!     mine.into()
//! }
//! ```

mod fate;
mod send;

pub use fate::{FateObservation, FateReader};
pub use send::{NotSent, SendObservation, SendReader, check_sent};

pub use countersign_core::reader::{
    Agree, Answer, Doubt, Drive, Failure, FailureKind, Fate, Fault, FaultCode, Format, Head, Identity, Known, MAX_REQUESTS, MAX_TOTAL,
    Machine, Miscount, Next, Observation, Quorum, Reader, Remembered, Replies, Reply, Request, RpcError, Sent, Submission, Turn, Verdict,
    json_rpc,
};
pub use countersign_core::{Finding, Judgement, combine};

use countersign_core::{Code, Family, FinalityRule, Hold, HtlcState, HtlcTerms, ObservedAt, Refusal, SecretHash, UnixTime, VerifiedTerms};

/// Declares the enum of the families' readers, and lets the reader around it drive the one that it holds.
macro_rules! any_reader {
    ($any:ident of $machine:ident: $subject:ty => $observation:ident by $reader:ident) => {
        any_family! {
            /// The reader of one family.
            #[allow(unreachable_pub, reason = "the macro declares public enums")]
            #[allow(clippy::large_enum_variant, reason = "a reader lives for one reading, and is never stored by the thousand")]
            $any: Reader<reader::$machine>
        }

        impl $any {
            fn new(family: Family, subject: &$subject, known: &Known) -> Result<Self, Refusal> {
                let unsupported = |other| Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other));
                for_each! { by_family! [family, |wrap: Self| Reader::new(subject, known).map(wrap), other => unsupported(other)] }
            }
        }

        impl Drive for $reader {
            type Observation = $observation;

            fn requests(&self) -> &[Request] {
                each_family!(&self.0, $any => |reader| reader.requests())
            }

            fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount> {
                each_family!(&mut self.0, $any => |reader| reader.answer(answers))
            }

            fn fail(&mut self, failure: Failure) {
                each_family!(&mut self.0, $any => |reader| reader.fail(failure));
            }

            fn stamp(&self) -> Option<Vec<u8>> {
                each_family!(&self.0, $any => |reader| reader.stamp())
            }

            fn is_of_subject(&self, kept: &$observation) -> bool {
                each_family!(&self.0, $any => |reader| kept.is_of(reader.subject()))
            }

            fn finish(self) -> Result<$observation, Fault> {
                each_family!(self.0, $any => |reader| reader.finish().map($observation::new))
            }
        }
    };
}
use any_reader;

any_reader! { AnyReader of Htlc: HtlcTerms => HtlcObservation by HtlcReader }

/// Reads one HTLC from one endpoint. The family of its chain decides what is asked.
///
/// Three rounds of requests while the HTLC is open, and a constant number for ends, pages and a node's RPC.
#[derive(Debug)]
pub struct HtlcReader(AnyReader);

/// What one endpoint shows of an HTLC. Only an [`HtlcReader`] makes one.
#[derive(Debug, Clone)]
pub struct HtlcObservation {
    terms: HtlcTerms,
    finding: Finding,
    known: Known,
    stamp: Option<Vec<u8>>,
}

impl HtlcReader {
    /// Creates the reader of an HTLC. `known` is what the endpoint showed before.
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] if this build lacks the family of the chain, and another [`Refusal`] if the terms do not name an HTLC.
    pub fn new(terms: &HtlcTerms, known: &Known) -> Result<Self, Refusal> {
        AnyReader::new(terms.family, terms, known).map(Self)
    }

    /// Returns the requests to send now, all at once: none once the reading has ended. Calling it again changes nothing.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        Drive::requests(self)
    }

    /// Takes the answers to these requests, one for each, in their order.
    ///
    /// # Errors
    ///
    /// [`Miscount`] for another number of answers, which changes nothing. What an endpoint did wrong shows [`HtlcReader::finish`].
    pub fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount> {
        Drive::answer(self, answers)
    }

    /// Ends the reading because the endpoint did not answer.
    pub fn fail(&mut self, failure: Failure) {
        Drive::fail(self, failure);
    }

    /// Returns the terms that are read.
    #[must_use]
    pub const fn terms(&self) -> &HtlcTerms {
        each_family!(&self.0, AnyReader => |reader| reader.subject())
    }

    /// Returns the number of rounds so far.
    #[must_use]
    pub const fn rounds(&self) -> usize {
        each_family!(&self.0, AnyReader => |reader| reader.rounds())
    }

    /// Returns how the reading ended: what the endpoint shows, or why its answers cannot be used. `None` while it goes on.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<HtlcObservation, Fault>> {
        each_family!(&self.0, AnyReader => |reader| match reader.next() {
            Next::Ask(_) => None,
            Next::Done(observation) => Some(Ok(HtlcObservation::new(observation.clone()))),
            Next::Failed(fault) => Some(Err(fault.clone())),
        })
    }

    /// Returns the observation.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of a reader that has failed, or of one that was not driven to its end.
    pub fn finish(self) -> Result<HtlcObservation, Fault> {
        Drive::finish(self)
    }
}

impl HtlcObservation {
    /// Takes the observation of a family's reader. Private: only [`HtlcReader::finish`] calls it, with the families of this crate.
    fn new<M: Machine<Subject = HtlcTerms, Output = Finding>>(observation: Observation<M>) -> Self {
        let terms = observation.subject().clone();
        let (known, stamp) = (observation.known().clone(), observation.stamp().map(<[u8]>::to_vec));
        Self { terms, finding: observation.into_output(), known, stamp }
    }

    fn is_of(&self, terms: &HtlcTerms) -> bool {
        self.terms == *terms
    }

    /// Returns the terms that were read.
    #[must_use]
    pub const fn terms(&self) -> &HtlcTerms {
        &self.terms
    }

    /// Returns what the endpoint shows.
    #[must_use]
    pub const fn finding(&self) -> &Finding {
        &self.finding
    }

    /// Returns what this reading adds to what is known about the endpoint. Keep it if the quorum agrees with the observation.
    #[must_use]
    pub const fn known(&self) -> &Known {
        &self.known
    }

    /// Compares the finding with the verified terms. Returns the remaining timelock at `now`, in the chain's unit.
    ///
    /// # Errors
    ///
    /// A [`Hold`] with the reason why the secret must not be released.
    pub fn judge(&self, terms: &VerifiedTerms, rule: &FinalityRule, now: UnixTime) -> Result<u64, Hold> {
        self.judgement(terms, rule, now).map(|judgement| judgement.left_at(now))
    }

    pub(crate) fn judgement(&self, terms: &VerifiedTerms, rule: &FinalityRule, now: UnixTime) -> Result<Judgement, Hold> {
        if self.terms != terms.destination {
            return Err(Hold::Unclear("the chain was read for other terms".to_owned()));
        }
        Judgement::new(terms, &self.finding, rule, now)
    }

    /// Returns whether the state is in a final block, by the rule of its chain.
    #[must_use]
    pub fn is_final(&self, rule: &FinalityRule) -> bool {
        self.finding.seen.is_final(&self.terms, rule)
    }
}

impl Agree for HtlcObservation {
    type Key = <Finding as Agree>::Key;

    fn key(&self) -> Self::Key {
        self.finding.key()
    }
}

impl Remembered for HtlcObservation {
    fn known(&self) -> &Known {
        &self.known
    }

    fn stamp(&self) -> Option<&[u8]> {
        self.stamp.as_deref()
    }
}

/// What several endpoints show of one HTLC.
#[derive(Debug, Clone)]
pub struct HtlcQuorum(Quorum<HtlcObservation>);

impl From<Quorum<HtlcObservation>> for HtlcQuorum {
    fn from(quorum: Quorum<HtlcObservation>) -> Self {
        Self(quorum)
    }
}

impl HtlcQuorum {
    /// Creates a quorum of endpoints: see [`Quorum::new`].
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`] unless `needed` is more than half of the different endpoints, and at most all of them.
    pub fn new<'e>(endpoints: impl IntoIterator<Item = &'e str>, needed: usize) -> Result<Self, Refusal> {
        Quorum::new(endpoints, needed).map(Self)
    }

    /// Takes what an endpoint shows. The first word of each endpoint counts.
    pub fn hear(&mut self, endpoint: &str, outcome: Result<HtlcObservation, Fault>) {
        self.0.hear(endpoint, outcome);
    }

    /// Returns whether enough endpoints agree, or every endpoint has spoken.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.is_complete() || self.0.agreed::<Hold>().is_ok()
    }

    /// Returns the state that enough endpoints agree on, and where it was seen. For display, and for what a single number decides: see
    /// [`combine`].
    ///
    /// # Errors
    ///
    /// [`Doubt`] if too few endpoints agree.
    pub fn state(&self) -> Result<(HtlcState, ObservedAt), Doubt<Hold>> {
        let group: Vec<_> = self.0.agreed()?.into_iter().map(HtlcObservation::finding).collect();
        combine(&group, self.0.needed()).ok_or_else(|| Doubt::Held(Hold::Unclear("no endpoint was asked".to_owned())))
    }

    /// Returns whether enough endpoints each show the state in a final block.
    #[must_use]
    pub fn is_final(&self, rule: &FinalityRule) -> bool {
        let is_final = |one: &HtlcObservation| if one.is_final(rule) { Ok(()) } else { Err(()) };
        matches!(self.0.ask(is_final), Verdict::Stands(..))
    }

    /// Requires that enough endpoints show an HTLC that holds what it was read for, in a final block and with time left. This releases no
    /// secret: only [`Funded::judge`](crate::Funded::judge) compares with terms that were verified. It tells whether a redemption is worth
    /// anything where the terms are only [stated](HtlcTerms::stated).
    ///
    /// # Errors
    ///
    /// A [`Hold`] with the reason why a redemption would not be safe.
    pub fn check_held(&self, rule: &FinalityRule, now: UnixTime) -> Result<(), Hold> {
        let left =
            |one: &HtlcObservation| Judgement::of_htlc("", &one.terms, &one.finding, rule, now).map(|judgement| judgement.left_at(now));
        match self.0.ask(left) {
            Verdict::Stands(..) => Ok(()),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(doubt.into()),
        }
    }

    /// Returns whether every observation is of these terms.
    #[must_use]
    pub fn is_of(&self, terms: &HtlcTerms) -> bool {
        self.0.heard().filter_map(|(_, word)| word.ok()).all(|one| one.terms == *terms)
    }

    /// Returns the secret if any endpoint shows it. A value that hashes to the hash of the terms is the secret, whoever shows it.
    #[must_use]
    pub fn public_secret(&self) -> Option<[u8; 32]> {
        self.0.heard().find_map(|(_, word)| match word.ok()? {
            HtlcObservation { terms, finding: Finding { state: HtlcState::Redeemed { secret: Some(secret), .. }, .. }, .. } => {
                (SecretHash::of(secret) == terms.secret_hash).then_some(*secret)
            }
            _ => None,
        })
    }

    pub(crate) const fn quorum(&self) -> &Quorum<HtlcObservation> {
        &self.0
    }
}
