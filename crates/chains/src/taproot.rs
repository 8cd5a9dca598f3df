//! The taproot HTLC of the Bitcoin-like chains: three leaves under a fixed internal key (`docs/spec/bitcoin.md#functions`).
//!
//! Its address is the swap id, so every wallet whose order pays out on Bitcoin or Litecoin recomputes it.

use std::sync::LazyLock;

use bech32::segwit;
use k256::elliptic_curve::PrimeField;
use k256::elliptic_curve::ops::MulByGenerator;
use k256::elliptic_curve::point::{AffineCoordinates, DecompactPoint};
use k256::{AffinePoint, ProjectivePoint, Scalar};
use sha2::{Digest, Sha256};

use crate::address::hrp;
use crate::network::{BitcoinNet, Coin};

/// Leaf version of every script in the tree.
pub const LEAF_VERSION: u8 = 0xc0;

/// An HTLC: the values in its three scripts, and the internal key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Htlc {
    /// X-only internal key, pinned by the registry: a point that nobody can sign for.
    pub internal_key: [u8; 32],
    /// X-only key of the party that may refund.
    pub initiator: [u8; 32],
    /// X-only key of the party that may redeem.
    pub redeemer: [u8; 32],
    /// SHA-256 of the 32-byte secret.
    pub secret_hash: [u8; 32],
    /// How many blocks after the funding a refund is possible (BIP-68).
    pub timelock: u16,
}

/// The output that an [`Htlc`] is paid to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// X-only output key: the witness program.
    pub key: [u8; 32],
    /// Whether the output key's point has an odd y coordinate. This is the low bit of the first byte of every control block.
    pub parity_odd: bool,
    /// TapLeaf hash of the redeem script.
    pub redeem_leaf: [u8; 32],
    /// TapLeaf hash of the refund script.
    pub refund_leaf: [u8; 32],
    /// TapLeaf hash of the instant-refund script.
    pub instant_refund_leaf: [u8; 32],
    /// Root of the tree.
    pub merkle_root: [u8; 32],
}

