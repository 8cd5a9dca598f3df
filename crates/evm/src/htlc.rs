//! The swap contract's calls. Tron's contract has the same ABI, so the code is in a crate below both families.
//!
//! Specification: `docs/spec/evm.md#functions`.

pub use countersign_abi::call::{Approve, Initiate, InitiateAbi, MAX_CALLDATA, MAX_DESTINATION_DATA, redeem, refund};
