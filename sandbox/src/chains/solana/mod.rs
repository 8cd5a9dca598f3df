//! Solana: the swap programs of `proofs/solana` in litesvm, with the JSON-RPC interface that wallets use.
//!
//! Litesvm executes transactions. It checks signatures, fees and rent, and runs the real system, token and associated
//! token programs. Slots, blockhashes, commitments and history are simulated here. Programs cannot be deployed.
//! Durable nonces and lookup tables are not supported.
//!
//! - A block is confirmed by the next one and final after four. Each commitment has its own state, on which
//!   simulations run.
//! - A blockhash is valid for 150 blocks. It is also valid for at least a minute of the clock, even if blocks come
//!   faster than every 400 ms, unless 150 or more blocks are made at once.
//! - The newest 16,384 transactions are kept.

mod bank;
mod engine;
mod front;
mod htlc;
mod subscriptions;

pub use engine::Solana;
pub use subscriptions::{Subscriptions, signature_result};

/// The address of the clock account.
pub(crate) const CLOCK: &str = "SysvarC1ock11111111111111111111111111111111";
/// The address of the recent blockhashes account.
pub(crate) const RECENT_BLOCKHASHES: &str = "SysvarRecentB1ockHashes11111111111111111111";

/// Returns the data of the recent blockhashes account without its newest hundred entries.
pub(crate) fn oldest_blockhashes(data: &[u8]) -> Option<Vec<u8>> {
    let (count, hashes) = data.split_first_chunk::<8>()?;
    Some([count, hashes.get(100 * bank::BLOCKHASH..)?].concat())
}

/// Returns the data of the clock account with a changed time. `change` maps seconds since 1970.
pub(crate) fn with_clock(mut data: Vec<u8>, change: impl FnOnce(u64) -> u64) -> Option<Vec<u8>> {
    let time = data.get_mut(32..40)?.first_chunk_mut::<8>()?;
    *time = change(u64::from_le_bytes(*time)).to_le_bytes();
    Some(data)
}
