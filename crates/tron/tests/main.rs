//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod accept;
mod api;
mod hostile;
mod matches;
mod payment;
mod permissions;
mod properties;
mod published;
mod reader;
mod recover;
mod sign;
mod summary;
