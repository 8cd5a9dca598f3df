//! Lighthouse, whose instructions stop a transaction that does not do what a wallet has simulated. Phantom and Solflare add such
//! instructions to what they sign on the main network.
//!
//! The first byte of the data is the instruction. The assertions read their accounts and fail, or do nothing. `MemoryWrite` and
//! `MemoryClose` move the rent of an account, so they are not assertions. Source:
//! <https://github.com/Jac0xb/lighthouse/blob/main/programs/lighthouse/src/instruction.rs>

use crate::address::Address;

/// The program.
pub(crate) const PROGRAM: Address = Address::from_str_const("L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95");
/// The most assertions that a wallet adds to a transaction. Solflare adds two.
pub(crate) const MAX: usize = 3;

/// The instructions by the first byte of their data, each with the number of its accounts.
const INSTRUCTIONS: [(&str, usize); 18] = [
    ("MemoryWrite", 5),
    ("MemoryClose", 3),
    ("AssertAccountData", 1),
    ("AssertAccountDataMulti", 1),
    ("AssertAccountDelta", 2),
    ("AssertAccountInfo", 1),
    ("AssertAccountInfoMulti", 1),
    ("AssertMintAccount", 1),
    ("AssertMintAccountMulti", 1),
    ("AssertTokenAccount", 1),
    ("AssertTokenAccountMulti", 1),
    ("AssertStakeAccount", 1),
    ("AssertStakeAccountMulti", 1),
    ("AssertUpgradeableLoaderAccount", 1),
    ("AssertUpgradeableLoaderAccountMulti", 1),
    ("AssertSysvarClock", 0),
    ("AssertMerkleTreeAccount", 3),
    ("AssertBubblegumTreeConfigAccount", 1),
];
/// The first byte of the first assertion.
const FIRST_ASSERTION: usize = 2;

/// Returns the name of an instruction; `None` if the program has no such instruction.
pub(crate) fn name(data: &[u8]) -> Option<&'static str> {
    INSTRUCTIONS.get(usize::from(*data.first()?)).map(|(name, _)| *name)
}

/// Returns whether an instruction of the program only asserts.
pub(crate) fn is_assertion(data: &[u8], accounts: usize) -> bool {
    let Some(tag) = data.first().map(|tag| usize::from(*tag)) else { return false };
    tag >= FIRST_ASSERTION && INSTRUCTIONS.get(tag).is_some_and(|(_, needed)| *needed == accounts)
}
