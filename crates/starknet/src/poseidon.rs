//! Poseidon over the Stark field, as Starknet hashes arrays.
//!
//! The curve library has the same hash. Two hashes of an order take it some thirty permutations, which is longer than a
//! signature; so this is a second implementation that gives the same values in less time (`starknet_crypto` is the
//! reference in the tests):
//!
//! - A Montgomery reduction modulo `P = 2^251 + 17 * 2^192 + 1` needs one multiplication a limb instead of four, because
//!   two limbs of the prime are zero and the lowest is one.
//! - Elements stay below a small multiple of `P` and are reduced where a bound demands it, not after every addition.
//! - In the 83 partial rounds only the third element meets a power. The other two are linear, so they are carried as one
//!   recurrence (`Partial`), and all round constants but one a round are moved out of the loop.
//! - What is the same from order to order (contracts, fees, domain) is absorbed once (`hash_known`, `hash_after`).
//!
//! Everything hashed here is public: nothing needs to run in constant time.

use std::cell::RefCell;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use starknet_crypto::Felt;

/// Rounds with three powers at the beginning, and as many at the end.
const HALF_FULL: usize = 4;
/// Rounds with one power between them.
const PARTIAL: usize = 83;

/// The highest limb of `P`; the others are 1, 0, 0.
const TOP: u64 = 0x0800_0000_0000_0011;

/// Hashes an array: `poseidon_hash_span` of Cairo.
pub(crate) fn hash(felts: &[Felt]) -> Felt {
    Sponge::default().finish(felts)
}

/// Hashes an array that many orders share; the hash is kept for the next one.
pub(crate) fn hash_known(felts: &[Felt]) -> Felt {
    let padding = [Felt::ONE, Felt::ZERO];
    let padding = if felts.len().is_multiple_of(2) { &padding[..] } else { &padding[..1] };
    let Sponge([out, ..]) = absorbed(&[felts, padding].concat());
    out.to_felt()
}

/// Hashes an array whose first elements, `known`, many orders share; the state after them is kept for the next one. Where
/// their number is odd, the last of them counts as one of the rest.
pub(crate) fn hash_after(known: &[Felt], rest: &[Felt]) -> Felt {
    let (known, odd) = known.split_at_checked(known.len() & !1).unwrap_or((known, &[]));
    match odd {
        [] => absorbed(known).finish(rest),
        _ => absorbed(known).finish(&[odd, rest].concat()),
    }
}

