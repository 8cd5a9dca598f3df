//! What sending payloads can cost.

use std::fmt;

use ruint::aliases::U256;

use crate::json::number;

/// The most that a signer pays to the chain for sending payloads, in the coin in which the chain takes its fees.
///
/// ```
/// use countersign::{U256, report::NetworkFee};
///
/// let fee = NetworkFee::new(U256::from(7_500_000), 9).in_coin("SUI");
/// assert_eq!(fee.to_string(), "at most 0.0075 SUI");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkFee {
    /// The most that is paid, in base units of the coin.
    pub at_most: U256,
    /// Decimal places of one whole coin.
    pub decimals: u8,
    /// The coin's symbol; `None` if the payload does not tell it, because chains of the family have different coins.
    pub symbol: Option<&'static str>,
    /// What comes on top, which no payload limits; `None` if nothing does.
    pub beside: Option<&'static str>,
}

impl NetworkFee {
    /// Creates a fee of at most this many base units.
    #[must_use]
    pub const fn new(at_most: U256, decimals: u8) -> Self {
        Self { at_most, decimals, symbol: None, beside: None }
    }

    /// Sets the coin's symbol.
    #[must_use]
    pub const fn in_coin(mut self, symbol: &'static str) -> Self {
        self.symbol = Some(symbol);
        self
    }

    /// Sets what comes on top.
    #[must_use]
    pub const fn and(mut self, beside: Option<&'static str>) -> Self {
        self.beside = beside;
        self
    }

    /// Returns the amount in whole coins: `0.0075`.
    #[must_use]
    pub fn whole_units(&self) -> String {
        number::in_whole_units(self.at_most, self.decimals)
    }
}

impl fmt::Display for NetworkFee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} {}", self.whole_units(), self.symbol.unwrap_or("of the chain's own coin"))?;
        self.beside.map_or(Ok(()), |beside| write!(f, ", and {beside}"))
    }
}
