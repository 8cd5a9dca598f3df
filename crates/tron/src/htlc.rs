//! The swap contract's calls. EVM's contract has the same ABI, so the code stands below both families.
//!
//! On Tron the contract has only the forms with destination data, and nobody initiates for another.

pub use countersign_abi::call::{Approve, Initiate, MAX_CALLDATA, MAX_DESTINATION_DATA, redeem, refund};
