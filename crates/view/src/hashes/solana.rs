//! Solana.

use countersign::solana::{Deposit, UnsignedOrder};
use sha2::{Digest as _, Sha256};

use super::{Device, HashCard, sha256};

pub(super) fn cards(order: &UnsignedOrder) -> Vec<HashCard> {
    let requests = order.requests();
    let cards = requests.iter().map(|request| {
        let hash = bs58::encode(Sha256::digest(&request.message)).into_string();
        HashCard::new(request).with(Device::LedgerSolana, "Message Hash", hash)
    });
    cards.collect()
}

pub(super) fn of_deposit(deposit: &Deposit) -> Vec<(&'static str, String)> {
    let mut hashes = vec![("transaction_message_sha256", sha256(&deposit.transaction.decoded.message))];
    hashes.extend(deposit.gasless.iter().map(|gasless| ("gasless_message_sha256", sha256(&gasless.decoded.message))));
    hashes
}
