//! Fee rates.

use bitcoin::Amount;
use countersign_core::Refusal;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};

use super::{OnChain, esplora, rpc};
use crate::transaction::FeeRate;

/// Reads an endpoint's estimate of the fee rate for confirmation within a number of blocks.
#[derive(Debug)]
pub struct FeeEstimation {
    subject: OnChain<u16>,
    is_rpc: bool,
}

/// An endpoint's estimate of the fee rate; `None` if it has none, as on a new or idle network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeeQuote(pub Option<FeeRate>);

impl Agree for FeeQuote {
    type Key = ();

    /// Estimates differ between honest endpoints: see [`median`] and [`highest`].
    fn key(&self) {}
}

impl FeeQuote {
    /// Returns the rate to pay: at least 1 sat/vB, which is the minimum that nodes relay.
    #[must_use]
    pub fn rate(self) -> FeeRate {
        let floor = FeeRate::from_whole(1);
        self.0.filter(|rate| per_thousand(*rate) > per_thousand(floor)).unwrap_or(floor)
    }
}

/// Returns the quote in the middle, of an even number the higher one of the two; `None` of none. A single endpoint of three can then
/// neither raise nor lower a fee beyond what the others show.
#[must_use]
pub fn median(quotes: &[FeeQuote]) -> Option<FeeQuote> {
    let mut sorted = quotes.to_vec();
    sorted.sort_by_key(|quote| per_thousand(quote.rate()));
    sorted.get(sorted.len() / 2).copied()
}

/// Returns the highest quote of at most `max` sat/vB; `None` if there is none. For a redemption, which must not be too slow because one
/// endpoint shows a low rate.
#[must_use]
pub fn highest(quotes: &[FeeQuote], max: u64) -> Option<FeeQuote> {
    let within = quotes.iter().copied().filter(|quote| quote.rate().check(max, "").is_ok());
    within.max_by_key(|quote| per_thousand(quote.rate()))
}

/// Returns the fee of 1,000 vB, by which rates are compared.
fn per_thousand(rate: FeeRate) -> Amount {
    rate.fee(1_000).unwrap_or(Amount::MAX)
}

impl Machine for FeeEstimation {
    type Subject = OnChain<u16>;
    type Output = FeeQuote;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &OnChain<u16>, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let request = if known.is_rpc() { rpc::estimate(subject.subject) } else { esplora::estimates() };
        Ok((Self { subject: subject.clone(), is_rpc: known.is_rpc() }, vec![request]))
    }

    fn identity(&self) -> Identity {
        self.subject.chain.identity(self.is_rpc)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<FeeQuote>, Fault> {
        let cursor = replies.json(0)?;
        let rate = if self.is_rpc { rpc::read_estimate(cursor) } else { esplora::read_estimate(cursor, self.subject.subject) };
        Ok(Turn::Done(FeeQuote(rate?)))
    }
}
