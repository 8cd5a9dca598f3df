//! Chains in memory, which answer what readers ask.

#[cfg(feature = "sui")]
pub mod sui;
