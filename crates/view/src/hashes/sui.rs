//! Sui.

use countersign::sui::{Deposit, UnsignedOrder};

use super::{Device, HashCard, sha256};

pub(super) fn cards(order: &UnsignedOrder) -> Vec<HashCard> {
    let requests = order.requests();
    let cards = requests
        .iter()
        .map(|request| HashCard::new(request).with(Device::LedgerSui, "Transaction hash", format!("0x{}", hex::encode(&request.digest))));
    cards.collect()
}

pub(super) fn of_deposit(deposit: &Deposit) -> Vec<(&'static str, String)> {
    vec![("transaction_kind_sha256", sha256(deposit.kind_bytes()))]
}
