//! Programs of the upgradeable loader.

use sha2::{Digest, Sha256};

use super::{Unclear, part};
use crate::address::Address;

/// The upgradeable loader, which owns programs that can be upgraded.
const LOADER: Address = Address::from_str_const("BPFLoaderUpgradeab1e11111111111111111111111");
/// Offset of the code.
const CODE: usize = 45;

/// The deployed code of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramData {
    /// The slot of the last deployment.
    pub slot: u64,
    /// The account that can replace the code; `None` if the program is immutable.
    pub authority: Option<Address>,
    /// SHA-256 of the code without its trailing zeros, which only reserve space.
    pub code_hash: [u8; 32],
}

/// Decodes the account of a program: the number 2 in 4 bytes, little-endian, then the address of the account with its code, which is
/// returned; `None` if it is not an upgradeable program.
#[must_use]
pub fn program(owner: Address, data: &[u8]) -> Option<Address> {
    let is_program = owner == LOADER && data.len() == 36 && data.starts_with(&[2, 0, 0, 0]);
    part::<32>(data, 4..36).filter(|_| is_program).map(Address::from)
}

/// Decodes the account with a program's code: the number 3 in 4 bytes, the slot in 8, 1 byte that tells whether there is an authority,
/// 32 bytes for the authority, then the code.
///
/// # Errors
///
/// [`Unclear`] for anything else.
pub fn program_data(owner: Address, data: &[u8]) -> Result<ProgramData, Unclear> {
    let unknown = Unclear("the program's code has an unknown layout");
    let (slot, authority) = (part(data, 4..12).map(u64::from_le_bytes), part::<32>(data, 13..45).map(Address::from));
    let code = data.get(CODE..).filter(|_| owner == LOADER && data.starts_with(&[3, 0, 0, 0])).ok_or(unknown)?;
    let authority = match (data.get(12), authority) {
        (Some(0), _) => None,
        (Some(1), Some(authority)) => Some(authority),
        _ => return Err(unknown),
    };
    let length = code.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
    let code_hash = Sha256::digest(code.get(..length).unwrap_or_default()).into();
    Ok(ProgramData { slot: slot.ok_or(unknown)?, authority, code_hash })
}
