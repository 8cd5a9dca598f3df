//! What the service states in the record of an order.

use serde_json::{Value, json};

use super::{Act, Liar, Lie};
use crate::order::Order;

const ROUTE: [&str; 2] = ["base:usdc", "litecoin:ltc"];

fn set(record: &mut Value, leg: &str, name: &str, value: Value) {
    if let Some(place) = record.get_mut(leg).and_then(|leg| leg.get_mut(name)) {
        *place = value;
    }
}

/// States a payment that is on no chain.
fn invent_payment(record: &mut Value, order: &Order) {
    if order.source.initiated.is_some() && order.destination.initiated.is_none() {
        set(record, "destination_swap", "initiate_tx_hash", json!("aa".repeat(32)));
        set(record, "destination_swap", "initiate_block_number", json!("1"));
        set(record, "destination_swap", "filled_amount", json!(order.destination.amount.to_string()));
        set(record, "destination_swap", "current_confirmations", json!(1));
    }
}

fn change_after_payment(record: &mut Value, order: &Order) {
    if order.source.initiated.is_some() {
        set(record, "destination_swap", "timelock", json!(1));
    }
}

pub(super) const LIES: &[Lie] = &[
    Lie {
        name: "record-invents-payment",
        liar: Liar::Record,
        about: "the record states that the solver has paid, and no chain has it",
        at_stake: "the whole payment: a wallet that believes it shows the secret",
        route: ROUTE,
        act: Act::Record(invent_payment),
    },
    Lie {
        name: "record-changes",
        liar: Liar::Record,
        about: "the record names another timelock of the destination once the source is paid",
        at_stake: "the payment, if the wallet goes by the newest record",
        route: ROUTE,
        act: Act::Record(change_after_payment),
    },
];
