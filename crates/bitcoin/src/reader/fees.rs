//! Fee rates.

use bitcoin::Amount;
use bitcoin::FeeRate as PerWeight;
use countersign_core::Refusal;
use countersign_core::reader::{self, Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};

use super::{OnChain, esplora, rpc};
use crate::transaction::FeeRate;

/// 0.1 sat/vB: the lowest rate that nodes relay, if nobody has set another one.
const LOWEST: PerWeight = PerWeight::from_sat_per_kwu(25);

/// Reads an endpoint's estimate of the fee rate for confirmation within a number of blocks.
#[derive(Debug)]
pub struct FeeEstimation {
    subject: OnChain<u16>,
    is_rpc: bool,
}

/// The fee rates that an endpoint shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "what an endpoint shows of fee rates")]
pub struct FeeQuote {
    /// Its estimate; `None` if it has none, as on a new or idle network.
    pub estimate: Option<FeeRate>,
    /// The lowest rate that the node takes; `None` if it does not say, as an Esplora server.
    pub floor: Option<FeeRate>,
}

impl Agree for FeeQuote {
    type Key = ();

    /// Estimates differ between honest endpoints: see [`middle`].
    fn key(&self) {}
}

impl FeeQuote {
    /// Returns the rate to pay: the estimate, and at least what the node takes.
    ///
    /// The estimate of Bitcoin Core 23 and later is never below what the node takes itself, and neither is that of an Esplora server which asks
    /// one. No rate is below 0.1 sat/vB, which nodes relay by default since 2025. Without an estimate it is at least 1 sat/vB, which older
    /// nodes relay too.
    #[must_use]
    pub fn rate(self) -> FeeRate {
        let least = if self.estimate.is_some() { FeeRate::from(LOWEST) } else { FeeRate::from_whole(1) };
        [self.estimate, self.floor].into_iter().flatten().fold(least, higher)
    }
}

/// Returns the quote in the [middle](reader::middle); `None` of none. A single endpoint of three can neither raise nor lower a fee beyond what
/// the others show.
#[must_use]
pub fn middle(quotes: &[FeeQuote], makes_public: bool) -> Option<FeeQuote> {
    let rates = quotes.iter().enumerate().map(|(place, quote)| (per_thousand(quote.rate()), place));
    let (_, place) = reader::middle(makes_public, rates)?;
    quotes.get(place).copied()
}

/// Returns the fee of 1,000 vB, by which rates are compared.
#[must_use]
pub fn per_thousand(rate: FeeRate) -> Amount {
    rate.fee(1_000).unwrap_or(Amount::MAX)
}

/// Returns the higher one of two rates, the first one of equals.
#[must_use]
pub fn higher(one: FeeRate, other: FeeRate) -> FeeRate {
    if per_thousand(other) > per_thousand(one) { other } else { one }
}

impl Machine for FeeEstimation {
    type Subject = OnChain<u16>;
    type Output = FeeQuote;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &OnChain<u16>, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let requests = if known.is_rpc() { vec![rpc::estimate(subject.subject), rpc::mempool()] } else { vec![esplora::estimates()] };
        Ok((Self { subject: subject.clone(), is_rpc: known.is_rpc() }, requests))
    }

    fn identity(&self) -> Identity {
        self.subject.chain.identity(self.is_rpc)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<FeeQuote>, Fault> {
        let cursor = replies.json(0)?;
        if !self.is_rpc {
            return Ok(Turn::Done(FeeQuote { estimate: esplora::read_estimate(cursor, self.subject.subject)?, floor: None }));
        }
        // A provider need not serve the second method.
        let floor = replies.get(1)?.json_or_error()?.map_or(Ok(None), rpc::read_floor)?;
        Ok(Turn::Done(FeeQuote { estimate: rpc::read_estimate(cursor)?, floor }))
    }
}
