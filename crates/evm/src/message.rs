//! The gasless message: `Initiate` of EIP-712, in the domain of the swap contract.
//!
//! The message does not name the token, which the contract fixes. It also has no nonce and no expiry. Only the swap id, which
//! the contract accepts once, prevents a replay.
//!
//! Specification: `docs/spec/evm.md#typed-data`.

use alloy_dyn_abi::eip712::{Resolver, TypedData};
pub use countersign_evm_core::typed_data::{DOMAIN_NAME, Hashes, Message};
use countersign_evm_core::typed_data::{MessageRules, Struct, plain, with_data};

use crate::address::CODEC;

pub(crate) const RULES: MessageRules = MessageRules { codec: CODEC, drops_destination_data: false };

/// Returns a message as alloy's own type, for signers that take typed data instead of a digest.
///
/// For `eth_signTypedData_v4` use [`Message::to_json`] instead: browser wallets require that `types` declares `EIP712Domain`.
#[must_use]
pub fn to_typed_data(message: &Message) -> TypedData {
    let domain = message.domain();
    let mut resolver = match message.to_struct() {
        Struct::Plain(_) => Resolver::from_struct::<plain::Initiate>(),
        Struct::WithData(_) => Resolver::from_struct::<with_data::Initiate>(),
    };
    // The type string of a domain is always valid.
    let _ = resolver.ingest_string(domain.encode_type());
    TypedData { domain, resolver, primary_type: "Initiate".to_owned(), message: message.members().into() }
}
