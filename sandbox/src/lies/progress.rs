//! The service's lies in the record of an order whose source has been paid.

use serde_json::{Value, json};

use super::records::{DESTINATION, PAYMENT, ROUTE, SOURCE, TO_EVM, lie, put, set};
use super::{Act, Conduct, Lie, Route};
use crate::order::Order;

const GIVES_UP: &str = "the payment, if the wallet believes it and stops";
/// A transaction id that is on no chain, as records spell it on Bitcoin-like chains.
const INVENTED: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// States an event that is on no chain.
fn invent(record: &mut Value, leg: &str, what: &str) {
    let is_evm = record.get(leg).and_then(|leg| leg.get("chain")).and_then(Value::as_str) == Some("base");
    let transaction = if is_evm { format!("0x{INVENTED}") } else { INVENTED.to_owned() };
    set(record, leg, &format!("{what}_tx_hash"), json!(transaction));
    set(record, leg, &format!("{what}_block_number"), json!("1"));
    let time = record.get("created_at").cloned().unwrap_or_default();
    set(record, leg, &format!("{what}_timestamp"), time);
}

/// States a payment of the solver that is on no chain.
fn invent_payment(record: &mut Value, order: &Order) {
    if order.destination.initiated.is_none() {
        invent(record, DESTINATION, "initiate");
        set(record, DESTINATION, "filled_amount", json!(order.destination.amount.to_string()));
        set(record, DESTINATION, "current_confirmations", json!(1));
    }
}

/// States that a leg is not paid.
fn hide_payment(record: &mut Value, leg: &str) {
    set(record, leg, "initiate_tx_hash", json!(""));
    set(record, leg, "initiate_block_number", json!("0"));
    set(record, leg, "filled_amount", json!("0"));
    set(record, leg, "initiate_timestamp", Value::Null);
}

/// Returns a lie that is told once the source is paid.
const fn paid(name: &'static str, about: &'static str, at_stake: &'static str, route: Route, change: fn(&mut Value, &Order)) -> Lie {
    Lie { act: Act::Progress(change), ..lie(name, about, at_stake, route, change) }
}

#[rustfmt::skip]
pub(super) const LIES: &[Lie] = &[
    paid("record-invents-payment", "the record states that the solver has paid, and no chain has it", "the whole payment: a wallet that believes it shows the secret", ROUTE, invent_payment).while_solver(Conduct::NeverPays),
    paid("record-changes", "the record names another timelock of the destination once the source is paid", "the payment, if the wallet goes by the newest record", ROUTE, |record, _| {
        set(record, DESTINATION, "timelock", json!(1));
    }),
    paid("record-changes-all", "the solver pays half for one block, and the record says that this was agreed", "the payment, if the wallet goes by the newest record", ROUTE, |record, order| {
        set(record, DESTINATION, "amount", json!((order.destination.amount / 2).to_string()));
    }).while_solver(Conduct::PaysLess),
    paid("record-changes-key", "the record names another redeemer once the source is paid", PAYMENT, ROUTE, |record, _| {
        set(record, DESTINATION, "delegate", json!("c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"));
    }).while_solver(Conduct::OtherKey),
    paid("record-changes-hash", "the record names another hash once the source is paid", PAYMENT, TO_EVM, |record, _| {
        set(record, DESTINATION, "secret_hash", json!("5a".repeat(32)));
    }).while_solver(Conduct::OtherHash),
    paid("record-changes-id", "the record names another swap id once the source is paid", PAYMENT, TO_EVM, |record, _| {
        set(record, DESTINATION, "swap_id", json!("5a".repeat(32)));
    }),
    paid("record-adds-fees", "the record has affiliate fees that nobody has agreed to, once the source is paid", "the fees", ROUTE, |record, _| {
        put(record, "affiliate_fees", json!([{ "address": "0x00000000000000000000000000000000000000ef", "asset": "base:usdc", "fee": 5_000 }]));
    }),
    paid("record-becomes-another", "the record becomes that of another order once the source is paid", PAYMENT, ROUTE, |record, _| {
        put(record, "order_id", json!("5a".repeat(32)));
    }),
    paid("record-says-complete", "the record states a redemption that nobody has made", GIVES_UP, ROUTE, |record, order| {
        invent_payment(record, order);
        invent(record, DESTINATION, "redeem");
        invent(record, SOURCE, "redeem");
    }).while_solver(Conduct::NeverPays),
    paid("record-says-refunded", "the record states a refund that nobody has made", GIVES_UP, ROUTE, |record, _| {
        invent(record, SOURCE, "refund");
    }).while_solver(Conduct::NeverPays),
    paid("record-says-refunded-while-locked", "the record states refunds that nobody has made, while the destination is locked", "the payment, if the wallet believes it and the secret is out", TO_EVM, |record, _| {
        invent(record, SOURCE, "refund");
        invent(record, DESTINATION, "refund");
    }),
    paid("record-says-source-redeemed", "the record states that the source is redeemed, as if the secret were public", "the whole payment: a wallet that believes it shows the secret", ROUTE, |record, order| {
        invent_payment(record, order);
        invent(record, SOURCE, "redeem");
    }).while_solver(Conduct::NeverPays),
    paid("record-says-lost", "the record states that everything is lost", GIVES_UP, ROUTE, |record, order| {
        invent(record, SOURCE, "redeem");
        invent_payment(record, order);
        invent(record, DESTINATION, "refund");
    }),
    lie("record-denies-payment", "the record never shows that the source is paid", "the payment, if the wallet pays again", ROUTE, |record, _| hide_payment(record, SOURCE)),
    lie("record-hides-lock", "the record never shows that the solver has paid", GIVES_UP, TO_EVM, |record, _| hide_payment(record, DESTINATION)),
    paid("record-names-dust", "the record names another payment of the destination than the one that was made", PAYMENT, ROUTE, |record, order| {
        if order.destination.initiated.is_some() {
            set(record, DESTINATION, "initiate_tx_hash", json!(INVENTED));
        }
    }),
    paid("record-time-later-malformed", "the times of the payments cannot be read", "time for the refund", ROUTE, |record, _| {
        set(record, SOURCE, "initiate_timestamp", json!("2026-11-45T25:61:00Z"));
    }),
    paid("record-malformed-transaction", "the transactions of the payments are no transactions", "the wallet's process", ROUTE, |record, order| {
        set(record, SOURCE, "initiate_tx_hash", json!("x"));
        if order.destination.initiated.is_some() {
            set(record, DESTINATION, "initiate_tx_hash", json!("x\u{202e}\u{1b}[2J"));
        }
    }),
];
