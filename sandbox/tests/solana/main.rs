//! Tests the sandbox's Solana. `countersign-node` reads and pays, and other tests call it as wallets do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod front;
mod records;
mod scene;
mod swaps;
