//! Chains in memory, which answer what readers ask.

#[cfg(feature = "bitcoin")]
pub mod bitcoin;
#[cfg(feature = "evm")]
pub mod evm;
#[cfg(feature = "solana")]
pub mod solana;
#[cfg(feature = "starknet")]
pub mod starknet;
#[cfg(feature = "sui")]
pub mod sui;
#[cfg(feature = "tron")]
pub mod tron;
pub mod view;
