//! What a transaction depends on, from what several endpoints show.
//!
//! Prices, heights and bounds differ between honest endpoints, so endpoints cannot be required to agree on them. Each component is the
//! [`median`] of its own: a pair, a set of bounds or a whole context of one endpoint would carry a component along that nobody compared.
//! With more than half of the endpoints honest, a median lies between two honest values.

use crate::sort;

/// The maximum price of a transaction that is overdue, as a multiple of the median at that moment.
pub const OVERDUE_MULTIPLE: u128 = 4;

/// Returns the middle of what endpoints show; `None` of nothing.
///
/// Of an even number it is the lower one of the two in the middle. The two differ in the harm that a single endpoint can do while another
/// one is silent: too low a price is raised when the transaction is overdue, but too high a price is paid, or asks for coins that the
/// sender does not have.
///
/// ```
/// use countersign_core::reader::median;
///
/// assert_eq!(median([7, u64::MAX, 5]), Some(7));
/// assert_eq!(median([9, 4]), Some(4));
/// ```
#[must_use]
pub fn median<T: Ord>(shown: impl IntoIterator<Item = T>) -> Option<T> {
    let shown: Vec<T> = shown.into_iter().collect();
    let middle = shown.len().saturating_sub(1) / 2;
    sort::nth(shown, middle, T::cmp)
}

/// Returns the middle of what endpoints show, as [`median`] does, but of an even number the higher one of the two in the middle.
///
/// It is for the price of the transaction that makes a secret public. If one endpoint of three is silent and another one is dishonest, the
/// lower one of two prices is the liar's. Honest nodes refuse it, so that the liar has the secret in a transaction that is never mined. Too
/// high a price holds the secret back where the sender does not have the coins or the policy does not allow it, and is paid otherwise.
///
/// ```
/// use countersign_core::reader::high_median;
///
/// assert_eq!(high_median([7, u64::MAX, 5]), Some(7));
/// assert_eq!(high_median([0, 4]), Some(4));
/// ```
#[must_use]
pub fn high_median<T: Ord>(shown: impl IntoIterator<Item = T>) -> Option<T> {
    let shown: Vec<T> = shown.into_iter().collect();
    let middle = shown.len() / 2;
    sort::nth(shown, middle, T::cmp)
}

/// Returns the [higher median](high_median) for what makes a secret public, and the [`median`] for everything else.
#[must_use]
pub fn middle<T: Ord>(makes_public: bool, shown: impl IntoIterator<Item = T>) -> Option<T> {
    if makes_public { high_median(shown) } else { median(shown) }
}

/// Returns the lowest price with which nodes let a transaction take the place of one that offers `price`: 10 % more, rounded up.
#[must_use]
pub const fn outbid(price: u128) -> u128 {
    price.saturating_mul(11).div_ceil(10)
}

/// Returns the maximum price of a transaction that is overdue, given the median of this moment.
#[must_use]
pub const fn overdue_limit(median: u128) -> u128 {
    median.saturating_mul(OVERDUE_MULTIPLE)
}

/// Returns the price to offer in place of a transaction that offered `before` and is overdue, given the median of this moment.
///
/// It is 10 % more, as nodes require, and at least the median, but at most four times the median. A transaction that offers more than that
/// does not wait because of its price: nodes that have it will use it, and those that do not take the lower one.
///
/// ```
/// use countersign_core::reader::rebid;
///
/// assert_eq!(
///     [rebid(10, 10), rebid(10, 30), rebid(39, 10), rebid(900, 10)],
///     [11, 30, 40, 40]
/// );
/// ```
#[must_use]
pub fn rebid(before: u128, median: u128) -> u128 {
    outbid(before).min(overdue_limit(median)).max(median)
}

/// Returns different heights, the greatest first: the order in which a reference is searched that enough endpoints know.
#[must_use]
pub fn newest_first<T: Ord>(heights: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = heights.into_iter().collect();
    sort::by(&mut all, sort::descending);
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The honest values are 10, 11 and 12, or the first of them. A liar in any place shows each of the others.
    #[test]
    fn one_liar_does_not_move_a_median_beyond_the_honest_values() {
        for lie in [0, 1, 9, 13, 1_000_000, u128::MAX] {
            for honest in [&[10, 12][..], &[10, 11, 12], &[10, 10, 12, 12]] {
                for place in 0..=honest.len() {
                    let mut shown = honest.to_vec();
                    shown.insert(place, lie);
                    let found = median(shown).unwrap();
                    assert!((10..=12).contains(&found), "{lie} at {place}: {found}");
                }
            }
        }
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_middle() {
        for (shown, expected) in [
            (&[][..], None),
            (&[7], Some(7)),
            (&[9, 3], Some(3)),
            (&[1, 9, 5], Some(5)),
            (&[4, 1, 3, 2], Some(2)),
            (&[5, 4, 1, 3, 2], Some(3)),
        ] {
            assert_eq!(median(shown.iter().copied()), expected, "{shown:?}");
        }
        for (shown, expected) in [(&[][..], None), (&[7], Some(7)), (&[9, 3], Some(9)), (&[1, 9, 5], Some(5)), (&[4, 1, 3, 2], Some(3))] {
            assert_eq!(high_median(shown.iter().copied()), expected, "{shown:?}");
        }
    }

    #[test]
    fn a_raised_price_ends_at_four_times_the_median() {
        let mut price = 100;
        for _ in 0..100 {
            let next = rebid(price, 100);
            assert!(next == outbid(price) || next == 400, "{next}");
            price = next;
        }
        assert_eq!(price, 400);
        assert_eq!([rebid(0, 0), rebid(5, 0), rebid(u128::MAX, u128::MAX)], [0, 0, u128::MAX]);
        assert_eq!([0, 1, 10, 11, u128::MAX].map(outbid), [0, 2, 11, 13, u128::MAX.div_ceil(10)]);
    }

    #[test]
    fn heights_are_tried_from_the_newest_on() {
        assert_eq!(newest_first([5_u64, 7, 5, u64::MAX]), [u64::MAX, 7, 5]);
    }
}
