//! The tests of this crate, in one program: a file for each subject.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod api;
mod chains;
mod codes;
mod contexts;
mod contributing;
mod fate;
mod key;
mod outline;
mod pages;
mod recover;
mod registry;
mod versions;
