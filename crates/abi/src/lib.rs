//! What EVM and Tron share: the swap contract's calls ([`call`]), its `Initiate` message ([`typed_data`]), the rules on both
//! ([`rules`]), how an order is funded ([`funding`]), what is signed for it ([`payloads`]) and shown ([`summary`]), secp256k1
//! signatures ([`signature`]), and what the chain says about an order ([`read`]).
//!
//! Calls and messages are decoded strictly, then encoded again from what was decoded and compared whole: whatever a decoder
//! overlooks, the comparison finds.

pub mod call;
mod ecdsa;
pub mod funding;
pub mod payloads;
pub mod read;
pub mod rules;
pub mod signature;
pub mod summary;
pub mod typed_data;

pub use alloy_primitives;
pub use alloy_sol_types;
