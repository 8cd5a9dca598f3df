//! The tests of this crate, in one program: a file for each subject.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;
mod hashes;
mod page;
mod receipt;
mod sentence;
