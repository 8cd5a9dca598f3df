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

/// An x-only internal key with its point, from which every output key under it is computed.
///
/// The point does not depend on the order, so [`InternalKey::lift`] is called once for a pinned key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InternalKey {
    key: [u8; 32],
    point: AffinePoint,
}

impl InternalKey {
    /// Finds the point of an x-only key; `None` if the key is not a point on the curve.
    #[must_use]
    pub fn lift(key: [u8; 32]) -> Option<Self> {
        Some(Self { key, point: lift_x(key)? })
    }

    /// Returns the 32 bytes of the x-only key.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; 32] {
        self.key
    }

    /// Computes the x coordinate of `point + tweak * G`, and whether y is odd (BIP-341). `None` if `tweak` is not below the order of
    /// the curve.
    #[must_use]
    pub fn tweak(&self, tweak: [u8; 32]) -> Option<([u8; 32], bool)> {
        let scalar = Option::<Scalar>::from(Scalar::from_repr(tweak.into()))?;
        #[expect(clippy::arithmetic_side_effects, reason = "adding curve points cannot overflow")]
        let sum = (ProjectivePoint::mul_by_generator(&scalar) + ProjectivePoint::from(self.point)).to_affine();
        (sum != AffinePoint::IDENTITY).then(|| (sum.x().into(), bool::from(sum.y_is_odd())))
    }
}

/// Computes a BIP-340 tagged hash.
#[must_use]
pub fn tagged_hash(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    finish(tag_state(tag), parts)
}

/// Returns the state of SHA-256 after the 64 bytes with which every hash of a tag begins.
fn tag_state(tag: &str) -> Sha256 {
    let tag = Sha256::digest(tag.as_bytes());
    Sha256::new_with_prefix(tag).chain_update(tag)
}

fn finish(state: Sha256, parts: &[&[u8]]) -> [u8; 32] {
    parts.iter().fold(state, |hash, part| hash.chain_update(part)).finalize().into()
}

/// The states of the three tags, which every address needs. BIP-340 proposes to compute them once.
static TAP_LEAF: LazyLock<Sha256> = LazyLock::new(|| tag_state("TapLeaf"));
static TAP_BRANCH: LazyLock<Sha256> = LazyLock::new(|| tag_state("TapBranch"));
static TAP_TWEAK: LazyLock<Sha256> = LazyLock::new(|| tag_state("TapTweak"));

/// Computes the hash of one leaf.
#[must_use]
pub fn leaf_hash(script: &[u8]) -> [u8; 32] {
    // Every script here is shorter than 253 bytes, so its compact size is one byte.
    let len = u8::try_from(script.len()).unwrap_or(u8::MAX);
    finish(TAP_LEAF.clone(), &[&[LEAF_VERSION, len], script])
}

/// Computes the hash of two children, in bytewise order.
#[must_use]
pub fn branch_hash(a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    finish(TAP_BRANCH.clone(), &[&a.min(b), &a.max(b)])
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
        self.output_under(&InternalKey::lift(self.internal_key)?)
    }

    /// Computes the same as [`Htlc::output`], with an internal key whose point is known. `None` if it is not the key of this HTLC.
    #[must_use]
    pub fn output_under(&self, internal_key: &InternalKey) -> Option<Output> {
        if internal_key.key != self.internal_key {
            return None;
        }
        let redeem_leaf = leaf_hash(&self.redeem_script());
        let refund_leaf = leaf_hash(&self.refund_script());
        let instant_refund_leaf = leaf_hash(&self.instant_refund_script());
        let merkle_root = branch_hash(redeem_leaf, branch_hash(refund_leaf, instant_refund_leaf));
        let (key, parity_odd) = internal_key.tweak(finish(TAP_TWEAK.clone(), &[&self.internal_key, &merkle_root]))?;
        Some(Output { key, parity_odd, redeem_leaf, refund_leaf, instant_refund_leaf, merkle_root })
    }

    /// Computes the address on a network; `None` if the internal key is not a point on the curve.
    #[must_use]
    pub fn address(&self, coin: Coin, net: BitcoinNet) -> Option<String> {
        self.output()?.address(coin, net)
    }
}

