#![doc = include_str!("../README.md")]

#[cfg(feature = "evm")]
pub mod clear_signing;
