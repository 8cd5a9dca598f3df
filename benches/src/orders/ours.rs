//! The two paths of this project: the typed facade and the batch contract.

use std::hint::black_box;
use std::time::{Duration, Instant};

use countersign::{CreateOrder, Family, Policy, Proposal, Registry, UnsignedOrder, for_each_family, json};
use countersign_json::{JsonArtefacts, JsonFamily};

use countersign_json::line::{Case, Outcome};
use serde_json::Value;

use super::{Artefacts, Contender, leaves};
use crate::{REGISTRY, member};

fn registry() -> Registry {
    Registry::from_json(REGISTRY.as_bytes()).expect("fixture")
}

/// From a batch line to a result line. The registry is loaded, and everything else is text, including the record.
pub(super) struct Batch {
    lines: Vec<String>,
    registry: Registry,
    policy: Policy,
}

impl Batch {
    pub(super) fn new(lines: &[String]) -> Self {
        Self { lines: lines.to_vec(), registry: registry(), policy: Policy::default() }
    }

    fn write(&self, line: &str, output: &mut Vec<u8>) {
        let outcome = Outcome::from_line(black_box(line.as_bytes()), &self.registry, &self.policy);
        serde_json::to_writer(output, &outcome).expect("memory");
    }
}

impl Contender for Batch {
    fn artefacts(&self) -> Vec<Artefacts> {
        let written = self.lines.iter().map(|line| {
            let mut output = Vec::new();
            self.write(line, &mut output);
            let output: Value = serde_json::from_slice(&output).expect("JSON");
            assert_eq!(output["ok"], true, "{output}");
            leaves(&output["artefacts"])
        });
        written.collect()
    }

    fn pass(&self) -> Duration {
        let mut output = Vec::new();
        let started = Instant::now();
        for line in &self.lines {
            output.clear();
            self.write(line, &mut output);
            black_box(&output);
        }
        started.elapsed()
    }

    fn signatures(&self) -> Option<usize> {
        let requests = self.lines.iter().map(|line| {
            let value = json::parse(line.as_bytes()).expect("JSON");
            let prepared = Case::from_value(&value).and_then(|case| case.prepare(&self.registry, &self.policy));
            prepared.expect("an accepted case").requests().len()
        });
        Some(requests.sum())
    }
}

macro_rules! facade {
    ([$family:ident, $lines:ident] $($feature:literal $variant:ident $module:ident,)*) => {
        match $family {
            $(Family::$variant => Box::new(Facade::<countersign::$module::$variant>::new($lines)),)*
            _ => panic!("no benches of {}", $family.name()),
        }
    };
}

/// Returns the typed path of a family.
pub(super) fn facade(family: Family, lines: &[String]) -> Box<dyn Contender> {
    for_each_family! { facade! [family, lines] }
}

/// A wallet that embeds the library. The request and the wallet context are values, and the response, record and key
/// are text.
struct Facade<F> {
    orders: Vec<Order>,
    registry: Registry,
    policy: Policy,
    family: std::marker::PhantomData<F>,
}

struct Order {
    request: CreateOrder,
    response: String,
    record: Option<String>,
    wallet: String,
    key: String,
}

impl<F: JsonFamily> Facade<F> {
    fn new(lines: &[String]) -> Self {
        let orders = lines.iter().map(|line| {
            let case: Value = serde_json::from_str(line).expect("JSON");
            Order {
                request: CreateOrder::from_json(member(line, "request").as_bytes()).expect("a request"),
                response: member(line, "response"),
                record: case.get("order").map(|_| member(line, "order")),
                wallet: member(line, "wallet"),
                key: case["wallet"]["secret_key"].as_str().expect("a key").to_owned(),
            }
        });
        Self { orders: orders.collect(), registry: registry(), policy: Policy::default(), family: std::marker::PhantomData }
    }

    fn sign(&self, order: &Order, wallet: F::Context) -> UnsignedOrder<F> {
        let mut proposal = Proposal::new(&order.request, black_box(order.response.as_bytes()));
        if let Some(record) = &order.record {
            proposal = proposal.with_record(record.as_bytes());
        }
        let verified = countersign::verify_family::<F>(proposal, &self.registry, &self.policy).expect("verify");
        let mut unsigned = verified.prepare(wallet).expect("prepare");
        let key: F::Key = order.key.parse().expect("a key");
        unsigned.sign(&key).expect("sign");
        unsigned
    }
}

fn read_wallet<F: JsonFamily>(order: &Order) -> F::Context {
    let value = json::parse(order.wallet.as_bytes()).expect("JSON");
    F::read_wallet(json::Cursor::root(&value, "/wallet")).expect("a wallet context")
}

impl<F: JsonFamily> Contender for Facade<F> {
    fn artefacts(&self) -> Vec<Artefacts> {
        let signed = self.orders.iter().map(|order| {
            let unsigned = self.sign(order, read_wallet::<F>(order));
            leaves(&serde_json::to_value(JsonArtefacts::<F>(unsigned.payloads())).expect("artefacts"))
        });
        signed.collect()
    }

    fn pass(&self) -> Duration {
        let wallets: Vec<_> = self.orders.iter().map(read_wallet::<F>).collect();
        let started = Instant::now();
        for (order, wallet) in self.orders.iter().zip(wallets) {
            // An order with a separate sponsor stays incomplete. Only the owner's part counts.
            let _ = black_box(self.sign(order, wallet).finish());
        }
        started.elapsed()
    }
}
