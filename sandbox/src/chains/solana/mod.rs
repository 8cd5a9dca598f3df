//! Solana: the swap programs of `proofs/solana` in litesvm, behind the JSON-RPC that wallets speak.
//!
//! Transactions are judged by litesvm: signatures, fees, rent, the real system, token and associated token programs. Slots, blockhashes,
//! commitments and history are made here. Programs cannot be deployed, and there are no durable nonces and no lookup tables.
//!
//! - A block is confirmed by the next one, and final after four. Every commitment has its own state, and simulations run on it.
//! - A blockhash is valid for 150 blocks. Blocks that come faster than every 400 ms do not shorten this: it is valid for at least a
//!   minute of the clock, unless 150 blocks or more are made at once.
//! - The newest 16,384 transactions are kept.

mod bank;
mod engine;
mod front;
mod htlc;
mod subscriptions;

pub use engine::Solana;
pub use subscriptions::{Subscriptions, signature_result};

/// The account of the clock.
pub(crate) const CLOCK: &str = "SysvarC1ock11111111111111111111111111111111";
/// The account of the recent blockhashes.
pub(crate) const RECENT_BLOCKHASHES: &str = "SysvarRecentB1ockHashes11111111111111111111";

/// Returns the contents of the account of the recent blockhashes without the newest hundred of them.
pub(crate) fn oldest_blockhashes(data: &[u8]) -> Option<Vec<u8>> {
    let (count, hashes) = data.split_first_chunk::<8>()?;
    Some([count, hashes.get(100 * bank::BLOCKHASH..)?].concat())
}

/// Returns the contents of the account of the clock with another time in seconds since 1970.
pub(crate) fn with_clock(mut data: Vec<u8>, change: impl FnOnce(u64) -> u64) -> Option<Vec<u8>> {
    let time = data.get_mut(32..40)?.first_chunk_mut::<8>()?;
    *time = change(u64::from_le_bytes(*time)).to_le_bytes();
    Some(data)
}
