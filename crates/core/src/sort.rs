//! Sorting, with one copy of the algorithm in a program.
//!
//! The standard library's sorts are compiled anew for every type and every comparison, which is about a kilobyte of compressed WebAssembly
//! for each. Here a single copy sorts indices and calls the comparison through a pointer, so that each type only adds its comparison and a
//! swap of two items. Every sort is stable and needs O(n log n) comparisons. `collect` into a [`BTreeMap`] or a [`BTreeSet`] sorts as
//! well; [`map`] and [`set`] insert item by item instead.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorts like [`slice::sort_by`].
pub fn by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    arrange(places_by(items, compare), &mut |one, other| items.swap(one, other));
}

/// Sorts like [`slice::sort`].
pub fn ascending<T: Ord>(items: &mut [T]) {
    by(items, T::cmp);
}

/// Sorts like [`slice::sort_by_cached_key`]: makes the key of each item once.
pub fn by_cached_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    let keys: Vec<K> = items.iter().map(key).collect();
    arrange(places_by(&keys, K::cmp), &mut |one, other| items.swap(one, other));
}

/// Returns the item that has this index after sorting; `None` if there are fewer items.
pub fn nth<T>(items: impl IntoIterator<Item = T>, place: usize, compare: impl Fn(&T, &T) -> Ordering) -> Option<T> {
    let items: Vec<T> = items.into_iter().collect();
    let found = places_by(&items, compare).get(place).copied()?;
    items.into_iter().nth(found)
}

/// Compares so that the greater comes first.
pub fn descending<T: Ord>(one: &T, other: &T) -> Ordering {
    other.cmp(one)
}

/// Collects into a map. Of equal keys, the last one's value stays.
pub fn map<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(entries);
    map
}

/// Collects into a set.
pub fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(items);
    set
}

/// Returns the places of the items, in the order in which the items would be sorted.
fn places_by<T>(items: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Vec<usize> {
    sorted_places(items.len(), &mut |one, other| match (items.get(one), items.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    })
}

#[inline(never)]
fn sorted_places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|one, other| compare(*one, *other));
    places
}

/// Brings to each place the item that `places` has there, by exchanges of two items: one for each item at most.
#[inline(never)]
fn arrange(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..places.len() {
        let mut place = start;
        // The exchanges of one cycle. A place that has its item is its own.
        while let Some(from) = places.get_mut(place).map(|from| std::mem::replace(from, place))
            && from != start
        {
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every list of at most six digits below four, each with its place.
    fn lists() -> Vec<Vec<(u8, usize)>> {
        let mut all: Vec<Vec<(u8, usize)>> = vec![Vec::new()];
        let mut longest = all.clone();
        for place in 0..6 {
            longest = longest.iter().flat_map(|list| (0..4).map(|digit| [list.as_slice(), &[(digit, place)]].concat())).collect();
            all.extend(longest.iter().cloned());
        }
        all
    }

    #[test]
    fn every_small_list_is_sorted_as_the_standard_library_sorts_it() {
        for list in lists() {
            let mut expected = list.clone();
            expected.sort_by(|(one, _), (other, _)| other.cmp(one));
            let mut sorted = list.clone();
            by(&mut sorted, |(one, _), (other, _)| other.cmp(one));
            assert_eq!(sorted, expected);
            for place in 0..=list.len() {
                let found = nth(list.iter().copied(), place, |(one, _), (other, _)| other.cmp(one));
                assert_eq!(found, expected.get(place).copied(), "{list:?}");
            }
            expected.sort_by_key(|(digit, _)| *digit);
            by_cached_key(&mut sorted, |(digit, _)| *digit);
            assert_eq!(sorted, expected);
        }
    }

    #[test]
    fn a_long_list_is_sorted_with_few_comparisons() {
        let count: u64 = 5_000;
        // Every number below the prime 5003, in an order without a pattern.
        let mut items: Vec<u64> = (0..count).map(|index| index * 3_001 % 5_003).collect();
        let mut expected = items.clone();
        expected.sort_unstable();
        let comparisons = std::cell::Cell::new(0_u64);
        by(&mut items, |one, other| {
            comparisons.set(comparisons.get() + 1);
            one.cmp(other)
        });
        assert_eq!(items, expected);
        assert!(comparisons.get() < count * 20, "{}", comparisons.get());
        ascending(&mut items);
        assert_eq!(items, expected);
    }

    #[test]
    fn of_equal_keys_the_last_value_stays() {
        let entries = [(2, 'a'), (1, 'b'), (2, 'c')];
        assert_eq!(map(entries), BTreeMap::from(entries));
        assert_eq!(set([3, 1, 3]), BTreeSet::from([3, 1, 3]));
    }
}
