//! Who holds the sandbox's funds. The keys are public, and worthless anywhere else.

use bech32::{Bech32, Hrp};
use sha2::{Digest, Sha256};

/// Returns a key of 32 bytes, derived from a fixed phrase. It is valid for every family: the highest four bits are zero, so it is below the
/// order of each curve.
#[must_use]
pub fn key(role: &str) -> [u8; 32] {
    let mut key: [u8; 32] = Sha256::digest(format!("countersign sandbox: {role}")).into();
    if let Some(first) = key.first_mut() {
        *first &= 0x03;
    }
    key
}

/// The user whose key the sandbox writes for the program.
pub const USER: &str = "user";
/// The solver.
pub const SOLVER: &str = "solver";
/// Pays for what users sign without gas.
pub const RELAYER: &str = "relayer";

/// A key as the wallets of a network write it; `None` where they write hex.
#[must_use]
pub fn text(key: &[u8; 32], network: &str) -> Option<String> {
    match network.split_once(':') {
        Some(("solana", _)) => Some(bs58::encode(key).into_string()),
        // A flag for Ed25519 comes first.
        Some(("sui", _)) => bech32::encode::<Bech32>(Hrp::parse("suiprivkey").ok()?, &[&[0], key.as_slice()].concat()).ok(),
        _ => None,
    }
}
