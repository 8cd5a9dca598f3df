//! The service's lies in the record of an order whose source has been paid.

use serde_json::{Value, json};

use super::records::{put, set};
use super::{Act, Conduct, Liar, Lie};
use crate::order::Order;

const PAYMENT: &str = "the whole payment";
const GIVES_UP: &str = "the payment, if the wallet believes it and stops";
const ROUTE: [&str; 2] = ["base:usdc", "litecoin:ltc"];
const TO_EVM: [&str; 2] = ["litecoin:ltc", "base:usdc"];
const SOURCE: &str = "source_swap";
const DESTINATION: &str = "destination_swap";
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

/// States a payment that is on no chain.
fn invent_payment(record: &mut Value, order: &Order) {
    if order.source.initiated.is_some() && order.destination.initiated.is_none() {
        invent(record, DESTINATION, "initiate");
        set(record, DESTINATION, "filled_amount", json!(order.destination.amount.to_string()));
        set(record, DESTINATION, "current_confirmations", json!(1));
    }
}

const fn lie(
    name: &'static str,
    about: &'static str,
    at_stake: &'static str,
    route: [&'static str; 2],
    change: fn(&mut Value, &Order),
) -> Lie {
    Lie { name, liar: Liar::Record, about, at_stake, route, act: Act::Record(change), conduct: None }
}

pub(super) const LIES: &[Lie] = &[
    lie(
        "record-invents-payment",
        "the record states that the solver has paid, and no chain has it",
        "the whole payment: a wallet that believes it shows the secret",
        ROUTE,
        invent_payment,
    )
    .while_solver(Conduct::NeverPays),
    lie(
        "record-invents-payment-evm",
        "the record states that the solver has paid, and no chain has it",
        "the whole payment: a wallet that believes it shows the secret",
        TO_EVM,
        invent_payment,
    )
    .while_solver(Conduct::NeverPays),
    lie(
        "record-changes",
        "the record names another timelock of the destination once the source is paid",
        "the payment, if the wallet goes by the newest record",
        ROUTE,
        |record, order| {
            if order.source.initiated.is_some() {
                set(record, DESTINATION, "timelock", json!(1));
            }
        },
    ),
    lie(
        "record-changes-all",
        "the solver pays half for one block, and the record says that this was agreed",
        "the payment, if the wallet goes by the newest record",
        ROUTE,
        |record, order| {
            if order.source.initiated.is_some() {
                set(record, DESTINATION, "amount", json!((order.destination.amount / 2).to_string()));
            }
        },
    )
    .while_solver(Conduct::PaysLess),
    lie("record-changes-key", "the record names another redeemer once the source is paid", PAYMENT, ROUTE, |record, order| {
        if order.source.initiated.is_some() {
            set(record, DESTINATION, "delegate", json!("c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"));
        }
    })
    .while_solver(Conduct::OtherKey),
    lie("record-changes-hash", "the record names another hash once the source is paid", PAYMENT, TO_EVM, |record, order| {
        if order.source.initiated.is_some() {
            set(record, DESTINATION, "secret_hash", json!("5a".repeat(32)));
        }
    })
    .while_solver(Conduct::OtherHash),
    lie("record-changes-id", "the record names another swap id once the source is paid", PAYMENT, TO_EVM, |record, order| {
        if order.source.initiated.is_some() {
            set(record, DESTINATION, "swap_id", json!("5a".repeat(32)));
        }
    }),
    lie(
        "record-adds-fees",
        "the record has affiliate fees that nobody has agreed to, once the source is paid",
        "the fees",
        ROUTE,
        |record, order| {
            if order.source.initiated.is_some() {
                put(
                    record,
                    "affiliate_fees",
                    json!([{ "address": "0x00000000000000000000000000000000000000ef", "asset": "base:usdc", "fee": 5_000 }]),
                );
            }
        },
    ),
    lie("record-becomes-another", "the record becomes that of another order once the source is paid", PAYMENT, ROUTE, |record, order| {
        if order.source.initiated.is_some() {
            put(record, "order_id", json!("5a".repeat(32)));
        }
    }),
    lie("record-says-complete", "the record states a redemption that nobody has made", GIVES_UP, ROUTE, |record, order| {
        if order.source.initiated.is_some() {
            invent_payment(record, order);
            invent(record, DESTINATION, "redeem");
            invent(record, SOURCE, "redeem");
        }
    })
    .while_solver(Conduct::NeverPays),
    lie("record-says-refunded", "the record states a refund that nobody has made", GIVES_UP, ROUTE, |record, order| {
        if order.source.initiated.is_some() {
            invent(record, SOURCE, "refund");
        }
    })
    .while_solver(Conduct::NeverPays),
    lie(
        "record-says-refunded-while-locked",
        "the record states refunds that nobody has made, while the destination is locked",
        "the payment, if the wallet believes it and the secret is out",
        TO_EVM,
        |record, order| {
            if order.source.initiated.is_some() {
                invent(record, SOURCE, "refund");
                invent(record, DESTINATION, "refund");
            }
        },
    ),
    lie(
        "record-says-source-redeemed",
        "the record states that the source is redeemed, as if the secret were public",
        "the whole payment: a wallet that believes it shows the secret",
        ROUTE,
        |record, order| {
            if order.source.initiated.is_some() {
                invent_payment(record, order);
                invent(record, SOURCE, "redeem");
            }
        },
    )
    .while_solver(Conduct::NeverPays),
    lie("record-says-lost", "the record states that everything is lost", GIVES_UP, ROUTE, |record, order| {
        if order.source.initiated.is_some() {
            invent(record, SOURCE, "redeem");
            invent_payment(record, order);
            invent(record, DESTINATION, "refund");
        }
    }),
    lie(
        "record-denies-payment",
        "the record never shows that the source is paid",
        "the payment, if the wallet pays again",
        ROUTE,
        |record, _| {
            set(record, SOURCE, "initiate_tx_hash", json!(""));
            set(record, SOURCE, "initiate_block_number", json!("0"));
            set(record, SOURCE, "filled_amount", json!("0"));
            set(record, SOURCE, "initiate_timestamp", Value::Null);
        },
    ),
    lie("record-hides-lock", "the record never shows that the solver has paid", GIVES_UP, TO_EVM, |record, _| {
        set(record, DESTINATION, "initiate_tx_hash", json!(""));
        set(record, DESTINATION, "initiate_block_number", json!("0"));
        set(record, DESTINATION, "filled_amount", json!("0"));
        set(record, DESTINATION, "initiate_timestamp", Value::Null);
    }),
    lie(
        "record-names-dust",
        "the record names another payment of the destination than the one that was made",
        PAYMENT,
        ROUTE,
        |record, order| {
            if order.destination.initiated.is_some() {
                set(record, DESTINATION, "initiate_tx_hash", json!(INVENTED));
            }
        },
    ),
    lie("record-time-later-malformed", "the times of the payments cannot be read", "time for the refund", ROUTE, |record, order| {
        if order.source.initiated.is_some() {
            set(record, SOURCE, "initiate_timestamp", json!("2026-11-45T25:61:00Z"));
        }
    }),
    lie(
        "record-malformed-transaction",
        "the transactions of the payments are no transactions",
        "the wallet's process",
        ROUTE,
        |record, order| {
            if order.source.initiated.is_some() {
                set(record, SOURCE, "initiate_tx_hash", json!("x"));
            }
            if order.destination.initiated.is_some() {
                set(record, DESTINATION, "initiate_tx_hash", json!("x\u{202e}\u{1b}[2J"));
            }
        },
    ),
];
