//! What wallets in Rust do today: parse the response, then build and sign with the usual SDK, without checks.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Artefacts, Contender};
use crate::member;

/// What a wallet has in memory, and the text that it receives.
pub(crate) struct Order {
    pub(crate) request: Value,
    pub(crate) wallet: Value,
    response: String,
}

/// Signatures and transactions of one order, each with its pointer.
pub(crate) type Signed = Vec<(String, String)>;
pub(crate) type Sign = fn(&Order) -> Signed;

pub(super) struct Peer {
    orders: Vec<Order>,
    sign: Sign,
}

impl Peer {
    pub(super) fn new(lines: &[String], sign: Sign) -> Self {
        let orders = lines.iter().map(|line| {
            let mut case: Value = serde_json::from_str(line).expect("JSON");
            Order { request: case["request"].take(), wallet: case["wallet"].take(), response: member(line, "response") }
        });
        Self { orders: orders.collect(), sign }
    }
}

impl Contender for Peer {
    fn artefacts(&self) -> Vec<Artefacts> {
        self.orders.iter().map(|order| (self.sign)(order).into_iter().collect()).collect()
    }

    fn pass(&self) -> Duration {
        let started = Instant::now();
        for order in &self.orders {
            black_box((self.sign)(black_box(order)));
        }
        started.elapsed()
    }
}

impl Order {
    pub(crate) fn result(&self) -> Value {
        let mut body: Value = serde_json::from_str(&self.response).expect("JSON");
        body["result"].take()
    }

    pub(crate) fn key(&self) -> &str {
        text(&self.wallet["secret_key"])
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// Returns a number in any of its formats as text.
pub(crate) fn number(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(crate) fn bytes(digits: &str) -> Vec<u8> {
    hex::decode(digits.trim_start_matches("0x")).expect("hex")
}
