//! Tests the sandbox's Solana. `countersign-node` reads and pays, and other tests call it as wallets do.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, clippy::as_conversions, unreachable_pub, reason = "a test fails by panicking")]

mod front;
mod records;
mod scene;
mod swaps;
