//! What wallets in Rust do today: parse the response, then build and sign with the usual SDK, without checks.

mod bitcoin;
mod evm;
mod solana;
mod starknet;
mod sui;

use std::hint::black_box;
use std::time::{Duration, Instant};

use countersign::Family;
use serde_json::Value;

use super::{Artefacts, Contender};
use crate::member;

/// What a wallet has in memory, and the text that it receives.
pub(super) struct Order {
    request: Value,
    wallet: Value,
    response: String,
}

/// Signatures and transactions of one order, each with its pointer.
type Signed = Vec<(String, String)>;
type Sign = fn(&Order) -> Signed;

/// Returns the peer of a family. Tron has none, because every crate is a client of a node and cannot build
/// transactions itself.
pub(super) fn of(family: Family) -> Option<Sign> {
    match family {
        Family::Evm => Some(evm::sign),
        Family::Starknet => Some(starknet::sign),
        Family::Solana => Some(solana::sign),
        Family::Sui => Some(sui::sign),
        Family::Bitcoin => Some(bitcoin::sign),
        _ => None,
    }
}

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
    fn result(&self) -> Value {
        let mut body: Value = serde_json::from_str(&self.response).expect("JSON");
        body["result"].take()
    }

    fn key(&self) -> &str {
        text(&self.wallet["secret_key"])
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// Returns a number in any of its formats as text.
fn number(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn bytes(digits: &str) -> Vec<u8> {
    hex::decode(digits.trim_start_matches("0x")).expect("hex")
}
