//! The hashes of EIP-712 and TIP-712 typed data.

use countersign::SigningRequest;
#[cfg(feature = "evm")]
use countersign::evm::message::Hashes;
#[cfg(not(feature = "evm"))]
use countersign::tron::message::Hashes;

use super::{Device, HashCard};

pub(super) fn lower(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// Adds the hashes to a card. They are the two parts of the preimage `1901 | domain hash | message hash`.
pub(super) fn add<P>(card: HashCard, ledger: Device, request: &SigningRequest<P>) -> HashCard {
    let (Some(domain), Some(message)) = (request.message.get(2..34), request.message.get(34..66)) else { return card };
    let upper = |bytes: &[u8]| format!("0x{}", hex::encode_upper(bytes));
    let mut card = card.with(ledger, "Domain hash", upper(domain)).with(ledger, "Message hash", upper(message));
    // What Trezor shows of messages of Tron is not established.
    if ledger == Device::LedgerEthereum {
        card = card
            .with(Device::TrezorCore, "Confirm message hash", lower(message))
            .with(Device::TrezorOne, "EIP-712 domain hash", hex::encode_upper(domain))
            .with(Device::TrezorOne, "EIP-712 message hash", hex::encode_upper(message));
    }
    let card = card.with(Device::Software, "Domain separator", lower(domain)).with(Device::Software, "Struct hash", lower(message));
    card.with(Device::Software, "Digest", lower(&request.digest))
}

/// Returns the hashes of a message with their names in a receipt.
pub(super) fn named(hashes: &Hashes) -> [(&'static str, String); 3] {
    [
        ("typed_data_domain_separator", hex::encode(hashes.domain_separator)),
        ("typed_data_struct_hash", hex::encode(hashes.struct_hash)),
        ("typed_data_digest", hex::encode(hashes.digest)),
    ]
}
