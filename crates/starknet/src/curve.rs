//! ECDSA on the Stark curve, Poseidon and Pedersen, with the fastest library that builds for the target.
//!
//! That library is pathfinder-crypto, which has precomputed multiples of the generator. It does not build for targets with 32-bit
//! pointers such as WebAssembly. On those, starknet-rust-crypto computes the same results. Tests compare the two.
//!
//! Neither library is constant-time. Both take scalars by value and do not wipe their own copies.

use rfc6979::HmacDrbg;
use sha2::Sha256;
use starknet_types_core::felt::Felt;
use zeroize::Zeroizing;

#[cfg(target_pointer_width = "64")]
mod pathfinder;
#[cfg(any(test, not(target_pointer_width = "64")))]
mod portable;

pub(crate) use library::{is_valid, pedersen, poseidon, public_key};
#[cfg(target_pointer_width = "64")]
use pathfinder as library;
#[cfg(not(target_pointer_width = "64"))]
use portable as library;

/// The order of the curve's group, big-endian.
pub(crate) const ORDER: [u8; 32] = [
    0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xb7, 0x81, 0x12, 0x6d, 0xca, 0xe7,
    0xb2, 0x32, 0x1e, 0x66, 0xa2, 0x41, 0xad, 0xc6, 0x4d, 0x2f,
];

/// The limit of nonce candidates. Half of all candidates are beyond the order, so no hash needs nearly as many.
const MAX_CANDIDATES: usize = 256;

/// Signs a hash and returns r and s. The nonce is that of RFC 6979 as in the reference SDK, so both produce the same signature.
///
/// Returns `None` for a hash at or above 2^251, or if no nonce gives a signature. The secret is a scalar from 1 to below the order,
/// big-endian.
pub(crate) fn sign(secret: &[u8; 32], hash: &Felt) -> Option<[Felt; 2]> {
    if *hash >= Felt::ELEMENT_UPPER_BOUND {
        return None;
    }
    let mut candidates = HmacDrbg::<Sha256>::new(secret, &hash.to_bytes_be(), &[]);
    let mut k = Zeroizing::new([0; 32]);
    for _ in 0..MAX_CANDIDATES {
        candidates.fill_bytes(k.as_mut_slice());
        cut_to_252_bits(&mut k);
        if *k == [0; 32] || *k >= ORDER {
            continue;
        }
        if let Some(signature) = library::sign_with(secret, hash, &k) {
            return Some(signature);
        }
    }
    None
}

/// Keeps the first 252 bits of a candidate. A candidate that begins with a zero byte is left unchanged, because the reference SDK
/// (@scure/starknet 1.1) counts bits from the first byte that is not zero. Rust libraries count from the first byte.
fn cut_to_252_bits(candidate: &mut [u8; 32]) {
    if matches!(candidate, [0, ..]) {
        return;
    }
    let mut carried = 0;
    for byte in candidate {
        let low = *byte << 4;
        *byte = carried | (*byte >> 4);
        carried = low;
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, reason = "a panic in a test is a failed test")]

    use proptest::prelude::*;

    use super::*;

    /// Scalars from 1 to below the order, with edge cases more often than by chance.
    fn scalar() -> impl Strategy<Value = [u8; 32]> {
        let bytes = |felt: Felt| felt.to_bytes_be();
        prop_oneof![
            1 => (1..=u8::MAX).prop_map(move |small| bytes(Felt::from(small))),
            1 => (1..=u8::MAX).prop_map(move |off| bytes(Felt::from_bytes_be(&ORDER) - Felt::from(off))),
            1 => (0..252_u32).prop_map(move |bit| bytes(Felt::TWO.pow(bit))),
            5 => any::<[u8; 32]>().prop_map(|mut number| {
                number[0] &= 0x07;
                number
            }),
        ]
    }

    fn felt() -> impl Strategy<Value = Felt> {
        let below_the_prime = any::<u8>().prop_map(|off| Felt::MAX - Felt::from(off));
        prop_oneof![7 => scalar().prop_map(|bytes| Felt::from_bytes_be(&bytes)), 1 => below_the_prime]
    }

    /// A hash that can be signed.
    fn hash() -> impl Strategy<Value = Felt> {
        felt().prop_filter("too wide", |hash| *hash < Felt::ELEMENT_UPPER_BOUND)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_libraries_produce_the_same_signature(secret in scalar(), hash in hash(), k in scalar()) {
            let signature = portable::sign_with(&secret, &hash, &k);
            prop_assert_eq!(pathfinder::sign_with(&secret, &hash, &k), signature);
            let public_key = portable::public_key(&secret);
            prop_assert_eq!(pathfinder::public_key(&secret), public_key);
            let ([r, s], public_key) = (signature.expect("a signature"), public_key.expect("a public key"));
            prop_assert!(pathfinder::is_valid(&public_key, &hash, [&r, &s]));
        }

        #[test]
        fn both_libraries_verify_alike(key in felt(), hash in felt(), r in felt(), s in felt()) {
            prop_assert_eq!(pathfinder::is_valid(&key, &hash, [&r, &s]), portable::is_valid(&key, &hash, [&r, &s]));
        }

        #[test]
        fn a_changed_signature_is_not_valid(secret in scalar(), hash in hash(), wrong in felt(), at in 0..4_usize) {
            let [r, s] = sign(&secret, &hash).expect("a signature");
            let mut felts = [public_key(&secret).expect("a public key"), hash, r, s];
            prop_assert!(is_valid(&felts[0], &felts[1], [&felts[2], &felts[3]]));
            prop_assume!(felts[at] != wrong);
            felts[at] = wrong;
            let [key, hash, r, s] = &felts;
            prop_assert!(!is_valid(key, hash, [r, s]));
            prop_assert!(!portable::is_valid(key, hash, [r, s]));
        }

        #[test]
        fn both_libraries_hash_alike(felts in prop::collection::vec(felt(), 0..40)) {
            prop_assert_eq!(pathfinder::poseidon(&felts), portable::poseidon(&felts));
        }

        #[test]
        fn both_libraries_hash_pairs_alike(first in felt(), second in felt()) {
            prop_assert_eq!(pathfinder::pedersen(&first, &second), portable::pedersen(&first, &second));
        }
    }

    #[test]
    fn felts_at_the_bounds_are_verified_without_a_panic() {
        let order = Felt::from_bytes_be(&ORDER);
        let edges =
            [Felt::ZERO, Felt::ONE, Felt::ELEMENT_UPPER_BOUND - 1, Felt::ELEMENT_UPPER_BOUND, order - 1, order, order + 1, Felt::MAX];
        let key = public_key(&ORDER.map(|byte| byte & 0x07)).expect("a public key");
        for hash in &edges {
            for r in &edges {
                for s in &edges {
                    assert!(!is_valid(&key, hash, [r, s]), "{hash:#x} {r:#x} {s:#x}");
                }
            }
            assert_eq!(sign(&ORDER.map(|byte| byte & 0x07), hash).is_some(), *hash < Felt::ELEMENT_UPPER_BOUND, "{hash:#x}");
        }
    }
}
