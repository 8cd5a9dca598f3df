//! The gasless message: EIP-712, `Initiate` in the domain of the swap contract (protocol.md section 4).
//!
//! It names neither the token, which the contract fixes, nor a nonce or expiry: only the swap id, used once, stops a
//! replay.

use alloy_dyn_abi::eip712::TypedData;
use alloy_primitives::Address;
pub use countersign_abi::typed_data::{Hashes, Message};
use countersign_abi::typed_data::{Rules, Struct, preimage};

use crate::address;

pub(crate) const RULES: Rules =
    Rules { address: |_, node| address::read(node), shown: |address| address.to_string(), drops_destination_data: false };

/// A message with its hashes, ready to be signed by the owner.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnsignedMessage {
    /// The message.
    pub message: Message,
    /// Its hashes.
    pub hashes: Hashes,
    /// The owner.
    pub signer: Address,
}

impl UnsignedMessage {
    pub(crate) fn new(message: Message, signer: Address) -> Self {
        let hashes = message.hashes();
        Self { message, hashes, signer }
    }

    /// `1901`, domain separator, struct hash.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        preimage(self.hashes.domain_separator, self.hashes.struct_hash).to_vec()
    }

    /// The message as alloy's own type, for signers that take typed data instead of a digest.
    #[must_use]
    pub fn to_typed_data(&self) -> TypedData {
        let domain = Some(self.message.domain());
        match self.message.to_struct() {
            Struct::Plain(message) => TypedData::from_struct(&message, domain),
            Struct::WithData(message) => TypedData::from_struct(&message, domain),
        }
    }
}
