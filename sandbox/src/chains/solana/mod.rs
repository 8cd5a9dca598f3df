//! Solana: the swap programs of `proofs/solana` in litesvm, with the JSON-RPC interface that wallets use.
//!
//! Litesvm executes transactions. It checks signatures, fees and rent, and runs the real system, token and associated
//! token programs. Slots, blockhashes, commitments and history are simulated here. Programs cannot be deployed.
//! Lookup tables are not supported.
//!
//! - A block is confirmed by the next one and final after four. Each commitment has its own state, on which
//!   simulations run.
//! - A blockhash is valid for 150 blocks. It is also valid for at least a minute of the clock, even if blocks come
//!   faster than every 400 ms, unless 150 or more blocks are made at once.
//! - A durable nonce takes a blockhash's place until it is advanced, which a transaction that fails does too.
//! - The newest 16,384 transactions are kept.

mod bank;
mod engine;
mod front;
mod htlc;
mod lies;
mod nonce;
mod subscriptions;

pub use engine::Solana;
pub use subscriptions::{Subscriptions, signature_result};

use super::family::Family;

pub(super) const FAMILY: Family = Family {
    prefixes: &["solana"],
    local: &[("solana_localnet", "solana:localnet")],
    start: |start| Ok(Box::new(Solana::new(start.name, start.network(), start.clock))),
    tour: &[["solana:usdc", "arbitrum:eth"], ["base:usdc", "solana:sol"]],
    lies: lies::LIES,
    variants: lies::VARIANTS,
    interface: &lies::Rpc,
};

/// The address of the clock account.
const CLOCK: &str = "SysvarC1ock11111111111111111111111111111111";
/// The address of the recent blockhashes account.
const RECENT_BLOCKHASHES: &str = "SysvarRecentB1ockHashes11111111111111111111";
