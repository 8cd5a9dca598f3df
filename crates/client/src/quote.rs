//! Chooses a quote.

use countersign::wire::{BasisPoints, Quote};
use countersign::{AssetId, U256};

use crate::error::Error;
use crate::flow::Flow;
use crate::request::{QuoteAmount, QuoteRequest};
use countersign_transport::Transport;

/// What is asked of the solvers, and which offers are acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuoteWish {
    /// Source asset.
    pub from: AssetId,
    /// Destination asset.
    pub to: AssetId,
    /// The amount that the owner pays, in base units.
    pub amount: U256,
    /// Slippage that the owner allows; `None` for the service's default.
    pub slippage: Option<BasisPoints>,
    /// The only solver whose quote is taken; `None` for any.
    pub solver: Option<String>,
    /// The minimum that the quote must pay, in base units; `None` for no minimum.
    pub at_least: Option<U256>,
}

impl QuoteWish {
    /// Creates a wish without options.
    #[must_use]
    pub const fn new(from: AssetId, to: AssetId, amount: U256) -> Self {
        Self { from, to, amount, slippage: None, solver: None, at_least: None }
    }
}

/// Why there is no quote to take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuoteError {
    /// The service failed. Nothing was created.
    #[error(transparent)]
    Service(#[from] Error),
    /// A quote is for other assets or for another amount than was asked for.
    #[error("a quote is for another swap: {} of {} to {}", .0.source.amount, .0.source.asset, .0.destination.asset)]
    Mismatch(Box<Quote>),
    /// No solver offers this swap.
    #[error("no solver offers this swap")]
    None,
    /// The best quote pays less than the minimum.
    #[error("the best quote pays {}, less than the minimum", .0.destination.amount)]
    TooLow(Box<Quote>),
}

impl QuoteError {
    /// Returns the stable code, in snake case.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Service(error) => error.code().name(),
            Self::Mismatch(_) => "quote_mismatch",
            Self::None => "no_quote",
            Self::TooLow(_) => "quote_too_low",
        }
    }
}

impl<T: Transport> Flow<T> {
    /// Fetches the quotes and returns the one that pays the most. Every quote must be for the assets and the amount that were asked for.
    ///
    /// # Errors
    ///
    /// A [`QuoteError`].
    pub async fn best_quote(&self, wish: &QuoteWish) -> Result<Quote, QuoteError> {
        let mut request = QuoteRequest::new(wish.from.clone(), wish.to.clone(), QuoteAmount::From(wish.amount));
        request.slippage = wish.slippage;
        let quotes = self.client().quote(&request).await?.value;
        let is_asked =
            |quote: &Quote| quote.source.asset == wish.from && quote.destination.asset == wish.to && quote.source.amount == wish.amount;
        if let Some(other) = quotes.iter().find(|quote| !is_asked(quote)) {
            return Err(QuoteError::Mismatch(Box::new(other.clone())));
        }
        let is_wanted = |quote: &Quote| wish.solver.as_ref().is_none_or(|solver| quote.solver_id.eq_ignore_ascii_case(solver));
        let best = quotes.into_iter().filter(is_wanted).max_by_key(|quote| quote.destination.amount).ok_or(QuoteError::None)?;
        if best.destination.amount < wish.at_least.unwrap_or_default() {
            return Err(QuoteError::TooLow(Box::new(best)));
        }
        Ok(best)
    }
}
