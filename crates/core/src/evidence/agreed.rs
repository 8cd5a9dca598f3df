//! What endpoints at different heights show together, for display.

use countersign_chains::{BlockHeight, UnixTime};

use super::{Finding, HtlcState, ObservedAt};
use crate::sort;

/// Combines the findings of endpoints that agree into one state and its place, of which each number is the worst of the best `needed`
/// ones. Returns `None` if there are fewer.
///
/// The elapsed time has two numbers: the longest one counts for what must happen before the timelock ends, the shortest one for what must
/// wait until then. A decision on more than one number belongs to a question, which each finding answers alone
/// ([`Quorum::ask`](crate::reader::Quorum::ask)).
#[must_use]
pub fn combine(findings: &[&Finding], needed: usize) -> Option<(HtlcState, ObservedAt)> {
    let place = needed.checked_sub(1)?;
    // Of numbers of which the greater is the better, the place-th is the worst of the best `needed` ones.
    let greatest = |number: fn(&Finding) -> u64| sort::nth(findings.iter().map(|finding| number(finding)), place, sort::descending);
    let shortest = |finding: &Finding| if let HtlcState::Locked(locked) = &finding.state { locked.least_elapsed } else { 0 };
    let height = greatest(|finding| finding.seen.height.get()).map(BlockHeight::from)?;
    let shown = findings.iter().find(|finding| finding.seen.height == height)?;
    let state = match &shown.state {
        HtlcState::Locked(locked) => {
            let longest = greatest(|finding| {
                u64::MAX.saturating_sub(if let HtlcState::Locked(locked) = &finding.state { locked.elapsed } else { 0 })
            })?;
            let is_covered = greatest(|finding| u64::from(matches!(&finding.state, HtlcState::Locked(locked) if locked.covered)))? == 1;
            let elapsed = (greatest(shortest)?, u64::MAX.saturating_sub(longest));
            HtlcState::Locked(locked.clone().with_elapsed(elapsed.0, elapsed.1).with_covered(is_covered))
        }
        other => other.clone(),
    };
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (head_time, depth) =
        (greatest(|finding| finding.seen.head_time.as_secs()).map(UnixTime::from_secs)?, greatest(|finding| finding.seen.depth)?);
    let is_safe = greatest(|finding| u64::from(finding.seen.is_safe))? == 1;
    let is_finalized = greatest(|finding| u64::from(finding.seen.is_finalized))? == 1;
    let pace = Some(greatest(|finding| finding.seen.pace.unwrap_or_default())?).filter(|pace| *pace > 0);
    let seen = ObservedAt::new(height, shown.seen.hash.clone(), head_time, depth).with_pace(pace);
    let seen = seen.with_safe(is_safe).with_finalized(is_finalized);
    Some((state, seen.with_agreement(count(findings.len()), count(needed))))
}
