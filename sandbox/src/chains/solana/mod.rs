//! Solana: the swap programs of `proofs/solana` in litesvm, behind the JSON-RPC that wallets speak.
//!
//! Transactions are judged by litesvm: signatures, fees, rent, the real system, token and associated token programs. Slots, blockhashes,
//! commitments and history are made here. Programs cannot be deployed, and there are no durable nonces and no lookup tables.

mod bank;
mod engine;
mod front;
mod htlc;
mod subscriptions;

pub use engine::Solana;
pub use subscriptions::{Subscriptions, signature_result};
