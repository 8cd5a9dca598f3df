//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod accept;
mod api;
mod claim;
mod external;
mod funding;
mod generations;
mod hostile;
mod payment;
mod policy;
mod properties;
mod published;
mod read;
mod reader;
mod received;
mod recover;
mod sign;
#[cfg(feature = "alloy-signer")]
mod signers;
mod spellings;
mod summary;