/// The state after an even number of elements, from the last time if this thread has met them lately.
fn absorbed(felts: &[Felt]) -> Sponge {
    KEPT.with(|kept| match kept.try_borrow_mut() {
        Ok(mut kept) => kept.absorbed(felts),
        Err(_) => Sponge::absorbed(felts),
    })
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// The states after the known parts that this thread met last, the latest first.
struct Kept(Vec<(Vec<Felt>, Sponge)>);

impl Kept {
    /// Enough for the six known parts of the orders of three assets.
    const MOST: usize = 18;

    fn absorbed(&mut self, known: &[Felt]) -> Sponge {
        let Self(states) = self;
        if let Some(index) = states.iter().position(|(felts, _)| felts == known)
            && let Some(later) = states.get_mut(..=index)
        {
            later.rotate_right(1);
        } else {
            states.truncate(Self::MOST.saturating_sub(1));
            states.insert(0, (known.to_vec(), Sponge::absorbed(known)));
        }
        states.first().map_or_else(|| Sponge::absorbed(known), |(_, sponge)| *sponge)
    }
}

/// A state between permutations. The first two elements are below `2 P`, the third below `8 P`.
#[derive(Clone, Copy, Default)]
struct Sponge([Element; 3]);

impl Sponge {
    /// The state after an even number of elements.
    fn absorbed(felts: &[Felt]) -> Self {
        let mut sponge = Self::default();
        for pair in felts.chunks_exact(2) {
            if let [first, second] = pair {
                sponge.absorb(Element::of(first), Element::of(second));
            }
        }
        sponge
    }

    fn absorb(&mut self, first: Element, second: Element) {
        let [a, b, c] = self.0;
        self.0 = permuted([a.plus(first), b.plus(second), c]);
    }

    /// The hash once these are absorbed, a one behind them, and a zero where that makes the number even.
    fn finish(mut self, felts: &[Felt]) -> Felt {
        let mut pairs = felts.chunks_exact(2);
        for pair in pairs.by_ref() {
            if let [first, second] = pair {
                self.absorb(Element::of(first), Element::of(second));
            }
        }
        let one = Element::of(&Felt::ONE);
        match pairs.remainder() {
            [last] => self.absorb(Element::of(last), one),
            _ => self.absorb(one, Element::default()),
        }
        let [out, ..] = self.0;
        out.to_felt()
    }
}

/// The Hades permutation. Elements come in below `3 P` (third: `8 P`) and go out below `2 P` (third: `8 P`).
fn permuted(state: [Element; 3]) -> [Element; 3] {
    let constants = &*CONSTANTS;
    let state = constants.first.iter().fold(state, full_round);
    let state = constants.partial.iter().fold(Partial::from(state), Partial::round).finish();
    constants.last.iter().fold(state, full_round)
}

/// Adds the constants, cubes all three, and multiplies by the matrix `[[3, 1, 1], [1, -1, 1], [1, 1, -2]]`.
#[inline(always)]
fn full_round([a, b, c]: [Element; 3], [ka, kb, kc]: &[Element; 3]) -> [Element; 3] {
    let (a, b, c) = (a.plus(*ka).cubed(), b.plus(*kb).cubed(), c.plus(*kc).cubed());
    let (sum, pair) = (a.plus(b).plus(c), a.plus(b));
    [
        sum.plus(a).plus(a).folded(),
        sum.plus(Element::multiple_of_prime(4)).minus(b).minus(b).folded(),
        pair.plus(Element::multiple_of_prime(4)).minus(c).minus(c),
    ]
}

/// The state in the partial rounds, without what the constants add to it.
///
/// With `y` the cube of the third element, the matrix makes of `(a, b, y)` the elements `3a + b + y`, `a - b + y` and
/// `a + b - 2y`. So their sum `s = a + b` and half of their difference `h = (a - b) / 2` become `2s + 4h + 2y` and `s`:
/// the two elements are one recurrence, and the third is `s - 2y`.
struct Partial {
    /// Below `2 P`.
    sum: Element,
    /// Below `2 P`.
    half_difference: Element,
    /// Between `-4 P` and `2 P`, modulo 2^256: the constant that is added next makes it positive.
    third: Element,
}

impl From<[Element; 3]> for Partial {
    fn from([a, b, c]: [Element; 3]) -> Self {
        let half_difference = a.plus(Element::multiple_of_prime(2)).minus(b).times(CONSTANTS.half);
        Self { sum: a.plus(b).folded(), half_difference, third: c.folded() }
    }
}

impl Partial {
    #[inline(always)]
    fn round(self, constant: &Element) -> Self {
        let y = self.third.plus(*constant).cubed();
        let sum = self.sum.plus(y).plus(self.half_difference).plus(self.half_difference);
        Self { sum: sum.plus(sum).folded(), half_difference: self.sum, third: self.sum.minus(y).minus(y) }
    }

    fn finish(self) -> [Element; 3] {
        let half = self.sum.times(CONSTANTS.half);
        [
            half.plus(self.half_difference),
            half.plus(Element::multiple_of_prime(2)).minus(self.half_difference),
            self.third.plus(Element::multiple_of_prime(4)),
        ]
    }
}

struct Constants {
    first: [[Element; 3]; HALF_FULL],
    /// What the constants of the rounds so far have added to the third element, and `4 P`.
    partial: [Element; PARTIAL],
    last: [[Element; 3]; HALF_FULL],
    half: Element,
}

static CONSTANTS: LazyLock<Constants> = LazyLock::new(Constants::derive);

impl Constants {
    /// Constant `i` is SHA-256 of the text `Hades<i>`, modulo `P`: a choice that hides nothing.
    #[expect(clippy::arithmetic_side_effects, reason = "additions in the field")]
    fn derive() -> Self {
        let mut names = 0_usize..;
        let mut next = || {
            let index = names.next().unwrap_or_default();
            Felt::from_bytes_be(&Sha256::digest(format!("Hades{index}")).into())
        };
        let mut three = || [next(), next(), next()];
        let first = [(); HALF_FULL].map(|()| three().map(|felt| Element::of(&felt)));
        let [mut a, mut b, mut c] = [Felt::ZERO; 3];
        let partial = [(); PARTIAL].map(|()| {
            let [ka, kb, kc] = three();
            (a, b, c) = (a + ka, b + kb, c + kc);
            let constant = Element::of(&c).plus(Element::multiple_of_prime(4));
            (a, b, c) = (a + a + a + b, a - b, a + b);
            constant
        });
        let mut carried = [a, b, c];
        let last = [(); HALF_FULL].map(|()| {
            let [ka, kb, kc] = three();
            let [a, b, c] = std::mem::take(&mut carried);
            [ka + a, kb + b, kc + c].map(|felt| Element::of(&felt))
        });
        let half = Element::of(&Felt::TWO.inverse().unwrap_or_default());
        Self { first, partial, last, half }
    }
}

/// A field element in Montgomery form with R = 2^256, least limb first, below a small multiple of `P` (that is below 32).
#[derive(Clone, Copy, Default)]
struct Element([u64; 4]);

impl Element {
    fn of(felt: &Felt) -> Self {
        Self(felt.to_raw_reversed())
    }

    /// The felt of an element below `2 P`.
    fn to_felt(self) -> Felt {
        let less = self.minus(Self::multiple_of_prime(1));
        // A negative difference has wrapped round 2^256, far above every multiple of `P` that occurs.
        let Self([l0, l1, l2, l3]) = if less.0[3] >> 63 == 0 { less } else { self };
        Felt::from_raw([l3, l2, l1, l0])
    }

    const fn multiple_of_prime(times: u64) -> Self {
        Self([times, 0, 0, TOP.wrapping_mul(times)])
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let (Self([a0, a1, a2, a3]), Self([b0, b1, b2, b3])) = (self, other);
        let (l0, carry) = a0.carrying_add(b0, false);
        let (l1, carry) = a1.carrying_add(b1, carry);
        let (l2, carry) = a2.carrying_add(b2, carry);
        let (l3, _) = a3.carrying_add(b3, carry);
        Self([l0, l1, l2, l3])
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        let (Self([a0, a1, a2, a3]), Self([b0, b1, b2, b3])) = (self, other);
        let (l0, borrow) = a0.borrowing_sub(b0, false);
        let (l1, borrow) = a1.borrowing_sub(b1, borrow);
        let (l2, borrow) = a2.borrowing_sub(b2, borrow);
        let (l3, _) = a3.borrowing_sub(b3, borrow);
        Self([l0, l1, l2, l3])
    }

    /// The same element below `2 P`: with `q` the bits from 2^251 on, less `q - 1` times `P`.
    #[inline(always)]
    fn folded(self) -> Self {
        let Self([.., top]) = self;
        self.minus(Self::multiple_of_prime((top >> 59).saturating_sub(1)))
    }

    /// The cube of an element below `9 P`, itself below `2 P`: the square is below `(1 + 81/32) P`, the cube below
    /// `(1 + 9 * 3.54 / 32) P`.
    #[inline(always)]
    fn cubed(self) -> Self {
        self.squared().times(self)
    }

    /// The product by R^-1, below `(1 + ab/32) P` for elements below `a P` and `b P`.
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        let (Self([a0, a1, a2, a3]), Self([b0, b1, b2, b3])) = (self, other);
        let (t0, carry) = a0.carrying_mul(b0, 0);
        let (t1, carry) = a1.carrying_mul(b0, carry);
        let (t2, carry) = a2.carrying_mul(b0, carry);
        let (t3, t4) = a3.carrying_mul(b0, carry);
        let (t1, carry) = a0.carrying_mul_add(b1, t1, 0);
        let (t2, carry) = a1.carrying_mul_add(b1, t2, carry);
        let (t3, carry) = a2.carrying_mul_add(b1, t3, carry);
        let (t4, t5) = a3.carrying_mul_add(b1, t4, carry);
        let (t2, carry) = a0.carrying_mul_add(b2, t2, 0);
        let (t3, carry) = a1.carrying_mul_add(b2, t3, carry);
        let (t4, carry) = a2.carrying_mul_add(b2, t4, carry);
        let (t5, t6) = a3.carrying_mul_add(b2, t5, carry);
        let (t3, carry) = a0.carrying_mul_add(b3, t3, 0);
        let (t4, carry) = a1.carrying_mul_add(b3, t4, carry);
        let (t5, carry) = a2.carrying_mul_add(b3, t5, carry);
        let (t6, t7) = a3.carrying_mul_add(b3, t6, carry);
        Self::reduced([t0, t1, t2, t3, t4, t5, t6, t7])
    }

    /// As [`Element::times`] itself, with the mixed products taken once and doubled. Elements are below 2^255, so that the
    /// doubled limbs lose no bit.
    #[inline(always)]
    fn squared(self) -> Self {
        let Self([a0, a1, a2, a3]) = self;
        let (double1, double2, double3) = (a1 << 1, (a2 << 1) | (a1 >> 63), (a3 << 1) | (a2 >> 63));
        let (t0, carry) = a0.carrying_mul(a0, 0);
        let (t1, carry) = a0.carrying_mul(double1, carry);
        let (t2, carry) = a0.carrying_mul(double2, carry);
        let (t3, t4) = a0.carrying_mul(double3, carry);
        let (t2, carry) = a1.carrying_mul_add(a1, t2, 0);
        let (t3, carry) = a1.carrying_mul_add(a2 << 1, t3, carry);
        let (t4, t5) = a1.carrying_mul_add(double3, t4, carry);
        let (t4, carry) = a2.carrying_mul_add(a2, t4, 0);
        let (t5, t6) = a2.carrying_mul_add(a3 << 1, t5, carry);
        let (t6, t7) = a3.carrying_mul_add(a3, t6, 0);
        Self::reduced([t0, t1, t2, t3, t4, t5, t6, t7])
    }

    /// `t / 2^256` modulo `P`, above zero and at most `t / 2^256 + P`: `t` less the multiple of `P` that clears its low
    /// half, and `P` so that the rest is positive. `P` is 1 modulo 2^192, so the multiple is `t`'s own low limbs.
    #[inline(always)]
    fn reduced([t0, t1, t2, t3, t4, t5, t6, t7]: [u64; 8]) -> Self {
        let (m0, carry) = t0.carrying_mul(TOP, 0);
        let (m1, carry) = t1.carrying_mul(TOP, carry);
        let (m2, m3) = t2.carrying_mul(TOP, carry);
        let (t3, borrow) = t3.borrowing_sub(m0, false);
        let (t4, borrow) = t4.borrowing_sub(m1, borrow);
        let (t5, borrow) = t5.borrowing_sub(m2, borrow);
        let (t6, borrow) = t6.borrowing_sub(m3, borrow);
        let (t7, _) = t7.borrowing_sub(0, borrow);
        let (m0, m1) = t3.carrying_mul(TOP, 0);
        Self([t4, t5, t6, t7]).plus(Self::multiple_of_prime(1)).minus(Self([0, 0, m0, m1]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use starknet_crypto::poseidon_hash_many;

    use super::*;

    fn felts() -> impl Strategy<Value = Vec<Felt>> {
        let edge = prop_oneof![Just(Felt::ZERO), Just(Felt::ONE), Just(Felt::MAX), Just(Felt::ELEMENT_UPPER_BOUND)];
        let felt = prop_oneof![4 => any::<[u8; 32]>().prop_map(|bytes| Felt::from_bytes_be(&bytes)), 1 => edge];
        proptest::collection::vec(felt, 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn equals_the_curve_library(felts in felts(), known in 0..40_usize) {
            let wanted = poseidon_hash_many(&felts);
            prop_assert_eq!(hash(&felts), wanted);
            let (known, rest) = felts.split_at(known.min(felts.len()));
            for _ in 0..2 {
                prop_assert_eq!(hash_after(known, rest), wanted);
                prop_assert_eq!(hash_known(&felts), wanted);
            }
        }

        #[test]
        fn elements_stay_in_their_bounds(limbs in any::<[u64; 4]>(), multiple in 0..8_u64) {
            let [l0, l1, l2, l3] = limbs;
            let reduced = Element([l0, l1, l2, l3 % TOP]);
            let element = reduced.plus(Element::multiple_of_prime(multiple));
            let (felt, folded, cubed) = (reduced.to_felt(), element.folded(), element.cubed());
            for below in [folded, cubed] {
                // The difference is negative, so it wraps.
                prop_assert_eq!(below.minus(Element::multiple_of_prime(2)).0[3] >> 63, 1);
            }
            prop_assert_eq!(folded.to_felt(), felt);
            prop_assert_eq!(cubed.to_felt(), felt.pow(3_u128));
        }
    }

    #[test]
    fn a_chain_of_hashes_equals_the_curve_librarys() {
        let (mut ours, mut theirs) = (vec![Felt::ZERO; 2], vec![Felt::ZERO; 2]);
        for round in 0..2_000 {
            let at = round % 2;
            ours[at] = hash(&ours);
            theirs[at] = poseidon_hash_many(&theirs);
        }
        assert_eq!(ours, theirs);
    }
}
