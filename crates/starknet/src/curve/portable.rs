//! The implementation with starknet-rust-crypto, which builds everywhere.

use starknet_rust_crypto::{pedersen_hash, poseidon_hash_many};
use starknet_types_core::curve::{AffinePoint, ProjectivePoint};
use starknet_types_core::felt::Felt;

/// Returns the x coordinate of a secret's public point.
pub(crate) fn public_key(secret: &[u8; 32]) -> Option<Felt> {
    Some(starknet_rust_crypto::get_public_key(&Felt::from_bytes_be(secret)))
}

/// Signs with the nonce `k`; `None` if it gives no signature.
pub(super) fn sign_with(secret: &[u8; 32], hash: &Felt, k: &[u8; 32]) -> Option<[Felt; 2]> {
    let signature = starknet_rust_crypto::sign(&Felt::from_bytes_be(secret), hash, &Felt::from_bytes_be(k)).ok()?;
    Some([signature.r, signature.s])
}

/// Returns whether r and s are a valid signature of the hash.
#[expect(clippy::arithmetic_side_effects, reason = "multiples of points")]
pub(crate) fn is_valid(public_key: &Felt, hash: &Felt, [r, s]: [&Felt; 2]) -> bool {
    // The library adds hash/s * G and r/s * Q. If hash * G and r * Q differ only in their sign, which the owner of the key can arrange, the
    // sum is the point at infinity, for which libraries of this curve panic or take a coordinate that it does not have.
    let Some(point) = AffinePoint::new_from_x(public_key, false) else { return false };
    let x = |point: AffinePoint, by: &Felt| {
        let point = ProjectivePoint::try_from(point).ok()?;
        (&point * *by).to_affine().ok().map(|point| point.x())
    };
    match (x(AffinePoint::generator(), hash), x(point, r)) {
        (Some(hashed), Some(keyed)) if hashed != keyed => starknet_rust_crypto::verify(public_key, hash, r, s).unwrap_or(false),
        _ => false,
    }
}

/// Returns the Poseidon hash of felts.
pub(crate) fn poseidon(felts: &[Felt]) -> Felt {
    poseidon_hash_many(felts)
}

/// Returns the Pedersen hash of two felts. The library computes it without tables of multiples, which are 126 kB of a WebAssembly module
/// with gzip. It is needed once to read an order of the generation `2025_02`.
pub(crate) fn pedersen(first: &Felt, second: &Felt) -> Felt {
    pedersen_hash(first, second)
}
