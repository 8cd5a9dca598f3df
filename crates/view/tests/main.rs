//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, missing_docs, reason = "a test fails by panicking")]

mod common;
mod hashes;
mod page;
mod receipt;
mod sentence;
