//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, clippy::as_conversions, reason = "a test fails by panicking")]

mod accept;
mod api;
mod captures;
mod chain;
mod coins;
mod forms;
mod hostile;
mod matches;
mod properties;
mod psbt;
mod published;
mod reader;
mod recover;
mod sign;
mod summary;
