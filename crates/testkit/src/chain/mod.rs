//! Chains in memory, which answer what readers ask.

#[cfg(feature = "solana")]
pub mod solana;
