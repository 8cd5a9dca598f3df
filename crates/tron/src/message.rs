//! The gasless message: TIP-712, `Initiate` in the domain of the swap contract (protocol.md section 5).
//!
//! Its members are addresses, integers and 32 bytes, which TIP-712 hashes as EIP-712 does once addresses are their 20
//! bytes; so the message itself is shared with EVM. Destination data stands in the response's typed data but is not
//! signed. [`hash`] hashes any other typed data by TIP-712.

use countersign_abi::steps;
use countersign_abi::typed_data::Rules;
pub use countersign_abi::typed_data::{Hashes, Message};

use crate::address::{self, Address};

mod tip712;

pub use tip712::hash;

pub(crate) const RULES: Rules = Rules {
    address: |order, node| address::read_once(order, node, address::read_any).map(Address::bytes),
    shown: |address| Address::from(address).to_string(),
    drops_destination_data: true,
};

/// A gasless message with its hashes, ready to be signed by the owner.
pub type UnsignedMessage = steps::UnsignedMessage<Address>;
