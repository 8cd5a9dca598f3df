//! Named keys that sign calls in place of the sender's own key, as Tron's permissions allow.

use alloy_primitives::Address;
use countersign_core::sort;

/// The keys that sign for the sender, each with its weight, and the weight that their signatures must reach together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signers {
    /// The weight that is needed.
    pub threshold: u64,
    /// The accounts of the keys, none twice, with their weights.
    pub keys: Vec<(Address, u64)>,
}

impl Signers {
    /// Creates the list. Whoever makes it has checked that the weights can reach the threshold.
    #[must_use]
    pub const fn new(threshold: u64, keys: Vec<(Address, u64)>) -> Self {
        Self { threshold, keys }
    }

    /// Returns how many keys have to sign at least.
    #[must_use]
    pub fn fewest(&self) -> usize {
        let mut weights: Vec<_> = self.keys.iter().map(|(_, weight)| *weight).collect();
        sort::by(&mut weights, sort::descending);
        let mut sum = 0_u64;
        let is_needed = |weight: &u64| {
            let before = sum;
            sum = sum.saturating_add(*weight);
            before < self.threshold
        };
        weights.into_iter().take_while(is_needed).count()
    }

    /// Returns whether a key is named.
    pub(crate) fn contains(&self, key: Address) -> bool {
        self.keys.iter().any(|(named, _)| *named == key)
    }

    /// Returns whether the keys that have signed reach the threshold. Each counts once.
    pub(crate) fn are_enough(&self, signed: &[Address]) -> bool {
        let weights = self.keys.iter().filter(|(key, _)| signed.contains(key)).map(|(_, weight)| *weight);
        weights.fold(0_u64, u64::saturating_add) >= self.threshold
    }

    /// Writes whose signatures are needed: the keys that have not signed, or those that have if they are enough.
    pub(crate) fn open(&self, signed: &[Address], format: fn(Address) -> String) -> String {
        if self.are_enough(signed) {
            return signed.iter().map(|key| format(*key)).collect::<Vec<_>>().join(" and ");
        }
        self.describe(signed, format)
    }

    /// Writes the keys that have not signed.
    pub(crate) fn describe(&self, signed: &[Address], format: fn(Address) -> String) -> String {
        let open = self.keys.iter().filter(|(key, _)| !signed.contains(key));
        open.map(|(key, _)| format(*key)).collect::<Vec<_>>().join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_keys_are_the_heaviest() {
        for (threshold, weights, fewest) in [
            (1, &[1, 1][..], 1),
            (2, &[1, 1], 2),
            (3, &[1, 3, 1], 1),
            (4, &[1, 3, 1], 2),
            (5, &[1, 3, 1], 3),
            (2, &[1, 1, 1, 1, 1], 2),
            (u64::MAX, &[u64::MAX, 1], 1),
        ] {
            let keys = weights.iter().zip(1..).map(|(weight, byte)| (Address::repeat_byte(byte), *weight));
            assert_eq!(Signers::new(threshold, keys.collect()).fewest(), fewest, "{threshold} of {weights:?}");
        }
    }

    #[test]
    fn each_key_counts_once() {
        let [a, b, c] = [1, 2, 3].map(Address::repeat_byte);
        let signers = Signers::new(3, vec![(a, 2), (b, 1)]);
        for (signed, enough) in [(vec![], false), (vec![a], false), (vec![a, a], false), (vec![b, b, b], false), (vec![a, c], false)] {
            assert_eq!(signers.are_enough(&signed), enough, "{signed:?}");
        }
        assert!(signers.are_enough(&[b, a]));
        assert!(Signers::new(u64::MAX, vec![(a, u64::MAX), (b, 1)]).are_enough(&[a, b]));
        assert!(signers.contains(a) && !signers.contains(c));
        assert_eq!(signers.describe(&[a], |key| key.to_string()), b.to_string());
        assert_eq!(signers.open(&[a], |key| key.to_string()), b.to_string());
        assert_eq!(signers.open(&[b, a], |key| key.to_string()), format!("{b} and {a}"));
    }
}
