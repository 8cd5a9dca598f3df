//! The tests of the program, in one binary: a file for each subject.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, missing_docs, unreachable_pub, reason = "a test ends by panicking")]

mod agents;
mod backup;
mod clear_signing;
mod commands;
mod config;
mod consent;
mod contracts;
mod delegated;
mod effect;
mod endings;
mod ends;
mod faults;
mod home;
mod init;
mod kept;
mod matches;
mod matches_by_id;
mod nodes;
mod orders;
mod own;
mod preflight;
mod private;
mod program;
mod psbt;
mod receipts;
mod recover;
mod refunds;
mod reports;
mod restore;
mod service;
mod structure;
#[path = "../../client/tests/support/mod.rs"]
mod support;
mod swaps;
mod terminal;
mod whole;
mod words;
