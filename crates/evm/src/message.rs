//! The gasless message: EIP-712, `Initiate` in the domain of the swap contract.
//!
//! It names neither the token, which the contract fixes, nor a nonce or expiry: only the swap id, used once, stops a
//! replay.

use alloy_dyn_abi::eip712::TypedData;
pub use countersign_abi::typed_data::{DOMAIN_NAME, Hashes, Message};
use countersign_abi::typed_data::{MessageRules, Struct};

use crate::address::CODEC;

pub(crate) const RULES: MessageRules = MessageRules { codec: CODEC, drops_destination_data: false };

/// Returns a message as alloy's own type, for signers that take typed data instead of a digest.
///
/// For `eth_signTypedData_v4` take [`Message::to_json`]: browser wallets want the domain's type among the types.
#[must_use]
pub fn to_typed_data(message: &Message) -> TypedData {
    let domain = Some(message.domain());
    match message.to_struct() {
        Struct::Plain(message) => TypedData::from_struct(&message, domain),
        Struct::WithData(message) => TypedData::from_struct(&message, domain),
    }
}
