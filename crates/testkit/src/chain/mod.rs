//! Chains in memory, which answer what readers ask.

#[cfg(feature = "tron")]
pub mod tron;
