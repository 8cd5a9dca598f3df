//! How long a transaction may wait in no block before its fee is raised.

use std::time::Duration;

use countersign::chains::Pace;

/// The number of blocks in which a transaction is mined if it pays enough.
const BLOCKS: u64 = 3;
/// The shortest wait, because nodes of chains with fast blocks lag behind.
const SHORTEST: Duration = Duration::from_secs(60);
/// A transaction waits at most for this part of the remaining time: a quarter.
const PARTS: u32 = 4;

/// Returns how long after its signature a transaction is overdue: three blocks, at the measured block time, or else at the slower one of
/// the chain's known block times.
///
/// `left` is the time until the transaction must be in a block; `None` without such a limit. The wait is at most a quarter of it, because a
/// fee that is raised too early only costs money.
pub(super) fn overdue_after(pace: Pace, measured: Option<u64>, left: Option<Duration>) -> Duration {
    let block = measured.filter(|pace| *pace > 0).unwrap_or_else(|| pace.slowest());
    let blocks = Duration::from_millis(block.saturating_mul(BLOCKS));
    let part = left.and_then(|left| left.checked_div(PARTS)).unwrap_or(Duration::MAX);
    blocks.min(part).max(SHORTEST)
}

/// Returns the shortest time in which a chain may count units of a timelock.
pub(super) fn shortest_time(pace: Pace, measured: Option<u64>, units: u64) -> Duration {
    Duration::from_millis(units.saturating_mul(pace.counted(measured)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITCOIN: Pace = Pace::new(600_000, 600_000, 300_000);
    const BASE: Pace = Pace::new(2_000, 200, 100);
    const ETHEREUM: Pace = Pace::new(12_000, 12_000, 12_000);

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A chain whose blocks take ten times as long gets ten times as much, and one with fast blocks a minute.
    #[test]
    fn a_transaction_is_overdue_after_three_blocks_at_the_measured_pace() {
        for (pace, measured, expected) in [
            (BITCOIN, None, 1_800),
            (BASE, None, 60),
            (BASE, Some(20), 60),
            (BASE, Some(60_000), 180),
            (ETHEREUM, Some(12_000), 60),
            (ETHEREUM, Some(120_000), 360),
            (ETHEREUM, Some(0), 60),
            (Pace::new(30_000, 2_000, 1_000), None, 90),
        ] {
            assert_eq!(overdue_after(pace, measured, None), seconds(expected), "{pace:?} {measured:?}");
        }
    }

    /// What an endpoint shows of the pace never lets more than a quarter of the time pass, and never less than a minute.
    #[test]
    fn the_wait_is_at_most_a_quarter_of_the_time_that_is_left() {
        for (measured, left, expected) in
            [(None, 7_200, 1_800), (None, 3_600, 900), (None, 60, 60), (None, 0, 60), (Some(u64::MAX), 3_600, 900), (Some(1), 3_600, 60)]
        {
            assert_eq!(overdue_after(BITCOIN, measured, Some(seconds(left))), seconds(expected), "{measured:?} {left}");
        }
        // Twelve blocks that may take five minutes each.
        assert_eq!(shortest_time(BITCOIN, None, 12), seconds(3_600));
        assert_eq!(shortest_time(BASE, Some(200), 1_000), seconds(100));
    }
}