impl Output {
    /// Returns the address on a network.
    #[must_use]
    pub fn address(&self, coin: Coin, net: BitcoinNet) -> Option<String> {
        segwit::encode(hrp(coin, net), segwit::VERSION_1, &self.key).ok()
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
    let (halves, _) = key.as_chunks::<16>();
    KNOWN_KEYS.iter().any(|known| known.iter().map(|half| half.to_be_bytes()).eq(halves.iter().copied()))
}

/// The x-only keys of the secrets 1 to 16, each as its two halves. They are written out because computing them was half of the time
/// that the program needs to start.
const KNOWN_KEYS: [[u128; 2]; 16] = [
    [0x79be667e_f9dcbbac_55a06295_ce870b07, 0x029bfcdb_2dce28d9_59f2815b_16f81798],
    [0xc6047f94_41ed7d6d_3045406e_95c07cd8, 0x5c778e4b_8cef3ca7_abac09b9_5c709ee5],
    [0xf9308a01_9258c310_49344f85_f89d5229, 0xb531c845_836f99b0_8601f113_bce036f9],
    [0xe493dbf1_c10d80f3_581e4904_930b1404, 0xcc6c1390_0ee07584_74fa94ab_e8c4cd13],
    [0x2f8bde4d_1a072093_55b4a725_0a5c5128, 0xe88b84bd_dc619ab7_cba8d569_b240efe4],
    [0xfff97bd5_755eeea4_20453a14_355235d3, 0x82f6472f_8568a18b_2f057a14_60297556],
    [0x5cbdf064_6e5db4ea_a398f365_f2ea7a0e, 0x3d419b7e_0330e39c_e92bdded_cac4f9bc],
    [0x2f01e5e1_5cca351d_aff3843f_b70f3c2f, 0x0a1bdd05_e5af888a_67784ef3_e10a2a01],
    [0xacd484e2_f0c7f653_09ad178a_9f559abd, 0xe0979697_4c57e714_c35f110d_fc27ccbe],
    [0xa0434d9e_47f3c862_35477c7b_1ae6ae5d, 0x3442d49b_1943c2b7_52a68e2a_47e247c7],
    [0x774ae7f8_58a9411e_5ef4246b_70c65aac, 0x5649980b_e5c17891_bbec1789_5da008cb],
    [0xd01115d5_48e7561b_15c38f00_4d734633, 0x687cf441_9620095b_c5b0f470_70afe85a],
    [0xf28773c2_d975288b_c7d1d205_c3748651, 0xb075fbc6_610e58cd_deeddf8f_19405aa8],
    [0x499fdf9e_895e719c_fd64e67f_07d38e32, 0x26aa7b63_678949e6_e49b241a_60e823e4],
    [0xd7924d4f_7d43ea96_5a465ae3_095ff411, 0x31e5946f_3c85f79e_44adbcf8_e27e080e],
    [0xe60fce93_b59e9ec5_3011aabc_21c23e97, 0xb2a31369_b87a5ae9_c44ee89e_2a6dec0a],
];

/// Computes the x coordinate of `lift_x(key) + tweak * G`, and whether y is odd (BIP-341). `None` if `key` is not a point on the
/// curve, or `tweak` not below its order.
#[must_use]
pub fn tweak(key: [u8; 32], tweak: [u8; 32]) -> Option<([u8; 32], bool)> {
    InternalKey::lift(key)?.tweak(tweak)
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
    fn the_written_keys_are_the_multiples_of_the_generator() {
        for (secret, known) in (1_u64..).zip(KNOWN_KEYS) {
            let key: [u8; 32] = ProjectivePoint::mul_by_generator(&Scalar::from(secret)).to_affine().x().into();
            assert_eq!(known.map(u128::to_be_bytes).concat(), key, "{secret}");
            assert!(has_known_secret(key), "{secret}");
        }
        let seventeen: [u8; 32] = ProjectivePoint::mul_by_generator(&Scalar::from(17_u64)).to_affine().x().into();
        assert!(!has_known_secret(seventeen));
    }

    #[test]
    fn an_output_is_never_computed_under_the_internal_key_of_another_htlc() {
        let internal_key = bytes("2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0");
        let other = bytes("50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0");
        let htlc = Htlc { internal_key, initiator: other, redeemer: internal_key, secret_hash: [7; 32], timelock: 144 };
        assert_eq!(htlc.output_under(&InternalKey::lift(internal_key).unwrap()), htlc.output());
        assert!(htlc.output().is_some());
        assert_eq!(htlc.output_under(&InternalKey::lift(other).unwrap()), None);
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
