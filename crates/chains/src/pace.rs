//! How fast a chain counts one unit of a timelock: a block, a slot, or a millisecond (`docs/spec/chains.md#paces`).

use std::time::Duration;

use crate::{BlockHeight, UnixTime};

/// The shortest distance in time over which a pace is measured. Block times are whole seconds on most chains, and several blocks can
/// share one.
const SHORTEST: Duration = Duration::from_secs(30);
/// By how much a chain may become faster than what was measured of it: counts as this many times as fast.
const FACTOR: u64 = 2;

/// The paces of a chain, each in milliseconds for one unit of a timelock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pace {
    /// The pace of the batch contract (`docs/spec/batch.md`). The verdict on two timelocks uses it, and nothing else.
    pub contract: u64,
    /// Today's usual pace, for texts. It is only an approximation.
    pub nominal: u64,
    /// The fastest pace that is known or announced. Time that runs out is counted with it where no pace was measured.
    pub fastest: u64,
}

impl Pace {
    /// Creates the paces of a row, in milliseconds.
    #[must_use]
    pub const fn new(contract: u64, nominal: u64, fastest: u64) -> Self {
        Self { contract, nominal, fastest }
    }

    /// Returns these paces with those that a registry gives, which come first: the nominal one, and the fastest one. A zero says nothing.
    #[must_use]
    pub fn pinned(self, nominal: Option<u64>, fastest: Option<u64>) -> Self {
        let given = |pace: Option<u64>| pace.filter(|millis| *millis > 0);
        let (contract, today) = given(nominal).map_or((self.contract, self.nominal), |pace| (pace, pace));
        Self { contract, nominal: today, fastest: given(fastest).unwrap_or_else(|| self.fastest.min(today)) }
    }

    /// Returns the fewest milliseconds in which the chain may count one unit: half of what was measured, else the fastest known pace.
    ///
    /// What an endpoint shows can only make the pace faster than the nominal one, never slower.
    #[must_use]
    pub fn counted(&self, measured: Option<u64>) -> u64 {
        let pace = measured.map_or(self.fastest, |measured| measured.min(self.nominal).checked_div(FACTOR).unwrap_or(measured));
        pace.max(1)
    }

    /// Returns the slower one of the paces of the contract and of today, for what must not be thought to be over too early.
    #[must_use]
    pub const fn slowest(&self) -> u64 {
        if self.contract > self.nominal { self.contract } else { self.nominal }
    }
}

/// Measures the milliseconds for one unit between blocks of one chain: from each of `earlier` to `latest`, of which the fastest counts.
///
/// Returns `None` if no earlier block is at least half a minute and one block away. Times are whole seconds, so each distance is taken one
/// second shorter than it looks, and the result is rounded down.
///
/// ```
/// use countersign::chains::{UnixTime, pace};
///
/// let at = |height: u64, seconds| (height.into(), UnixTime::from_secs(seconds));
/// assert_eq!(pace::measure(at(600, 121), [at(0, 0)]), Some(200));
/// assert_eq!(pace::measure(at(600, 29), [at(0, 0)]), None);
/// ```
#[must_use]
pub fn measure(latest: (BlockHeight, UnixTime), earlier: impl IntoIterator<Item = (BlockHeight, UnixTime)>) -> Option<u64> {
    let between = |(height, time): (BlockHeight, UnixTime)| {
        let span = latest.1.saturating_duration_since(time);
        let blocks = latest.0.blocks_since(height)?;
        let seconds = (span >= SHORTEST).then(|| span.as_secs().saturating_sub(1))?;
        Some(seconds.saturating_mul(1_000).checked_div(blocks)?.max(1))
    };
    earlier.into_iter().filter_map(between).min()
}

/// How much of a timelock is meant: as many units as the chain counts, or a duration, which is as many units as fit into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Span {
    /// Units of the chain's timelocks, however long they take.
    Units(u64),
    /// A duration.
    Time(Duration),
}

impl Span {
    /// Returns the number of units at a pace in milliseconds, rounded up.
    #[must_use]
    pub fn units(self, pace: u64) -> u64 {
        match self {
            Self::Units(units) => units,
            Self::Time(time) => u64::try_from(time.as_millis().div_ceil(u128::from(pace.max(1)))).unwrap_or(u64::MAX),
        }
    }

