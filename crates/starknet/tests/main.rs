//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod accept;
mod api;
mod captures;
mod external;
mod generations;
mod hostile;
mod payment;
mod properties;
mod published;
mod read;
mod reader;
mod recover;
mod sign;
#[cfg(any(feature = "starknet-signer", feature = "starknet-rust-signer"))]
mod signers;
#[cfg(any(feature = "starknet-rs", feature = "starknet-rust"))]
mod starknet_rs;
mod summary;
