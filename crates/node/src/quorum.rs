//! What several endpoints say together: k of n must give the same answer.

use crate::error::NodeError;

/// Returns the answers of the largest group that agrees, if it is large enough. What an endpoint failed to say counts for nobody.
///
/// # Errors
///
/// [`NodeError::Disagree`] with the failures of the others, or the only failure as it is.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

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
}
