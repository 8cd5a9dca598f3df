//! What EVM and Tron share: the swap contract's calls ([`call`]), its `Initiate` message ([`typed_data`]), the rules on both
//! ([`rules`]), how an order is funded ([`funding`]), which call a wallet sent ([`matching`]), which log shows its payment
//! ([`effect`]), what is signed for it ([`payloads`]) and shown ([`summary`]), secp256k1 signatures ([`signature`]), keys that
//! sign in place of the sender's ([`signers`]), what the chain stores about an order ([`read`]), what it may transfer
//! ([`transfer`]), and why a call reverts ([`revert`]).
//!
//! Calls and messages are decoded strictly. Then they are encoded again from the decoded values and compared whole, so that the
//! comparison finds whatever the decoder overlooks. The formats are those of `docs/spec/evm.md` and `docs/spec/tron.md`.

pub mod call;
mod ecdsa;
pub mod effect;
pub mod funding;
pub mod matching;
pub mod payloads;
pub mod read;
pub mod revert;
pub mod rules;
pub mod signature;
pub mod signers;
pub mod summary;
pub mod transfer;
pub mod typed_data;

pub use alloy_primitives;
pub use alloy_sol_types;
