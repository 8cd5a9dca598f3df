//! Conversions between felts and text, words, addresses and signatures, with the reference SDK.

use alloy_primitives::U256;
use starknet_core::utils::{get_contract_address, normalize_address, starknet_keccak};
use starknet_crypto::{Felt, get_public_key, pedersen_hash, recover, verify};
use starknet_types_core::curve::{AffinePoint, ProjectivePoint};

/// The class hash of accounts: `Account` of OpenZeppelin 1.0.0.
pub(super) const ACCOUNT_CLASS: Felt = Felt::from_hex_unchecked("0x5b4b537eaa2399e3aa99c4e2e0208ebd6c71bc1467938cd52c798c601e43564");

/// Returns the selector of a function, or the first key of an event.
pub(super) fn selector(name: &str) -> Felt {
    starknet_keccak(name.as_bytes())
}

/// Encodes up to 31 characters as a short string.
pub(super) fn short(text: &str) -> Felt {
    Felt::from_bytes_be_slice(text.as_bytes())
}

/// Parses `0x` and up to 64 hex digits, as a value below the prime. The SDK is less strict: it reads the prime itself
/// as zero, and accepts digits without `0x`.
pub(super) fn parse(text: &str) -> Option<Felt> {
    let padded = format!("0x{:0>64}", text.strip_prefix("0x").filter(|digits| !digits.is_empty())?);
    Felt::from_hex(&padded).ok().filter(|felt| felt.to_fixed_hex_string().eq_ignore_ascii_case(&padded))
}

/// Returns the low and the high 128 bits of a number.
pub(super) fn halves(number: U256) -> [Felt; 2] {
    let bytes = number.to_be_bytes::<32>();
    let (high, low) = bytes.split_at(16);
    [Felt::from_bytes_be_slice(low), Felt::from_bytes_be_slice(high)]
}

/// Joins the low and the high 128 bits of a number. Returns `None` if one of them is longer.
pub(super) fn join(low: Felt, high: Felt) -> Option<U256> {
    let [low, high] = [u128::try_from(low).ok()?, u128::try_from(high).ok()?];
    Some(U256::from(high).wrapping_shl(128) | U256::from(low))
}

/// Returns 32 bytes as eight words of 32 bits.
pub(super) fn words(bytes: &[u8; 32]) -> Vec<Felt> {
    bytes.chunks_exact(4).map(Felt::from_bytes_be_slice).collect()
}

/// Returns the bytes of eight words of 32 bits.
pub(super) fn bytes(words: &[Felt]) -> Option<[u8; 32]> {
    let words = words.iter().map(|word| u32::try_from(*word).map(u32::to_be_bytes)).collect::<Result<Vec<_>, _>>();
    words.ok()?.concat().try_into().ok()
}

/// Returns the address of a storage variable, or of an entry of a mapping.
pub(super) fn storage(name: &str, keys: &[Felt]) -> Felt {
    normalize_address(keys.iter().fold(selector(name), |hash, key| pedersen_hash(&hash, key)))
}

/// Returns the address that is `place` felts after another.
#[expect(clippy::arithmetic_side_effects, reason = "felts are added modulo the prime")]
pub(super) fn after(address: Felt, place: usize) -> Felt {
    address + Felt::from(place)
}

/// Returns the address of the account with a public key.
fn account_of(public: Felt) -> Felt {
    get_contract_address(public, ACCOUNT_CLASS, &[public], Felt::ZERO)
}

/// Returns the address of the account that a secret key controls.
pub(super) fn account_of_key(key: &[u8; 32]) -> Felt {
    account_of(get_public_key(&Felt::from_bytes_be(key)))
}

/// Returns whether an account has signed a hash. The account's address is derived from its public key, so the key is
/// recovered from the signature.
pub(super) fn is_signed(account: Felt, hash: Felt, signature: &[Felt]) -> bool {
    let [r, s] = *signature else { return false };
    // The library divides by the difference of these points. They are equal only in a signature crafted for that.
    let generator = AffinePoint::generator();
    let of_hash = times(&generator, hash);
    if of_hash.is_none() || point(r).is_none_or(|point| times(&point, s) == of_hash) {
        return false;
    }
    let key_of = |v: &Felt| recover(&hash, &r, &s, v).ok().filter(|key| account_of(*key) == account);
    let Some(key) = [Felt::ZERO, Felt::ONE].iter().find_map(key_of) else { return false };
    point(key).is_some_and(|point| times(&point, r) != of_hash) && verify(&key, &hash, &r, &s).unwrap_or(false)
}

fn point(x: Felt) -> Option<AffinePoint> {
    AffinePoint::new_from_x(&x, false)
}

/// Returns the x coordinate of a multiple of a point.
#[expect(clippy::arithmetic_side_effects, reason = "points are multiplied in their group")]
fn times(point: &AffinePoint, factor: Felt) -> Option<Felt> {
    let product = &ProjectivePoint::from_affine(point.x(), point.y()).ok()? * factor;
    product.to_affine().ok().map(|point| point.x())
}
