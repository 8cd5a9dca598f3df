//! Numbers, selectors, storage addresses, account addresses and signatures, with the curve's reference library.

use std::fmt::Write as _;

use alloy_primitives::{U256, keccak256};
use starknet_crypto::{Felt, get_public_key, pedersen_hash, poseidon_hash_many, recover, rfc6979_generate_k, sign, verify};
use starknet_types_core::curve::{AffinePoint, ProjectivePoint};

/// The class of accounts: `Account` of OpenZeppelin 1.0.0.
pub(super) const ACCOUNT_CLASS: Felt = Felt::from_hex_unchecked("0x5b4b537eaa2399e3aa99c4e2e0208ebd6c71bc1467938cd52c798c601e43564");

/// Returns the selector of a function, or the first key of an event: 250 bits of Keccak-256 of its name.
pub(super) fn selector(name: &str) -> Felt {
    let mut hash = keccak256(name.as_bytes()).0;
    if let Some(first) = hash.first_mut() {
        *first &= 0x03;
    }
    Felt::from_bytes_be(&hash)
}

/// Returns up to 31 characters as one number.
pub(super) fn short(text: &str) -> Felt {
    Felt::from_bytes_be_slice(text.as_bytes())
}

/// Returns a number in hex with `0x`, without leading zeros.
pub(super) fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

/// Returns an address with all 64 digits, as records have it.
pub(super) fn padded(felt: Felt) -> String {
    felt.to_bytes_be().iter().fold("0x".to_owned(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses `0x` and up to 64 hex digits below the prime.
pub(super) fn parse(text: &str) -> Option<Felt> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    from_digits(digits, 16)
}

/// Parses decimal or hex digits, as signatures have them.
pub(super) fn parse_any(text: &str) -> Option<Felt> {
    parse(text).or_else(|| from_digits(text, 10))
}

fn from_digits(digits: &str, radix: u32) -> Option<Felt> {
    if digits.is_empty() || digits.len() > 78 || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let number = U256::from_str_radix(digits, u64::from(radix)).ok()?;
    let felt = Felt::from_bytes_be(&number.to_be_bytes());
    (felt.to_bytes_be() == number.to_be_bytes::<32>()).then_some(felt)
}

/// Returns the low and the high 128 bits of a number.
pub(super) fn halves(number: U256) -> [Felt; 2] {
    let bytes = number.to_be_bytes::<32>();
    let (high, low) = bytes.split_at(16);
    [Felt::from_bytes_be_slice(low), Felt::from_bytes_be_slice(high)]
}

/// Joins the low and the high 128 bits of a number; `None` if one of them is longer.
pub(super) fn join(low: Felt, high: Felt) -> Option<U256> {
    let [low, high] = [u128::try_from(low).ok()?, u128::try_from(high).ok()?];
    Some(U256::from(high).wrapping_shl(128) | U256::from(low))
}

/// Returns 32 bytes as eight words of 32 bits.
pub(super) fn words(bytes: &[u8; 32]) -> Vec<Felt> {
    bytes.chunks_exact(4).map(Felt::from_bytes_be_slice).collect()
}

/// Returns the address of a storage variable, or of an entry of a mapping.
pub(super) fn storage(name: &str, keys: &[Felt]) -> Felt {
    normal(keys.iter().fold(selector(name), |hash, key| pedersen_hash(&hash, key)))
}

/// Returns the address that is `place` felts after another one.
#[expect(clippy::arithmetic_side_effects, reason = "felts are added modulo the prime")]
pub(super) fn after(address: Felt, place: u64) -> Felt {
    address + Felt::from(place)
}

/// Reduces a hash modulo 2^251 - 256, to an address. The prime is below twice the modulus.
fn normal(hash: Felt) -> Felt {
    let (hash, size) = (U256::from_be_bytes(hash.to_bytes_be()), U256::ONE.wrapping_shl(251).wrapping_sub(U256::from(256)));
    Felt::from_bytes_be(&hash.checked_sub(size).unwrap_or(hash).to_be_bytes())
}

/// Returns the address of a contract that nobody deploys from another contract.
pub(super) fn contract_address(salt: Felt, class: Felt, calldata: &[Felt]) -> Felt {
    let array = |felts: &[Felt]| {
        let hash = felts.iter().fold(Felt::ZERO, |hash, felt| pedersen_hash(&hash, felt));
        pedersen_hash(&hash, &Felt::from(felts.len()))
    };
    normal(array(&[short("STARKNET_CONTRACT_ADDRESS"), Felt::ZERO, salt, class, array(calldata)]))
}

/// Returns the address of the account with a public key.
pub(super) fn account_of(public: Felt) -> Felt {
    contract_address(public, ACCOUNT_CLASS, &[public])
}

/// Returns the address of the account that a secret key controls.
pub(super) fn account_of_key(key: &[u8; 32]) -> Felt {
    account_of(get_public_key(&Felt::from_bytes_be(key)))
}

/// Signs a hash with a deterministic nonce.
pub(super) fn signed(key: &[u8; 32], hash: Felt) -> Option<Vec<Felt>> {
    let key = Felt::from_bytes_be(key);
    let signature = sign(&key, &hash, &rfc6979_generate_k(&hash, &key, None)).ok()?;
    Some(vec![signature.r, signature.s])
}

/// Returns whether an account has signed a hash. Its address is the hash of its public key, so that the key follows from the signature.
pub(super) fn is_signed(account: Felt, hash: Felt, signature: &[Felt]) -> bool {
    let [r, s] = *signature else { return false };
    // The library divides by the difference of these points. They are equal only in signatures that are made for that.
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

/// Returns the first coordinate of a multiple of a point.
#[expect(clippy::arithmetic_side_effects, reason = "points are multiplied in their group")]
fn times(point: &AffinePoint, factor: Felt) -> Option<Felt> {
    let product = &ProjectivePoint::from_affine(point.x(), point.y()).ok()? * factor;
    product.to_affine().ok().map(|point| point.x())
}

/// Returns the hash of a message in the domain of the swap contract: SNIP-12, revision 1.
pub(super) fn message(chain_id: Felt, signer: Felt, members: &[Felt]) -> Felt {
    let domain = poseidon_hash_many(&[
        selector(r#""StarknetDomain"("name":"shortstring","version":"shortstring","chainId":"shortstring","revision":"shortstring")"#),
        short("HTLC"),
        short("1"),
        chain_id,
        Felt::ONE,
    ]);
    poseidon_hash_many(&[short("StarkNet Message"), domain, signer, poseidon_hash_many(members)])
}
