//! The whole order path, from the response's text to the signatures, by this project and by the SDKs that wallets use
//! today.
//!
//! Every contender does the same for each order. The request and the wallet's own values are in memory, and the
//! response and the keys are text. The peers verify nothing.

mod ours;
pub(crate) mod peer;
pub(crate) mod signature;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use countersign::Family;
use serde_json::Value;

use crate::families;

/// Signatures and transactions as text, by their JSON pointer in the artefacts (`docs/spec/batch.md#artefacts`).
pub type Artefacts = BTreeMap<String, String>;

/// A way to get from a response to signatures.
pub trait Contender {
    /// Signs every order and returns the artefacts, in the order of the cases.
    fn artefacts(&self) -> Vec<Artefacts>;

    /// Signs every order once and returns how long that took.
    fn pass(&self) -> Duration;

    /// Returns the number of signatures for all orders, if the contender counts them.
    fn signatures(&self) -> Option<usize> {
        None
    }
}

/// Returns a contender by its name: `batch`, `facade`, `peer` or `signature`. Returns `None` if a family has no such
/// peer.
///
/// # Panics
///
/// Panics if a line is not a case of the family, or if the name is unknown.
pub fn contender(name: &str, family: Family, lines: &[String]) -> Option<Box<dyn Contender>> {
    match name {
        "batch" => Some(Box::new(ours::Batch::new(lines))),
        "facade" => Some(ours::facade(family, lines)),
        "peer" => families::of(family).rust.map(|(_, sign)| Box::new(peer::Peer::new(lines, sign)) as Box<dyn Contender>),
        "signature" => Some(Box::new(signature::Signature::new(family))),
        _ => panic!("no contender {name}"),
    }
}

/// Returns the median time of an order, in nanoseconds, over as many passes as `duration` allows.
pub fn median_nanos(contender: &dyn Contender, orders: usize, duration: Duration) -> f64 {
    passes(contender, duration / 4);
    let mut times = passes(contender, duration);
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e9 / orders as f64
}

fn passes(contender: &dyn Contender, duration: Duration) -> Vec<Duration> {
    let started = Instant::now();
    let mut times = vec![contender.pass()];
    while started.elapsed() < duration {
        times.push(contender.pass());
    }
    times
}

/// Returns every text of a JSON value by its pointer.
pub fn leaves(value: &Value) -> Artefacts {
    fn collect(value: &Value, at: &str, leaves: &mut Artefacts) {
        match value {
            Value::String(text) => drop(leaves.insert(at.to_owned(), text.clone())),
            Value::Object(members) => members.iter().for_each(|(key, value)| collect(value, &format!("{at}/{key}"), leaves)),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| collect(value, &format!("{at}/{index}"), leaves)),
            _ => {}
        }
    }
    let mut found = Artefacts::new();
    collect(value, "", &mut found);
    found
}
