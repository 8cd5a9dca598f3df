//! The gasless message: EIP-712, `Initiate` in the domain of the swap contract (protocol.md section 4).
//!
//! It names neither the token, which the contract fixes, nor a nonce or expiry: only the swap id, used once, stops a
//! replay.

use alloy_dyn_abi::eip712::TypedData;
use alloy_primitives::Address;
use countersign_abi::steps;
pub use countersign_abi::typed_data::{Hashes, Message};
use countersign_abi::typed_data::{Rules, Struct};

use crate::address;

pub(crate) const RULES: Rules =
    Rules { address: |_, node| address::read(node), shown: |address| address.to_string(), drops_destination_data: false };

/// A gasless message with its hashes, ready to be signed by the owner.
pub type UnsignedMessage = steps::UnsignedMessage<Address>;

/// A message as alloy's own type, for signers that take typed data instead of a digest.
#[must_use]
pub fn to_typed_data(message: &Message) -> TypedData {
    let domain = Some(message.domain());
    match message.to_struct() {
        Struct::Plain(message) => TypedData::from_struct(&message, domain),
        Struct::WithData(message) => TypedData::from_struct(&message, domain),
    }
}
