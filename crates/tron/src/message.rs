//! The gasless message: `Initiate` of TIP-712, in the domain of the swap contract.
//!
//! Its members are addresses, integers and 32-byte values. TIP-712 hashes them as EIP-712 does, with addresses as their 20 bytes.
//! Therefore [`Message`] is the same type as on EVM chains. The typed data of a response also contains destination data, which is
//! not signed. [`hash`] hashes any other typed data by TIP-712.
//!
//! Specification: `docs/spec/tron.md#typed-data`.

use countersign_evm_core::typed_data::MessageRules;
pub use countersign_evm_core::typed_data::{Hashes, Message};
use serde_json::Value;

use crate::address::{Address, CODEC};

mod tip712;

pub use tip712::hash;

pub(crate) const RULES: MessageRules = MessageRules { codec: CODEC, drops_destination_data: true };

/// Returns a message as TronWeb and TronLink accept it: `tronWeb.trx.signTypedData(domain, types, message)`.
///
/// Two things differ from [`Message::to_json`], the form for EVM wallets. Addresses are in base58check. `types` does not
/// declare `EIP712Domain`, which TronWeb refuses as an unused type.
#[must_use]
pub fn to_json(message: &Message) -> Value {
    let address = |address| Value::from(Address::from(address).to_string());
    let mut json = message.to_json();
    let replaced =
        [("/domain/verifyingContract", address(message.verifying_contract)), ("/message/redeemer", address(message.terms.redeemer))];
    for (pointer, value) in replaced {
        if let Some(member) = json.pointer_mut(pointer) {
            *member = value;
        }
    }
    if let Some(Value::Object(types)) = json.get_mut("types") {
        types.remove("EIP712Domain");
    }
    json
}
