//! The accounts that hold the sandbox's funds. Their keys are public and worthless anywhere else.

use sha2::{Digest, Sha256};

/// Returns a 32-byte key derived from a fixed phrase. It is valid for every family: its highest four bits are zero,
/// so it is below the order of each curve.
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
/// The account that pays the fees of gasless users.
pub const RELAYER: &str = "relayer";
