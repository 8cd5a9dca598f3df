//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod accept;
mod api;
mod captures;
mod external;
mod fees;
mod forms;
mod generations;
mod hostile;
mod lighthouse;
mod nonce;
mod payment;
mod policy;
mod properties;
mod read;
mod reader;
mod recover;
mod sign;
mod summary;
mod version_1;
