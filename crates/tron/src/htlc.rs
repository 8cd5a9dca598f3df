//! The swap contract's calls, which have the same ABI as on EVM chains.
//!
//! On Tron the contract has only the forms with destination data, and nobody initiates for another.
//!
//! Specification: `docs/spec/tron.md#functions`.

pub use countersign_abi::call::{Approve, Initiate, MAX_CALLDATA, MAX_DESTINATION_DATA, redeem, refund};
