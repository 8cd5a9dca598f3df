//! The calls of the swap contract. Tron's contract has the same ABI, so `countersign_evm_core` implements them for both families.
//!
//! Specification: `docs/spec/evm.md#functions`.

pub use countersign_evm_core::call::{Approve, Initiate, InitiateAbi, MAX_CALLDATA, MAX_DESTINATION_DATA, redeem, refund};