/// Computes a BIP-340 tagged hash.
#[must_use]
pub fn tagged_hash(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    let tag = Sha256::digest(tag.as_bytes());
    let mut hash = Sha256::new_with_prefix(tag);
    hash.update(tag);
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// Computes the hash of one leaf.
#[must_use]
pub fn leaf_hash(script: &[u8]) -> [u8; 32] {
    // Every script here is shorter than 253 bytes, so its compact size is one byte.
    let len = u8::try_from(script.len()).unwrap_or(u8::MAX);
    tagged_hash("TapLeaf", &[&[LEAF_VERSION, len], script])
}

/// Computes the hash of two children, in bytewise order.
#[must_use]
pub fn branch_hash(a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    tagged_hash("TapBranch", &[&a.min(b), &a.max(b)])
}

impl Htlc {
    /// Returns the redeem script: `OP_SHA256 <secret hash> OP_EQUALVERIFY <redeemer> OP_CHECKSIG`, 69 bytes.
    #[must_use]
    pub fn redeem_script(&self) -> Vec<u8> {
        [&[0xa8, 0x20][..], &self.secret_hash, &[0x88, 0x20], &self.redeemer, &[0xac]].concat()
    }

    /// Returns the refund script: `<timelock> OP_CHECKSEQUENCEVERIFY OP_DROP <initiator> OP_CHECKSIG`, with the timelock as a minimal
    /// script number.
    #[must_use]
    pub fn refund_script(&self) -> Vec<u8> {
        [&minimal_number(self.timelock)[..], &[0xb2, 0x75, 0x20], &self.initiator, &[0xac]].concat()
    }

    /// Returns the instant-refund script: `<initiator> OP_CHECKSIG <redeemer> OP_CHECKSIGADD OP_2 OP_NUMEQUAL`, 70 bytes.
    #[must_use]
    pub fn instant_refund_script(&self) -> Vec<u8> {
        [&[0x20][..], &self.initiator, &[0xac, 0x20], &self.redeemer, &[0xba, 0x52, 0x9c]].concat()
    }

    /// Computes leaves, root and output key; `None` if the internal key is not a point on the curve.
    #[must_use]
    pub fn output(&self) -> Option<Output> {
        let redeem_leaf = leaf_hash(&self.redeem_script());
        let refund_leaf = leaf_hash(&self.refund_script());
        let instant_refund_leaf = leaf_hash(&self.instant_refund_script());
        let merkle_root = branch_hash(redeem_leaf, branch_hash(refund_leaf, instant_refund_leaf));
        let (key, parity_odd) = tweak(self.internal_key, tagged_hash("TapTweak", &[&self.internal_key, &merkle_root]))?;
        Some(Output { key, parity_odd, redeem_leaf, refund_leaf, instant_refund_leaf, merkle_root })
    }

    /// Computes the address on a network; `None` if the internal key is not a point on the curve.
    #[must_use]
    pub fn address(&self, coin: Coin, net: BitcoinNet) -> Option<String> {
        segwit::encode(hrp(coin, net), segwit::VERSION_1, &self.output()?.key).ok()
    }
}

/// Returns the point with this x coordinate and an even y; `None` if there is no such point (`lift_x` of BIP-340).
///
/// This does not use `k256`'s feature `schnorr`. Together with `serde`, that feature compiles only if `pkcs8` is enabled too, and
/// other crates of a wallet decide which of them are enabled.
pub(crate) fn lift_x(key: [u8; 32]) -> Option<AffinePoint> {
    AffinePoint::decompact(&key.into()).into()
}

/// Returns whether an x-only key is the generator or a multiple of it up to 16. Its secret key is that number, so anybody can sign
/// for it.
#[must_use]
pub fn has_known_secret(key: [u8; 32]) -> bool {
    KNOWN_KEYS.contains(&key)
}

/// The x-only keys of the secrets 1 to 16, computed once because a registry has many keys to compare with them.
static KNOWN_KEYS: LazyLock<[[u8; 32]; 16]> = LazyLock::new(|| {
    let mut secret = 0_u64;
    [(); 16].map(|()| {
        secret = secret.saturating_add(1);
        ProjectivePoint::mul_by_generator(&Scalar::from(secret)).to_affine().x().into()
    })
});

/// Computes the x coordinate of `lift_x(key) + tweak * G`, and whether y is odd (BIP-341). `None` if `key` is not a point on the
/// curve, or `tweak` not below its order.
#[must_use]
pub fn tweak(key: [u8; 32], tweak: [u8; 32]) -> Option<([u8; 32], bool)> {
    let point = lift_x(key)?;
    let scalar = Option::<Scalar>::from(Scalar::from_repr(tweak.into()))?;
    #[expect(clippy::arithmetic_side_effects, reason = "adding curve points cannot overflow")]
    let sum = (ProjectivePoint::mul_by_generator(&scalar) + ProjectivePoint::from(point)).to_affine();
    (sum != AffinePoint::IDENTITY).then(|| (sum.x().into(), bool::from(sum.y_is_odd())))
}

/// Returns the shortest script push that leaves a number on the stack.
#[must_use]
pub fn minimal_number(number: u16) -> Vec<u8> {
    match number.to_le_bytes() {
        [0, 0] => vec![0x00],
        [small @ 1..=16, 0] => vec![small.wrapping_add(0x50)],
        [low, 0] if low < 0x80 => vec![1, low],
        [low, high] if high < 0x80 => vec![2, low, high],
        // The top bit is the sign: one more byte keeps the number positive.
        [low, high] => vec![3, low, high, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> [u8; 32] {
        hex::decode(text).unwrap().try_into().unwrap()
    }

    #[test]
    fn the_internal_key_is_the_bip341_point_moved_by_the_published_scalar() {
        // H of BIP-341 and the published scalar.
        let h = bytes("50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0");
        let offset = bytes("cca1af4c03b8c301f831283d7b6178710c3efa963189990225aad4ad859c2eca");
        let (key, odd) = tweak(h, offset).unwrap();
        assert_eq!(key, bytes("2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0"));
        assert!(odd);
    }

    #[test]
    fn keys_with_a_small_secret_are_known() {
        // G of SEC 2 section 2.4.1; 2G and 3G as in BIP-340's test vectors and every table of its multiples; 16G.
        for key in [
            "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
            "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5",
            "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
            "e60fce93b59e9ec53011aabc21c23e97b2a31369b87a5ae9c44ee89e2a6dec0a",
        ] {
            assert!(has_known_secret(bytes(key)), "{key}");
        }
        for key in [
            "50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0",
            "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0",
        ] {
            assert!(!has_known_secret(bytes(key)), "{key}");
        }
    }

    #[test]
    fn numbers_are_pushed_minimally() {
        // Script numbers: little-endian, sign in the top bit, OP_1 to OP_16 for the small ones (BIP-62 rule 4).
        for (number, push) in [
            (1, "51"),
            (12, "5c"),
            (16, "60"),
            (17, "0111"),
            (127, "017f"),
            (128, "028000"),
            (144, "029000"),
            (255, "02ff00"),
            (256, "020001"),
            (32767, "02ff7f"),
            (32768, "03008000"),
            (65535, "03ffff00"),
        ] {
            assert_eq!(hex::encode(minimal_number(number)), push, "{number}");
        }
    }
}
