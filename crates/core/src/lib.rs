//! The vocabulary of countersign: what every family shares.
//!
//! A wallet asks the swap service for an order and gets back bytes to sign. This crate reads the request, the response
//! and the order record ([`wire`]), holds what the wallet has pinned ([`Registry`]) and allows ([`Policy`]), and drives
//! an order through four states ([`Proposed`], [`Verified`], [`Unsigned`], [`Signed`]), each of which only the step
//! before it can make. What the bytes must say is each family's affair ([`ChainFamily`]).
//!
//! No I/O, no clock, no random source, no chain encoding.

pub mod amount;
mod asset;
mod code;
mod family;
pub mod json;
pub mod number;
mod order;
mod overview;
mod policy;
mod record;
mod refusal;
mod registry;
mod rules;
mod secret_hash;
mod side;
mod state;
mod summary;
pub mod text;
pub mod wire;

pub use asset::AssetId;
pub use code::Code;
pub use countersign_chains as chains;
pub use countersign_chains::{Account, Family, Network};
pub use family::{ChainFamily, SigningRequest};
pub use number::Hex;
pub use order::{Documents, Order, Terms, bad_address};
pub use policy::{Approvals, Policy};
pub use refusal::Refusal;
pub use registry::{Asset, Chain, Change, Contract, Registry, Solver, Sponsor};
pub use ruint::aliases::U256;
pub use rules::Place;
pub use secret_hash::SecretHash;
pub use side::{Leg, Side};
pub use state::{Proposed, Signed, Unsigned, Verified};
pub use summary::{Line, Span, Summary, Topic, Warning, Warnings};
