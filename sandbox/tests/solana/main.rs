//! The sandbox's Solana, read and paid by `countersign-node` and called as wallets call it.
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
mod scene;
mod swaps;
