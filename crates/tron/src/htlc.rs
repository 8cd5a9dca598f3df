//! The calls of the swap contract, which have the same ABI as on EVM chains.
//!
//! On Tron, orders use only the `initiate` with destination data, and no account initiates on behalf of another.
//!
//! Specification: `docs/spec/tron.md#functions`.

pub use countersign_evm_core::call::{Approve, Initiate, MAX_CALLDATA, MAX_DESTINATION_DATA, redeem, refund};
