//! Tests `countersign-node` on starknet-devnet, a real node, without recorded or scripted responses.

#![cfg(test)]
#![allow(
    clippy::arithmetic_side_effects,
    missing_debug_implementations,
    missing_docs,
    unreachable_pub,
    reason = "a panic in a test is a failed test, and one that checks nothing says so"
)]

mod htlc;
mod stage;
mod wallet;
