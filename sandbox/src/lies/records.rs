//! The service's lies in the record of a new order, before anything is signed.

use serde_json::{Value, json};

use super::{Act, Liar, Lie, Route};
use crate::order::Order;

pub(super) const PAYMENT: &str = "the whole payment";
pub(super) const ROUTE: Route = ["base:usdc", "litecoin:ltc"];
pub(super) const TO_EVM: Route = ["litecoin:ltc", "base:usdc"];
pub(super) const SOURCE: &str = "source_swap";
pub(super) const DESTINATION: &str = "destination_swap";
const STRANGER: &str = "0x00000000000000000000000000000000000000ef";
/// A point on the curve whose secret key is public.
const STRANGERS_KEY: &str = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";

pub(super) fn set(record: &mut Value, leg: &str, name: &str, value: Value) {
    if let Some(place) = record.get_mut(leg).and_then(|leg| leg.get_mut(name)) {
        *place = value;
    }
}

pub(super) fn put(record: &mut Value, name: &str, value: Value) {
    if let Some(place) = record.get_mut(name) {
        *place = value;
    }
}

/// States another time of creation, in milliseconds since 1970.
fn created(record: &mut Value, millis: u64) {
    let made = crate::order::iso(millis);
    put(record, "created_at", json!(made));
    set(record, SOURCE, "created_at", json!(made));
    set(record, DESTINATION, "created_at", json!(made));
}

pub(super) const fn lie(
    name: &'static str,
    about: &'static str,
    at_stake: &'static str,
    route: Route,
    change: fn(&mut Value, &Order),
) -> Lie {
    Lie { name, liar: Liar::Record, about, at_stake, route, act: Act::Record(change), conduct: None }
}

#[rustfmt::skip]
pub(super) const LIES: &[Lie] = &[
    lie("record-pays-less", "the record's destination is half of what was requested", "half of the swap", ROUTE, |record, order| {
        set(record, DESTINATION, "amount", json!((order.destination.amount / 2).to_string()));
    }),
    lie("record-pays-elsewhere", "the record's destination pays a stranger", PAYMENT, TO_EVM, |record, _| {
        set(record, DESTINATION, "redeemer", json!(STRANGER));
    }),
    lie("record-redeem-key", "the record's destination can be redeemed with a stranger's key", PAYMENT, ROUTE, |record, _| {
        set(record, DESTINATION, "delegate", json!(STRANGERS_KEY));
    }),
    lie("record-solvers-key", "the solver can redeem the destination itself", PAYMENT, ROUTE, |record, order| {
        set(record, DESTINATION, "delegate", json!(order.destination.initiator));
    }),
    lie("record-refund-key", "the record's source goes back to a stranger's key", "the refund", TO_EVM, |record, _| {
        set(record, SOURCE, "delegate", json!(STRANGERS_KEY));
    }),
    lie("record-asset", "the record's destination is another asset", "the difference in worth", TO_EVM, |record, _| {
        set(record, DESTINATION, "asset", json!("base:cbbtc"));
    }),
    lie("record-hash", "the record's destination has the hash of another secret", PAYMENT, ROUTE, |record, _| {
        set(record, DESTINATION, "secret_hash", json!("5a".repeat(32)));
    }),
    lie("record-source-hash", "the record's source has the hash of another secret", PAYMENT, ROUTE, |record, _| {
        set(record, SOURCE, "secret_hash", json!("5a".repeat(32)));
    }),
    lie("record-short-timelock", "the record's destination is locked for one block", PAYMENT, ROUTE, |record, _| {
        set(record, DESTINATION, "timelock", json!(1));
    }),
    lie("record-long-timelock", "the record's destination outlasts the source", PAYMENT, ROUTE, |record, _| {
        set(record, DESTINATION, "timelock", json!(60_000));
    }),
    lie("record-source-timelock", "the record's source is locked for another time than the call", "the refund", ROUTE, |record, order| {
        set(record, SOURCE, "timelock", json!(order.source.timelock.saturating_add(1)));
    }),
    lie("record-swap-id", "the record's source has the id of another swap", "the refund", ROUTE, |record, _| {
        set(record, SOURCE, "swap_id", json!("5a".repeat(32)));
    }),
    lie("record-destination-id", "the record's destination has the id of another swap", PAYMENT, TO_EVM, |record, _| {
        set(record, DESTINATION, "swap_id", json!("5a".repeat(32)));
    }),
    lie("record-solver", "another solver pays than the one that is pinned", PAYMENT, TO_EVM, |record, _| {
        set(record, DESTINATION, "initiator", json!(STRANGER));
    }),
    lie("record-solver-id", "the record names another solver than the pinned one", PAYMENT, ROUTE, |record, _| {
        put(record, "solver_id", json!(STRANGER));
    }),
    lie("record-of-another", "the record is that of another order", PAYMENT, ROUTE, |record, _| {
        put(record, "order_id", json!("5a".repeat(32)));
    }),
    lie("record-secret-known", "the record has a secret before anybody has shown one", PAYMENT, ROUTE, |record, _| {
        set(record, SOURCE, "secret", json!("5a".repeat(32)));
    }),
    lie("record-redeemed", "the record's source is redeemed before it is paid", PAYMENT, ROUTE, |record, _| {
        set(record, SOURCE, "redeem_tx_hash", json!(format!("0x{}", "aa".repeat(32))));
        set(record, SOURCE, "redeem_block_number", json!("1"));
    }),
    lie("record-funded", "the record's source is paid before the user has paid it", "the payment, a second time", ROUTE, |record, order| {
        if order.source.initiated.is_none() {
            set(record, SOURCE, "initiate_tx_hash", json!(format!("0x{}", "aa".repeat(32))));
            set(record, SOURCE, "initiate_block_number", json!("1"));
        }
    }),
    lie("record-expired", "the order is three days past its deadline", "the payment of an order that nobody serves", ROUTE, |record, order| {
        created(record, order.created_at.saturating_sub(3 * 86_400_000));
        put(record, "deadline", json!((order.deadline() / 1_000).saturating_sub(3 * 86_400)));
    }),
    lie("record-from-the-future", "the order was made tomorrow", "time for the refund", ROUTE, |record, order| {
        created(record, order.created_at.saturating_add(86_400_000));
    }),
    lie("record-malformed-time", "the order was made on the 45th", "time for the refund", ROUTE, |record, _| {
        put(record, "created_at", json!("2026-11-45T25:61:00Z"));
    }),
];
