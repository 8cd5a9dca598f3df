//! What EVM and Tron share: the swap contract's calls ([`call`]), its `Initiate` message ([`typed_data`]), the rules on both
//! ([`rules`]), the steps of an order ([`steps`]) with their [`summary`], and secp256k1 signatures ([`signature`]).
//!
//! Calls and messages are read strictly, then built again from what was read and compared whole: whatever a decoder
//! overlooks, the comparison finds.

pub mod call;
pub mod rules;
pub mod signature;
pub mod steps;
pub mod summary;
pub mod typed_data;

pub use alloy_primitives;
pub use alloy_sol_types;
