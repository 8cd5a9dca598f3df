//! Tron.

use countersign::tron::transaction::protocol::TriggerSmartContract;
use countersign::tron::{Address, Deposit, Payload, UnsignedOrder};

use super::{Device, HashCard, typed_data};

/// The selectors of the calls that Ledger's app decodes: `approve` and `transfer`. It shows no hash of them.
const KNOWN: [[u8; 4]; 2] = [[0x09, 0x5e, 0xa7, 0xb3], [0xa9, 0x05, 0x9c, 0xbb]];

pub(super) fn cards(order: &UnsignedOrder) -> Vec<HashCard> {
    let requests = order.requests();
    let cards = requests.iter().map(|request| {
        let card = HashCard::new(request);
        let Payload::Transaction(transaction) = &request.payload else { return typed_data::add(card, Device::LedgerTron, request) };
        let card = call(card, &transaction.trigger).with(Device::LedgerTronByHash, "Hash", hex::encode_upper(&request.digest));
        card.with(Device::Software, "Transaction id", hex::encode(&request.digest))
    });
    cards.collect()
}

/// Adds what Ledger's app shows of a call that it does not know.
fn call(card: HashCard, call: &TriggerSmartContract) -> HashCard {
    let contract = <[u8; 21]>::try_from(call.contract_address.as_slice()).ok().and_then(Address::from_prefixed);
    let selector = call.data.get(..4).filter(|selector| !KNOWN.iter().any(|known| known == selector));
    let (Some(contract), Some(selector)) = (contract, selector) else { return card };
    card.with(Device::LedgerTron, "Contract", contract.to_string()).with(Device::LedgerTron, "Selector", hex::encode(selector))
}

pub(super) fn of_deposit(deposit: &Deposit) -> Vec<(&'static str, String)> {
    deposit.typed_data.iter().flat_map(|message| typed_data::named(&message.hashes())).collect()
}
