//! What a wallet must know of *every* chain to judge an order, whichever chain it signs on: networks, the strict spelling
//! of addresses, and the swap id that each chain's HTLC gives to a swap.
//!
//! An order has two sides on two chains. Its record is checked whole, so a wallet that compiles only one family still
//! recomputes the other side's swap id: a Cargo feature must never change a verdict. That is why this crate stands below
//! the families instead of inside them.
//!
//! Nothing here parses JSON, signs, or reads anything from outside.

pub mod address;
pub mod digits;
pub mod network;
pub mod swap_id;
pub mod taproot;
pub mod transaction_id;

pub use address::{Account, AddressError};
pub use network::{BitcoinNet, Coin, Family, Network, NetworkError};
