//! Combines the answers of several endpoints: `quorum` of them must be the same.

use countersign::{HtlcState, SeenAt};
use countersign_core::Finding;

use crate::error::NodeError;
use crate::nodes::Head;

/// Returns the answers of the largest group of endpoints that agree, if it has at least `needed` members. An endpoint that failed counts
/// for no group.
///
/// # Errors
///
/// Returns [`NodeError::Disagree`] with the errors of the endpoints that failed. If there is only one endpoint, returns its own error.
pub(crate) fn agree<R, K: PartialEq>(answers: Vec<Result<R, NodeError>>, needed: u32, key: impl Fn(&R) -> K) -> Result<Vec<R>, NodeError> {
    let mut groups: Vec<(K, Vec<R>)> = Vec::new();
    let mut failures = Vec::new();
    let all = answers.len();
    for answer in answers {
        match answer {
            Ok(answer) => {
                let key = key(&answer);
                match groups.iter_mut().find(|(other, _)| *other == key) {
                    Some((_, group)) => group.push(answer),
                    None => groups.push((key, vec![answer])),
                }
            }
            Err(error) => failures.push(error),
        }
    }
    let best = groups.into_iter().map(|(_, group)| group).max_by_key(Vec::len).unwrap_or_default();
    let agreed = u32::try_from(best.len()).unwrap_or(u32::MAX);
    if agreed >= needed {
        return Ok(best);
    }
    if all == 1
        && let Some(only) = failures.pop()
    {
        return Err(only);
    }
    let detail = failures.iter().map(|failure| format!("; {failure}")).collect();
    Err(NodeError::Disagree { agreed, needed, detail })
}

/// What one endpoint reports about an HTLC.
pub(crate) struct Sighting {
    /// The state with an elapsed time of 0. The elapsed time differs between endpoints, so it is kept apart.
    pub(crate) state: HtlcState,
    /// The newest block.
    pub(crate) head: Head,
    pub(crate) depth: u64,
    pub(crate) elapsed: u64,
    pub(crate) is_safe: bool,
    pub(crate) is_finalized: bool,
}

/// Combines the reports of endpoints that agree. Takes the lowest head, the smallest depth, the weakest marks, and the shortest and
/// longest elapsed time. Returns `None` if the list is empty.
pub(crate) fn combine(all: Vec<Sighting>, needed: u32) -> Option<(HtlcState, SeenAt)> {
    let agreed = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let least = |number: fn(&Sighting) -> u64| all.iter().map(number).min().unwrap_or_default();
    let (depth, head_time) = (least(|one| one.depth), least(|one| one.head.time));
    let (is_safe, is_finalized) = (all.iter().all(|one| one.is_safe), all.iter().all(|one| one.is_finalized));
    let (least_elapsed, most_elapsed) = (least(|one| one.elapsed), all.iter().map(|one| one.elapsed).max().unwrap_or_default());
    let Sighting { state, head, .. } = all.into_iter().min_by_key(|one| one.head.height)?;
    let state = with_elapsed(state, least_elapsed, most_elapsed);
    let seen = SeenAt::new(head.height, head.hash, head_time, depth).with_marks(is_safe, is_finalized).with_agreement(agreed, needed);
    Some((state, seen))
}

/// Combines the findings of endpoints that agree, as [`combine`] does. The HTLC is covered if each of them shows that.
pub(crate) fn combine_findings(all: Vec<Finding>, needed: u32) -> Option<(HtlcState, SeenAt)> {
    let is_covered = all.iter().all(|finding| !matches!(&finding.state, HtlcState::Locked(locked) if !locked.covered));
    let sighting = |finding: Finding| {
        let Finding { state, seen, .. } = finding;
        let elapsed = if let HtlcState::Locked(locked) = &state { locked.elapsed } else { 0 };
        let head = Head::new(seen.height, seen.hash.clone(), seen.head_time);
        Sighting { state, head, depth: seen.depth, elapsed, is_safe: seen.is_safe, is_finalized: seen.is_finalized }
    };
    let (state, seen) = combine(all.into_iter().map(sighting).collect(), needed)?;
    let state = match state {
        HtlcState::Locked(locked) => HtlcState::Locked(locked.with_covered(is_covered)),
        other => other,
    };
    Some((state, seen))
}

