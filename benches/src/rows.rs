//! The names of the rows that tables and aims refer to, and the groups of criterion's results.

use crate::families;

/// The steps of every family's path, in order.
pub const STEPS: [&str; 6] = ["parse", "verify", "verify and prepare", "parse, verify and prepare", "summary", "sign every payload"];

/// The step that the aims refer to.
pub const PREPARED: &str = STEPS[3];

/// A signature over secp256k1.
pub const K256: &str = "k256 prehash signature";
/// An Ed25519 signature.
pub const ED25519: &str = "ed25519-dalek signature";
/// A signature over the Stark curve.
pub const STARK: &str = "starknet-crypto signature";
/// The two hashes of a Starknet order.
pub const STARK_HASHES: &str = "floor, the two hashes alone";
/// The accounts of a Solana order that are derived from its terms.
pub const DERIVED_ACCOUNTS: &str = "floor, derived accounts";
/// The taproot address of an HTLC.
pub const ADDRESS: &str = "address recomputed and compared";
/// The single curve operation of such an address.
pub const TWEAK: &str = "k256 tweak";

/// Returns every group, with the row that its ratios refer to.
pub fn groups() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_families = families::ALL.iter().flat_map(|family| family.groups).map(|group| (group.name, group.baseline));
    of_families.chain([("client", "order record"), ("evidence", "judged")])
}
