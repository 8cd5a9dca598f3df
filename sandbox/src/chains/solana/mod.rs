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