    /// Returns the duration in milliseconds at a pace in milliseconds.
    #[must_use]
    pub fn millis(self, pace: u64) -> u128 {
        match self {
            Self::Units(units) => u128::from(units).saturating_mul(u128::from(pace)),
            Self::Time(time) => time.as_millis(),
        }
    }
}

impl From<u64> for Span {
    fn from(units: u64) -> Self {
        Self::Units(units)
    }
}

impl std::fmt::Display for Span {
    /// Writes the number of units, or `600 s`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Units(units) => units.fmt(f),
            Self::Time(time) => write!(f, "{} s", time.as_secs()),
        }
    }
}

impl serde::Serialize for Span {
    /// Writes the number of units as an integer, or a duration as the text `600 s`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Units(units) => serializer.serialize_u64(*units),
            Self::Time(_) => serializer.collect_str(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Pace = Pace::new(2_000, 200, 100);

    fn at(height: u64, seconds: u64) -> (BlockHeight, UnixTime) {
        (height.into(), UnixTime::from_secs(seconds))
    }

    #[test]
    fn a_measured_pace_counts_twice_as_fast_and_is_never_slower_than_nominal() {
        for (measured, counted) in [(Some(200), 100), (Some(40), 20), (Some(20_000), 100), (Some(1), 1), (Some(0), 1), (None, 100)] {
            assert_eq!(BASE.counted(measured), counted, "{measured:?}");
        }
        assert_eq!(Pace::new(0, 0, 0).counted(None), 1, "nothing is divided by zero");
    }

    #[test]
    fn a_pace_is_measured_over_half_a_minute_and_rounded_to_the_fast_side() {
        // Five blocks a second share a time. 600 blocks and 120 seconds apart, the true distance may be 119 seconds.
        assert_eq!(measure(at(1_600, 1_120), [at(1_000, 1_000)]), Some(198));
        assert_eq!(measure(at(1_600, 1_029), [at(1_000, 1_000)]), None, "too short");
        assert_eq!(measure(at(1_600, 1_000), [at(1_000, 1_000)]), None, "the same second");
        assert_eq!(measure(at(1_000, 1_120), [at(1_000, 1_000)]), None, "the same block");
        assert_eq!(measure(at(1_000, 1_120), [at(1_600, 1_000)]), None, "a block above the newest one");
        assert_eq!(measure(at(1_600, 1_000), [at(1_000, 1_120)]), None, "a later time");
        assert_eq!(measure(at(u64::MAX, u64::MAX), [at(0, 0)]), Some(1));
        assert_eq!(measure(at(1, 1), []), None);
    }

    /// A chain that became ten times faster in the middle of a swap: the part since then counts.
    #[test]
    fn the_fastest_of_several_distances_counts() {
        let funded = at(0, 0);
        let marked = at(3_600, 7_200);
        assert_eq!(measure(at(4_200, 7_321), [funded, marked]), Some(200));
    }

    #[test]
    fn what_a_registry_gives_comes_first() {
        assert_eq!(BASE.pinned(Some(1_000), None), Pace::new(1_000, 1_000, 100));
        assert_eq!(BASE.pinned(Some(50), None), Pace::new(50, 50, 50), "never slower than the nominal pace");
        assert_eq!(BASE.pinned(None, Some(20)), Pace::new(2_000, 200, 20));
        assert_eq!(BASE.pinned(Some(400), Some(300)), Pace::new(400, 400, 300));
        assert_eq!(BASE.pinned(Some(0), Some(0)), BASE);
    }

    #[test]
    fn a_duration_is_as_many_units_as_fit() {
        assert_eq!(Span::Time(Duration::from_secs(600)).units(100), 6_000);
        assert_eq!(Span::Time(Duration::from_secs(600)).units(450), 1_334, "rounded up");
        assert_eq!(Span::Time(Duration::MAX).units(0), u64::MAX);
        assert_eq!((Span::Units(6).units(600_000), Span::Units(6).millis(600_000)), (6, 3_600_000));
    }
}
