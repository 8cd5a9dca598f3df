//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

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
