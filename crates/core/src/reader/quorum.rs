//! How many endpoints must agree, as a pure function of what each has shown.

use std::fmt;

use super::{Fault, Machine, Observation};
use crate::report::{Code, Refusal};
use crate::sort;

/// What honest endpoints at different heights have in common.
pub trait Agree {
    /// What must be equal.
    type Key: PartialEq;

    /// Returns what must be equal.
    fn key(&self) -> Self::Key;
}

/// What shows nothing but that it passed.
impl Agree for () {
    type Key = ();

    fn key(&self) {}
}

impl<M: Machine<Output: Agree>> Agree for Observation<M> {
    type Key = <M::Output as Agree>::Key;

    fn key(&self) -> Self::Key {
        self.output().key()
    }
}

/// Collects what each endpoint shows, and says what stands.
///
/// Endpoints whose observations have equal keys form a group. A question is put to each observation **alone**, and its answer stands as
/// soon as `needed` members of one group say yes: nothing is combined from two endpoints. An endpoint that is silent, behind or lying can
/// therefore neither hold back nor spoil what the others show. More than half of the endpoints are needed, so two groups can never both
/// be large enough.
///
/// ```
/// use countersign::reader::{Agree, Quorum, Verdict};
///
/// struct Height(u64);
/// impl Agree for Height {
///     type Key = ();
///     fn key(&self) {}
/// }
///
/// let mut quorum = Quorum::new(["a", "b", "c"], 2)?;
/// quorum.hear("a", Ok(Height(7)));
/// assert!(matches!(quorum.ask(|height| Ok::<_, ()>(height.0)), Verdict::Open(_)));
/// quorum.hear("b", Ok(Height(900)));
/// // The worst of the best two counts.
/// assert!(matches!(quorum.ask(|height| Ok::<_, ()>(height.0)), Verdict::Stands(7, _)));
/// # Ok::<(), countersign::Refusal>(())
/// ```
#[derive(Debug, Clone)]
pub struct Quorum<O> {
    endpoints: Vec<(String, Option<Result<O, Fault>>)>,
    needed: usize,
}

/// What a [`Quorum`] says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a question is answered, open or denied")]
pub enum Verdict<'q, T, O, E> {
    /// Enough endpoints agree and say yes. Contains the worst answer of the best `needed` ones, and the observation that gave it.
    /// Further endpoints cannot take it back.
    Stands(T, &'q O),
    /// Not yet, but the endpoints that are still silent may change that.
    Open(Doubt<E>),
    /// No, whatever the endpoints that are still silent show.
    Falls(Doubt<E>),
}

/// Why a question is not answered with yes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "enough endpoints agree, or too few, or the only one failed")]
pub enum Doubt<E> {
    /// Enough endpoints agree, but not enough of them say yes. This is the reason of the one that is missing.
    Held(E),
    /// The only endpoint cannot be used.
    Fault(Fault),
    /// Too few endpoints show the same.
    Disagree {
        /// The number of endpoints that show the same.
        agreed: u32,
        /// The number of endpoints that must.
        needed: u32,
        /// The faults of the endpoints that cannot be used, each after `; `. Empty if there are none.
        detail: String,
    },
}

impl<E: fmt::Display> fmt::Display for Doubt<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(reason) => reason.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
            Self::Disagree { agreed, needed, detail } => {
                write!(f, "too few endpoints agree: {agreed} of the required {needed}{detail}")
            }
        }
    }
}

