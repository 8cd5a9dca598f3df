//! Amounts and durations as people read them.

use std::fmt;

use countersign_chains::Family;
use ruint::aliases::U256;

use crate::json::number;

/// An amount of one asset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// The amount in base units.
    pub base_units: U256,
    /// Decimal places of one whole unit.
    pub decimals: u8,
    /// The asset's symbol in lower case, as in asset ids.
    pub symbol: String,
}

impl Amount {
    /// Creates an amount.
    #[must_use]
    pub fn new(base_units: U256, decimals: u8, symbol: impl Into<String>) -> Self {
        Self { base_units, decimals, symbol: symbol.into() }
    }

    /// Returns the exact amount in whole units: `0.0005`.
    #[must_use]
    pub fn whole_units(&self) -> String {
        number::in_whole_units(self.base_units, self.decimals)
    }
}

impl fmt::Display for Amount {
    /// Writes `0.0005 WBTC (50000 base units)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} base units)", self.whole_units(), self.symbol.to_ascii_uppercase(), self.base_units)
    }
}

/// A timelock in its chain's own unit, and its nominal duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timelock {
    /// The number of blocks, slots or milliseconds.
    pub units: u64,
    /// The family of the chain, which decides the unit.
    pub family: Family,
    /// Milliseconds at the chain's nominal block time, which is an estimate.
    pub nominal_millis: u128,
}

impl Timelock {
    /// Creates a timelock.
    #[must_use]
    pub const fn new(units: u64, family: Family, nominal_millis: u128) -> Self {
        Self { units, family, nominal_millis }
    }

    /// Returns the name of the unit: `blocks`, `slots` or `ms`.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        self.family.timelock_unit()
    }
}

impl fmt::Display for Timelock {
    /// Writes `7200 blocks, about 24 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {}", self.units, self.unit(), format_duration(self.nominal_millis))
    }
}

/// A unit of time in which people express a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a catalogue of messages has a variant for each")]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
}

impl TimeUnit {
    /// Returns the word for several of them: `hours`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
            Self::Days => "days",
        }
    }

    const fn short(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Minutes => "min",
            Self::Hours => "h",
            Self::Days => "days",
        }
    }
}

/// Rounds a duration in milliseconds to tenths of the unit that people would use: `24` hours.
#[must_use]
pub fn round_duration(millis: u128) -> (String, TimeUnit) {
    const MINUTE: u128 = 60_000;
    const HOUR: u128 = 60 * MINUTE;
    const DAY: u128 = 24 * HOUR;
    let (length, unit) = match millis {
        0..MINUTE => (1_000, TimeUnit::Seconds),
        MINUTE..HOUR => (MINUTE, TimeUnit::Minutes),
        // Up to two days are shown in hours, because most timelocks are about one day.
        HOUR..=172_800_000 => (HOUR, TimeUnit::Hours),
        _ => (DAY, TimeUnit::Days),
    };
    let tenths = millis.saturating_mul(10).saturating_add(length / 2).checked_div(length).unwrap_or_default();
    let count = match (tenths / 10, tenths % 10) {
        (whole, 0) => whole.to_string(),
        (whole, tenth) => format!("{whole}.{tenth}"),
    };
    (count, unit)
}

/// Formats a duration in milliseconds in the unit that people would use: `about 24 h`.
#[must_use]
pub fn format_duration(millis: u128) -> String {
    let (count, unit) = round_duration(millis);
    format!("about {count} {}", unit.short())
}

/// Formats how much of a token an allowance of `amount` base units lets the spender take.
#[must_use]
pub fn format_allowance(amount: U256) -> String {
    if amount == U256::MAX { "every token of this kind, without limit".to_owned() } else { format!("{amount} base units") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_whole_and_base_units() {
        assert_eq!(Amount::new(U256::from(50_000), 8, "wbtc").to_string(), "0.0005 WBTC (50000 base units)");
    }

    #[test]
    fn a_timelock_says_what_it_means_in_time() {
        assert_eq!(Timelock::new(7_200, Family::Evm, 86_400_000).to_string(), "7200 blocks, about 24 h");
    }

    #[test]
    fn durations_have_a_readable_unit() {
        for (millis, text) in [
            (400, "about 0.4 s"),
            (90_000, "about 1.5 min"),
            (86_400_000, "about 24 h"),
            (172_800_000, "about 48 h"),
            (259_200_000, "about 3 days"),
            (u128::MAX, "about 393868307084 days"),
        ] {
            let said = format_duration(millis);
            assert!(said == text || millis == u128::MAX, "{said}");
        }
    }
}
