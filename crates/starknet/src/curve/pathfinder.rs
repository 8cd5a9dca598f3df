//! The implementation with pathfinder-crypto, the library of a full node.

use pathfinder_crypto::hash::PoseidonHasher;
use pathfinder_crypto::signature::{ecdsa_sign_k, ecdsa_verify_partial, get_pk};
use pathfinder_crypto::{Felt as PathfinderFelt, MontFelt};
use starknet_types_core::felt::Felt;
use starknet_types_core::hash::{Pedersen, StarkHash as _};
use zeroize::Zeroize;

/// A scalar in the library's type, wiped on drop, which that type does not do itself.
struct Scalar(PathfinderFelt);

impl Scalar {
    /// Creates a scalar from a number below the curve order, which is also below the prime.
    fn new(bytes: &[u8; 32]) -> Self {
        let mut scalar = Self(PathfinderFelt::ZERO);
        scalar.0.as_mut_be_bytes().copy_from_slice(bytes);
        scalar
    }
}

impl Drop for Scalar {
    fn drop(&mut self) {
        self.0.as_mut_be_bytes().zeroize();
    }
}

fn to_pathfinder(felt: &Felt) -> Option<PathfinderFelt> {
    PathfinderFelt::from_be_bytes(felt.to_bytes_be()).ok()
}

fn from_pathfinder(felt: PathfinderFelt) -> Felt {
    Felt::from_bytes_be(felt.as_be_bytes())
}

/// Returns the x coordinate of a secret's public point; `None` if the secret is not below the order.
pub(crate) fn public_key(secret: &[u8; 32]) -> Option<Felt> {
    get_pk(Scalar::new(secret).0).map(from_pathfinder)
}

/// Signs with the nonce `k`; `None` if it gives no signature. The library also signs hashes up to the order, and may return values of
/// r and s that verification refuses, so the ranges are checked here.
pub(super) fn sign_with(secret: &[u8; 32], hash: &Felt, k: &[u8; 32]) -> Option<[Felt; 2]> {
    let (r, s) = ecdsa_sign_k(Scalar::new(secret).0, to_pathfinder(hash)?, Scalar::new(k).0).ok()?;
    let [r, s] = [r, s].map(from_pathfinder);
    (in_range(&r) && in_range(&s)).then_some([r, s])
}

/// Returns whether r and s are a valid signature of the hash. The ranges are checked here, because the library panics on numbers above
/// the order before it refuses those above 2^251.
pub(crate) fn is_valid(public_key: &Felt, hash: &Felt, [r, s]: [&Felt; 2]) -> bool {
    if *hash >= Felt::ELEMENT_UPPER_BOUND || !in_range(r) || !in_range(s) {
        return false;
    }
    let felts = [public_key, hash, r, s].map(to_pathfinder);
    matches!(felts, [Some(key), Some(hash), Some(r), Some(s)] if ecdsa_verify_partial(key, hash, r, s).is_ok())
}

/// Returns whether r or s is from 1 to below 2^251.
fn in_range(felt: &Felt) -> bool {
    *felt != Felt::ZERO && *felt < Felt::ELEMENT_UPPER_BOUND
}

/// Returns the Poseidon hash of felts.
pub(crate) fn poseidon(felts: &[Felt]) -> Felt {
    // Both libraries store a felt in Montgomery form, as four words. Pathfinder stores the lowest word first.
    let hash = felts.iter().fold(PoseidonHasher::new(), |hasher, felt| hasher.chain(MontFelt::from_raw(felt.to_raw_reversed())));
    let MontFelt([lowest, low, high, highest]) = hash.finish();
    Felt::from_raw([highest, high, low, lowest])
}

/// Returns the Pedersen hash of two felts, from the library of the felt.
pub(crate) fn pedersen(first: &Felt, second: &Felt) -> Felt {
    Pedersen::hash(first, second)
}
