//! The gasless message: TIP-712, `Initiate` in the domain of the swap contract (protocol.md section 5).
//!
//! Its members are addresses, integers and 32 bytes, which TIP-712 hashes as EIP-712 does once addresses are their 20
//! bytes; so the message itself is shared with EVM. Destination data stands in the response's typed data but is not
//! signed. [`hash`] hashes any other typed data by TIP-712.

use alloy_primitives::B256;
pub use countersign_abi::typed_data::{Hashes, Message};
use countersign_abi::typed_data::{Rules, preimage};
use countersign_core::Hex;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::address::{self, Address};

mod tip712;

pub use tip712::hash;

pub(crate) const RULES: Rules = Rules {
    address: |order, node| address::read_once(order, node, address::read_any).map(Address::bytes),
    shown: |address| Address::from(address).to_string(),
    drops_destination_data: true,
};

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
}

/// The three hashes as the artefacts carry them.
pub(crate) fn serialize_hashes<M: SerializeMap>(map: &mut M, hashes: &Hashes) -> Result<(), M::Error> {
    let hex = |hash: B256| Hex(hash.to_vec());
    map.serialize_entry("domain_separator", &hex(hashes.domain_separator))?;
    map.serialize_entry("struct_hash", &hex(hashes.struct_hash))?;
    map.serialize_entry("digest", &hex(hashes.digest))
}

impl Serialize for UnsignedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        serialize_hashes(&mut map, &self.hashes)?;
        map.end()
    }
}
