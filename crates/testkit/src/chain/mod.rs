//! Chains in memory, which answer what readers ask.

#[cfg(feature = "starknet")]
pub mod starknet;
#[cfg(feature = "tron")]
pub mod tron;
#[cfg(feature = "sui")]
pub mod sui;
#[cfg(feature = "solana")]
pub mod solana;
