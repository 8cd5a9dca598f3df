//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    missing_debug_implementations,
    missing_docs,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod bitcoin;
mod conversations;
mod crowds;
mod evm;
mod evm_broadcast;
mod evm_contracts;
mod evm_l1_fee;
mod evm_prices;
mod evm_recovery;
mod evm_tokens;
mod evm_wallet;
mod preconditions;
mod solana;
mod starknet;
mod sui;
mod support;
mod traces;
mod tron;
