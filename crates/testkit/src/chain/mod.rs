//! Chains in memory, which answer what readers ask.

#[cfg(feature = "starknet")]
pub mod starknet;
