//! Starknet.

use countersign::starknet::{Deposit, Payload, UnsignedOrder};

use super::{Device, HashCard};

pub(super) fn cards(order: &UnsignedOrder) -> Vec<HashCard> {
    let requests = order.requests();
    let cards = requests.iter().map(|request| {
        let (label, software) = match &request.payload {
            Payload::Invoke(_) => ("Transaction Hash", "Transaction hash"),
            _ => ("Hash", "Message hash"),
        };
        // SDKs write a felt without leading zeros.
        let digits = hex::encode(&request.digest);
        let card = HashCard::new(request).with(Device::LedgerStarknet, label, hex::encode_upper(&request.digest));
        card.with(Device::Software, software, format!("0x{}", digits.trim_start_matches('0')))
    });
    cards.collect()
}

pub(super) fn of_deposit(deposit: &Deposit) -> Vec<(&'static str, String)> {
    let hash = |hash: [u8; 32]| ("typed_data_message_hash", hex::encode(hash));
    deposit.typed_data.iter().map(|message| hash(message.hashes(deposit.sender).message_hash.to_bytes_be())).collect()
}
