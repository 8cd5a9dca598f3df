//! Bitcoin-like chains.

use countersign::bitcoin::address::Chain;
use countersign::bitcoin::bitcoin::{Amount, Denomination};
use countersign::bitcoin::{Deposit, UnsignedOrder};
use countersign::chains::profile::known_chain;
use countersign::chains::{BitcoinNet, Coin, Network};

use super::{Device, HashCard};

/// Returns the card of the whole transaction: its outputs and its fee. Devices show no hash of it.
pub(super) fn cards(order: &UnsignedOrder) -> Vec<HashCard> {
    card(order).into_iter().collect()
}

fn card(order: &UnsignedOrder) -> Option<HashCard> {
    let request = order.requests().into_iter().next()?;
    let by_name = || Chain::from_network(&Network::parse(known_chain(order.chain())?.id).ok()?);
    let chain = order.verified().map(|order| order.deposit().chain).or_else(by_name)?;
    let device = match chain.coin {
        Coin::Bitcoin => Device::LedgerBitcoin,
        _ => Device::Software,
    };
    let symbol = if device == Device::LedgerBitcoin && chain.net != BitcoinNet::Main { "TEST" } else { chain.symbol() };
    let amount = |amount: Amount| {
        let text = amount.to_string_in(Denomination::Bitcoin);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text} {symbol}")
    };
    let psbt = &request.payload.psbt;
    let mut card = HashCard::new(&request);
    for output in &psbt.unsigned_tx.output {
        card = card.with(device, "Amount", amount(output.value)).with(device, "To", chain.format_script(&output.script_pubkey));
    }
    Some(card.with(device, "Fees", amount(psbt.fee().ok()?)))
}

pub(super) fn of_deposit(deposit: &Deposit) -> Vec<(&'static str, String)> {
    vec![("deposit_script_pubkey", hex::encode(deposit.script_pubkey.as_bytes()))]
}