/// Sets the elapsed time of a locked HTLC's timelock.
pub(crate) fn with_elapsed(state: HtlcState, least: u64, most: u64) -> HtlcState {
    match state {
        HtlcState::Locked(locked) => HtlcState::Locked(locked.with_elapsed(least, most)),
        other => other,
    }
}

/// Returns the outcome of a broadcast to all endpoints: success if one of them accepted the transaction. `None` if there is no endpoint.
pub(crate) fn any_accepts(outcomes: Vec<Result<(), NodeError>>) -> Option<Result<(), NodeError>> {
    let (mut refusal, mut failure) = (None, None);
    for outcome in outcomes {
        match outcome {
            Ok(()) => return Some(Ok(())),
            Err(error @ NodeError::Rejected { .. }) => refusal = refusal.or(Some(error)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    // An endpoint that failed may still have relayed the transaction, so a failure outranks a rejection.
    failure.or(refusal).map(Err)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

    use countersign::{Account, Family, LockedHtlc, U256};

    use super::*;

    fn failed() -> Result<u32, NodeError> {
        Err(NodeError::Status { endpoint: "b".to_owned(), status: 429 })
    }

    #[test]
    fn the_largest_group_speaks_if_it_is_large_enough() {
        assert_eq!(agree(vec![Ok(1), Ok(2), Ok(1)], 2, |answer| *answer).unwrap(), [1, 1]);
        assert_eq!(agree(vec![Ok(1), failed(), Ok(1)], 2, |answer| *answer).unwrap(), [1, 1]);
        for answers in [vec![Ok(1), Ok(2), Ok(3)], vec![Ok(1), failed(), failed()], vec![Ok(1), Ok(2)]] {
            let error = agree(answers, 2, |answer| *answer).unwrap_err();
            assert!(matches!(error, NodeError::Disagree { agreed: 1, needed: 2, .. }), "{error}");
        }
        assert!(matches!(agree(vec![failed()], 1, |answer| *answer), Err(NodeError::Status { .. })));
    }
    #[test]
    fn of_those_that_agree_the_worst_counts() {
        let one = |height, depth, elapsed, is_finalized| {
            let head = Head::new(height, height.to_string(), 1_000 + height);
            let party = Account::from_array(Family::Evm, [1; 20]);
            let state = HtlcState::Locked(LockedHtlc::new(party.clone(), party, U256::from(1), 8, 0));
            Sighting { state, head, depth, elapsed, is_safe: true, is_finalized }
        };
        let (state, seen) = combine(vec![one(12, 3, 2, true), one(10, 5, 9, false), one(11, 1, 4, true)], 2).unwrap();
        assert_eq!((seen.height, seen.hash.as_str(), seen.head_time, seen.depth), (10, "10", 1_010, 1));
        assert_eq!((seen.is_safe, seen.is_finalized, seen.agreed, seen.needed), (true, false, 3, 2));
        let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
        assert_eq!((locked.elapsed, locked.least_elapsed, locked.left(), locked.has_run_out()), (9, 2, 0, false));
        assert!(combine(Vec::new(), 1).is_none());
    }

    #[test]
    fn a_transaction_is_rejected_only_if_nobody_took_it_and_nobody_failed() {
        let rejected = || Err(NodeError::Rejected { endpoint: "a".to_owned(), message: "nonce too low".to_owned() });
        let failed = || Err(NodeError::Status { endpoint: "b".to_owned(), status: 429 });
        assert_eq!(any_accepts(vec![rejected(), failed(), Ok(())]), Some(Ok(())));
        assert_eq!(any_accepts(vec![rejected(), failed()]), Some(failed()));
        assert_eq!(any_accepts(vec![rejected(), rejected()]), Some(rejected()));
        assert_eq!(any_accepts(Vec::new()), None);
    }
}
