//! Reads the newest block from one endpoint.

use countersign_core::reader::{
    Agree, Answer, Doubt, Drive, Failure, Fault, Head, Known, Machine, Miscount, Observation, Observed, Quorum, Reader, Request, Verdict,
};
use countersign_core::{Code, Family, HeadDoubt, Network, Refusal, check_head_time};

use crate::states::{any_family, each_family};

any_family! {
    /// The reader of one family.
    #[allow(unreachable_pub, reason = "the macro declares public enums")]
    #[allow(clippy::large_enum_variant, reason = "a reader lives for one reading, and is never stored by the thousand")]
    AnyHead:
        Reader<countersign_evm::reader::Tip>,
        Reader<countersign_tron::reader::Tip>,
        Reader<countersign_starknet::reader::NewestBlock>,
        Reader<countersign_solana::reader::Head>,
        Reader<countersign_core::reader::Ask<countersign_sui::reader::On<countersign_sui::reader::NewestCheckpoint>>>,
        Reader<countersign_bitcoin::reader::NewestBlock>
}

/// Reads the newest block from one endpoint, after it has shown that it serves the right chain: one round, and two on the RPC of a
/// Bitcoin-like node.
#[derive(Debug)]
pub struct HeadReader {
    family: Family,
    reader: AnyHead,
}

/// What one endpoint shows as the newest block. Only a [`HeadReader`] makes one.
#[derive(Debug, Clone)]
pub struct HeadObservation {
    family: Family,
    head: Head,
    known: Known,
}

impl HeadReader {
    /// Creates the reader of a chain's newest block. `chain` is the chain's name in the registry, which tells Bitcoin's test networks
    /// apart.
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] if this build lacks the family of the chain, and [`Code::UnknownChain`] if the network is none that the
    /// family can identify.
    #[allow(unused_variables, reason = "only Bitcoin-like chains have names that matter")]
    pub fn new(network: &Network, chain: &str, known: &Known) -> Result<Self, Refusal> {
        let family = network.family();
        let reader = match family {
            #[cfg(feature = "evm")]
            Family::Evm => {
                use countersign_evm::reader::{Newest, OnChain, chain_id};
                AnyHead::Evm(Reader::new(&OnChain { chain_id: chain_id(network)?, subject: Newest }, known)?)
            }
            #[cfg(feature = "tron")]
            Family::Tron => {
                use countersign_tron::reader::{OnChain, View, chain_id};
                AnyHead::Tron(Reader::new(&OnChain { chain_id: chain_id(network)?, subject: View::Newest }, known)?)
            }
            #[cfg(feature = "starknet")]
            Family::Starknet => {
                use countersign_starknet::reader::{HeadQuery, chain_id};
                let chain_id = chain_id(network).ok_or_else(|| Refusal::new(Code::UnknownChain, "/network").with_actual(chain))?;
                AnyHead::Starknet(Reader::new(&HeadQuery { chain_id }, known)?)
            }
            #[cfg(feature = "solana")]
            Family::Solana => AnyHead::Solana(Reader::new(&countersign_solana::reader::HeadQuery::new(network), known)?),
            #[cfg(feature = "sui")]
            Family::Sui => {
                use countersign_sui::reader::{NewestCheckpoint, On};
                AnyHead::Sui(Reader::new(&On::new(network.clone(), NewestCheckpoint), known)?)
            }
            #[cfg(feature = "bitcoin")]
            Family::Bitcoin => {
                let chain = countersign_bitcoin::reader::NamedChain::from_network(network, chain)?;
                AnyHead::Bitcoin(Reader::new(&chain, known)?)
            }
            #[allow(unreachable_patterns, reason = "a build with every family has no other")]
            other => return Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other)),
        };
        Ok(Self { family, reader })
    }
}

impl Drive for HeadReader {
    type Observation = HeadObservation;

    fn requests(&self) -> &[Request] {
        each_family!(&self.reader, AnyHead => |reader| reader.requests())
    }

    fn answer(&mut self, answers: &[Answer]) -> Result<(), Miscount> {
        each_family!(&mut self.reader, AnyHead => |reader| reader.answer(answers))
    }

    fn fail(&mut self, failure: Failure) {
        each_family!(&mut self.reader, AnyHead => |reader| reader.fail(failure));
    }

    fn stamp(&self) -> Option<Vec<u8>> {
        None
    }

    fn is_of_subject(&self, _: &HeadObservation) -> bool {
        false
    }

    fn finish(self) -> Result<HeadObservation, Fault> {
        let family = self.family;
        each_family!(self.reader, AnyHead => |reader| reader.finish().map(|observation| HeadObservation::new(family, observation)))
    }
}

impl HeadObservation {
    fn new<M: Machine<Output = Head>>(family: Family, observation: Observation<M>) -> Self {
        let known = observation.known().clone();
        Self { family, head: observation.into_output(), known }
    }

    /// Returns the newest block that the endpoint shows.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the time of the block in Unix seconds, if it is neither too old nor in the future: the question to put to a quorum. `now` is
    /// the caller's clock in Unix seconds.
    ///
    /// # Errors
    ///
    /// [`HeadDoubt`]: see [`check_head_time`].
    pub fn time_at(&self, now: u64) -> Result<u64, HeadDoubt> {
        check_head_time(self.family, self.head.time, now).map(|()| self.head.time)
    }
}

/// Returns the newest block that enough endpoints have reached, each of which is neither too old nor in the future: of the best that are
/// needed, the one with the earliest time. A single endpoint that is behind, or ahead of time, does not decide.
///
/// # Errors
///
/// A [`Doubt`] if too few endpoints answer, or if the block of one that is needed is too old or in the future.
pub fn agreed_head(quorum: &Quorum<HeadObservation>, now: u64) -> Result<Head, Doubt<HeadDoubt>> {
    match quorum.ask(|one| one.time_at(now)) {
        Verdict::Stands(_, one) => Ok(one.head.clone()),
        Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(doubt),
    }
}

impl Agree for HeadObservation {
    type Key = ();

    fn key(&self) {
        self.head.key();
    }
}

impl Observed for HeadObservation {
    fn known(&self) -> &Known {
        &self.known
    }

    fn stamp(&self) -> Option<&[u8]> {
        None
    }
}
