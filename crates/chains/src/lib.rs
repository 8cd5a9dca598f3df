//! What a wallet must know about *every* chain to judge an order, whichever chain it signs on: networks, the strict forms of
//! addresses, and the swap id that each chain's HTLC gives to a swap.
//!
//! An order has two legs on two chains. Its whole record is checked, so a wallet that compiles only one family still recomputes
//! the other leg's swap id: a Cargo feature must never change a verdict. That is why the families depend on this crate instead of
//! containing it.
//!
//! Nothing here parses JSON, signs or does I/O.

pub mod address;
mod coin;
pub mod digits;
mod family;
mod finality;
pub mod height;
pub mod network;
pub mod pace;
pub mod profile;
pub mod swap_id;
pub mod taproot;
pub mod time;
pub mod transaction_id;

pub use address::{Account, AddressError};
pub use coin::{BUSY_FEE_RATE, CoinProfile, FeeTargets, REDEMPTION_VBYTES};
pub use finality::{Finality, FinalityRule};
pub use height::BlockHeight;
pub use network::{BitcoinNet, Coin, Family, Network, NetworkError};
pub use pace::{Pace, Span};
pub use profile::{ChainProfile, KNOWN_CHAINS, KnownChain};
pub use time::{UnixMillis, UnixTime};
