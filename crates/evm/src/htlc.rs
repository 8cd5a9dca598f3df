//! The swap contract's calls. Tron's contract has the same ABI, so the code stands below both families.

pub use countersign_abi::call::{Approve, Initiate, InitiateAbi, MAX_CALLDATA, MAX_DESTINATION_DATA, redeem, refund};
