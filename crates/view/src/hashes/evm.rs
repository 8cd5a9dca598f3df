//! EVM chains.

use countersign::evm::{Deposit, Payload, UnsignedOrder};

use super::typed_data::{self, lower};
use super::{Device, HashCard};

pub(super) fn cards(order: &UnsignedOrder) -> Vec<HashCard> {
    let requests = order.requests();
    let cards = requests.iter().map(|request| {
        let card = HashCard::new(request);
        match &request.payload {
            Payload::Transaction(_) => card.with(Device::LedgerEthereum, "Transaction hash", lower(&request.digest)),
            _ => typed_data::add(card, Device::LedgerEthereum, request),
        }
    });
    cards.collect()
}

pub(super) fn of_deposit(deposit: &Deposit) -> Vec<(&'static str, String)> {
    deposit.typed_data.iter().flat_map(|message| typed_data::named(&message.hashes())).collect()
}