impl<O: Agree> Quorum<O> {
    /// Creates a quorum of endpoints, which have not shown anything yet. An endpoint that is named twice counts once.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`] at `/endpoints` if there is no endpoint, and at `/quorum` unless `needed` is more than half of the endpoints
    /// and at most all of them. With half of them, two different answers could both be enough.
    pub fn new<'e>(endpoints: impl IntoIterator<Item = &'e str>, needed: usize) -> Result<Self, Refusal> {
        let mut distinct: Vec<(String, Option<Result<O, Fault>>)> = Vec::new();
        for name in endpoints {
            if distinct.iter().all(|(other, _)| other != name) {
                distinct.push((name.to_owned(), None));
            }
        }
        check_size(distinct.len(), needed)?;
        Ok(Self { endpoints: distinct, needed })
    }

    /// Takes what an endpoint shows. Only the first word of each endpoint counts, and none of an endpoint that was not named.
    pub fn hear(&mut self, endpoint: &str, outcome: Result<O, Fault>) {
        if let Some((_, place @ None)) = self.endpoints.iter_mut().find(|(name, _)| name == endpoint) {
            *place = Some(outcome);
        }
    }

    /// Puts a question to each observation alone. `question` returns how good the answer is, greater being better, or why it is no.
    pub fn ask<T: Ord, E>(&self, question: impl Fn(&O) -> Result<T, E>) -> Verdict<'_, T, O, E> {
        let silent = self.endpoints.iter().filter(|(_, word)| word.is_none()).count();
        let group = self.largest();
        let agreed = group.len();
        let (mut passed, mut held) = (Vec::new(), None);
        for one in group {
            match question(one) {
                Ok(value) => passed.push((value, one)),
                Err(reason) => held = held.or(Some(reason)),
            }
        }
        let passing = passed.len();
        if let Some((value, one)) = sort::nth(passed, self.needed.saturating_sub(1), |(one, _), (other, _)| other.cmp(one)) {
            return Verdict::Stands(value, one);
        }
        // The silent endpoints may join this group, or form one with those outside it.
        let may_pass = passing.saturating_add(silent) >= self.needed || self.may_another_group_grow(silent);
        let doubt = match held {
            Some(reason) if agreed >= self.needed => Doubt::Held(reason),
            _ => self.disagreement(agreed),
        };
        if silent > 0 && may_pass { Verdict::Open(doubt) } else { Verdict::Falls(doubt) }
    }

    /// Returns the observations of the largest group.
    #[must_use]
    pub fn largest(&self) -> Vec<&O> {
        let (shown, groups) = self.groups();
        // `max_by_key` returns the last of equals, and the first endpoint is the preferred one.
        let largest = groups.into_iter().rev().max_by_key(Vec::len).unwrap_or_default();
        largest.into_iter().filter_map(|place| shown.get(place).copied()).collect()
    }

    /// Returns the observations that enough endpoints agree on.
    ///
    /// # Errors
    ///
    /// A [`Doubt`] if too few do.
    pub fn agreed<E>(&self) -> Result<Vec<&O>, Doubt<E>> {
        let group = self.largest();
        if group.len() >= self.needed { Ok(group) } else { Err(self.disagreement(group.len())) }
    }

    /// Returns the number of endpoints that must agree.
    #[must_use]
    pub const fn needed(&self) -> usize {
        self.needed
    }

    /// Returns each endpoint that has spoken, and what it shows.
    pub fn heard(&self) -> impl Iterator<Item = (&str, Result<&O, &Fault>)> {
        self.endpoints.iter().filter_map(|(name, word)| Some((name.as_str(), word.as_ref()?.as_ref())))
    }

    /// Returns whether every endpoint has spoken.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.endpoints.iter().all(|(_, word)| word.is_some())
    }

    /// Returns the observations, and the places of those in each group.
    fn groups(&self) -> (Vec<&O>, Vec<Vec<usize>>) {
        let shown: Vec<&O> = self.heard().filter_map(|(_, word)| word.ok()).collect();
        let keys: Vec<O::Key> = shown.iter().map(|one| one.key()).collect();
        let groups = group(keys.len(), &|one, other| keys.get(one) == keys.get(other));
        (shown, groups)
    }

    /// Returns whether a group other than the largest could still become large enough.
    fn may_another_group_grow(&self, silent: usize) -> bool {
        let (_, groups) = self.groups();
        let second = sort::nth(groups.iter().map(Vec::len), 1, sort::descending);
        second.unwrap_or_default().saturating_add(silent) >= self.needed
    }

    fn disagreement<E>(&self, agreed: usize) -> Doubt<E> {
        if let [(_, Some(Err(fault)))] = self.endpoints.as_slice() {
            return Doubt::Fault(fault.clone());
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let detail = describe(&mut self.heard().filter_map(|(name, word)| Some((name, word.err()?))));
        Doubt::Disagree { agreed: count(agreed), needed: count(self.needed), detail }
    }
}

/// Groups the places below `count` of which `are_equal` says that they belong together.
fn group(count: usize, are_equal: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in 0..count {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| are_equal(*first, place))) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}

/// Requires at least one endpoint, and that more than half of them must agree.
fn check_size(all: usize, needed: usize) -> Result<(), Refusal> {
    if all == 0 {
        return Err(Refusal::new(Code::WrongType, "/endpoints").with_expected("at least one endpoint"));
    }
    if needed > all || needed.saturating_mul(2) <= all {
        let expected = format!("more than half of {all} different endpoints, and at most all of them");
        return Err(Refusal::new(Code::WrongType, "/quorum").with_expected(expected).with_actual(needed));
    }
    Ok(())
}

/// Describes the faults of endpoints, each after `; `.
fn describe(faults: &mut dyn Iterator<Item = (&str, &Fault)>) -> String {
    faults.map(|(name, fault)| format!("; {name}: {fault}")).collect()
}
