//! A chain whose blocks come at known times, with one HTLC, as an endpoint shows it at any moment.

mod tempo;

use countersign_core::chains::Network;
use countersign_core::reader::{Answer, Request};
use countersign_core::{Family, HtlcTerms};

pub use tempo::{Tempo, Turn};

/// How an HTLC ended, and in which transaction, where that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Redeemed(Option<[u8; 32]>),
    Refunded,
}

/// An HTLC on its chain. Times are those of the blocks, in Unix seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Htlc {
    pub funded: Option<u64>,
    pub ended: Option<(End, u64)>,
    /// Whether it holds one unit less than its terms.
    pub is_short: bool,
}

impl Htlc {
    /// Returns the HTLC as it was at a time.
    pub fn at(self, time: u64) -> Self {
        self.when(|at| at <= time)
    }

    /// Returns the HTLC as the newest block at a time shows it.
    pub fn shown(self, tempo: &Tempo, time: u64) -> Self {
        let newest = tempo.newest(time);
        self.when(|at| at <= time && tempo.includes(at) <= newest)
    }

    fn when(self, is_there: impl Fn(u64) -> bool) -> Self {
        let funded = self.funded.filter(|at| is_there(*at));
        Self { funded, ended: self.ended.filter(|(_, at)| is_there(*at) && funded.is_some()), ..self }
    }
}

/// How old a block is when it is safe, and when it is final, in seconds. On Starknet, when Ethereum has accepted it.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    pub safe: u64,
    pub finalized: u64,
}

/// What an endpoint answers from.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    pub terms: &'v HtlcTerms,
    pub secret: &'v [u8; 32],
    /// When the chain has its blocks.
    pub tempo: &'v Tempo,
    pub marks: Marks,
    /// The time at which the chain is looked at.
    pub now: u64,
    pub htlc: Htlc,
    /// Whether the endpoint serves another chain of the family.
    pub is_other_chain: bool,
}

impl View<'_> {
    /// Returns the height of the newest block at the time at which the chain is looked at.
    pub fn newest(&self, base: u64) -> u64 {
        base + self.tempo.newest(self.now)
    }

    /// Returns the height of the newest block so many seconds before.
    pub fn before(&self, base: u64, seconds: u64) -> u64 {
        base + self.tempo.newest(self.now - seconds)
    }

    /// Returns the height of the block that has what happens at a time.
    pub fn including(&self, base: u64, time: u64) -> u64 {
        base + self.tempo.includes(time)
    }

    /// Returns the time in the header of the block at a height.
    pub fn stamp(&self, base: u64, height: u64) -> u64 {
        self.tempo.stamp(height.saturating_sub(base))
    }

    /// Answers the requests of one round. Transactions that are sent are not for this function.
    #[must_use]
    pub fn answer(&self, requests: &[Request]) -> Vec<Answer> {
        macro_rules! answer {
            ([] $($feature:literal $family:ident $module:ident,)*) => {
                match self.terms.family {
                    $(#[cfg(feature = $feature)] Family::$family => super::$module::moment(self, requests),)*
                    other => panic!("the testkit is built without {other:?}"),
                }
            };
        }
        countersign::for_each_family! { answer! [] }
    }
}

/// Returns the number of an EVM or Tron chain.
#[must_use]
pub fn chain_id(network: &Network) -> u64 {
    match network {
        Network::Evm(id) | Network::Tron(id) => *id,
        other => panic!("{other:?}"),
    }
}

/// Replaces each occurrence of some bytes, of which there is at least one.
pub fn patch(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let places: Vec<_> = (0..=bytes.len() - old.len()).filter(|at| bytes[*at..*at + old.len()] == *old).collect();
    assert!(!places.is_empty(), "nothing to replace");
    for at in places {
        bytes[at..at + old.len()].copy_from_slice(new);
    }
}

/// Rewrites an answer.
pub fn rewritten(answer: Answer, change: impl FnOnce(&mut serde_json::Value) -> bool) -> Answer {
    let (Answer::Result(text) | Answer::Http { body: text, .. }) = &answer else { return answer };
    let Ok(mut value) = serde_json::from_slice(text) else { return answer };
    if !change(&mut value) {
        return answer;
    }
    let text = value.to_string().into_bytes();
    if matches!(answer, Answer::Http { .. }) { Answer::http(200, text) } else { Answer::result(text) }
}
