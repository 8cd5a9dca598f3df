//! Chains in memory, which answer what readers ask.

#[cfg(feature = "evm")]
pub mod evm;
