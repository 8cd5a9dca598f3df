//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod accept;
mod api;
mod balances;
mod captures;
mod coins;
mod hostile;
mod matches;
mod properties;
mod read;
mod reader;
mod recover;
mod sign;
#[cfg(feature = "sui-signer")]
mod signers;
mod summary;
mod support;
