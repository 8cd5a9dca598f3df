//! The constants of a search, and a numbering of what was stored or observed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_client::countersign::{self, Policy, Proposal, Registry, evidence::VerifiedTerms};
use countersign_client::driver::{Delivery, Entry, Event, OrderObservation, OrderState, Outcome, Subject, fold};
use countersign_client::{CreatedOrder, Secret};
use countersign_testkit::chain::view::Tempo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::price::{LIES, Price, price};
use crate::shown::{RecordKey, Shown, ShownKey};
use crate::state::{Copy, DEADLINE, Htlc, State};
use crate::support::{Fixture, registry_text};

pub const SECRET: &str = "8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40";

/// The fixture whose order is searched, from Base to Arbitrum.
const ORDER: &str = "evm-record-evm-v2";

/// The setup of a search, as the program prints it: the place of the lying endpoint, and other conditions.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    pub liar: usize,
    pub is_gasless: bool,
    pub has_relayer: bool,
    pub is_fast: bool,
    pub stands: bool,
    pub is_blind: bool,
    pub has_other: bool,
}

impl Config {
    /// Returns the timelocks of both sides, in blocks.
    const fn blocks(self) -> [u64; 2] {
        if self.is_fast { [86_400, 6_000] } else { [43_200, 600] }
    }

    /// Returns the milliseconds between blocks. A timelock takes the same time in every setup.
    pub const fn millis(self) -> [u64; 2] {
        if self.is_fast { [1_000, 1_200] } else { [2_000, 12_000] }
    }
}

/// What is stored about an order, apart from the constants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    pub has_record: bool,
    pub journal: Vec<Entry>,
}

impl Kept {
    /// Returns whether an entry states that the secret was about to be sent.
    pub fn may_be_out(&self) -> bool {
        self.journal.iter().any(|one| matches!(one.event, Event::Sending { what: Delivery::Redemption | Delivery::Secret, .. }))
    }
}

/// Numbers values by their text, which keeps the states of the world small.
#[derive(Debug, Default)]
struct Shelf<T> {
    numbers: HashMap<String, u32>,
    values: Vec<Arc<T>>,
}

impl<T> Shelf<T> {
    fn number(&mut self, text: String, value: T) -> u32 {
        let next = u32::try_from(self.values.len()).unwrap();
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.values.push(Arc::new(value));
        }
        number
    }
}

/// The constants: the order, and how it is searched.
pub struct Setup {
    pub config: Config,
    pub registry: Arc<Registry>,
    pub fixture: Fixture,
    /// The record of an order that pays someone else.
    pub elsewhere: Value,
    /// The record of another order of the same owner.
    pub another: Value,
    pub swap: CreatedOrder,
    pub terms: VerifiedTerms,
    record: Vec<u8>,
    pub secret: Secret,
    /// The time at which the world starts.
    pub epoch: u64,
    /// The block times of the two chains.
    pub tempos: [Tempo; 2],
    /// The prices of the owner's transactions, by what the lying endpoint shows.
    pub prices: Vec<Price>,
    kept: Mutex<Shelf<Kept>>,
    observations: Mutex<Shelf<Option<OrderObservation>>>,
    subjects: Mutex<Shelf<()>>,
    /// What endpoints show of the chains, and what the service states.
    pub shown: Mutex<HashMap<ShownKey, Arc<Shown>>>,
    pub records: Mutex<HashMap<RecordKey, Arc<str>>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an order with other timelocks, in blocks.
fn with_timelocks(mut fixture: Fixture, [source, destination]: [u64; 2]) -> Fixture {
    let before = fixture.order["source_swap"]["timelock"].as_u64().unwrap();
    // The timelock occurs as a word of calldata and as a member of typed data.
    let text = fixture.response.to_string().replace(&format!("{before:064x}"), &format!("{source:064x}"));
    fixture.response = serde_json::from_str(&text.replace(&format!("\"{before:#x}\""), &format!("\"{source:#x}\""))).unwrap();
    fixture.order["source_swap"]["timelock"] = json!(source);
    fixture.order["destination_swap"]["timelock"] = json!(destination);
    fixture
}

/// Returns the body of a response.
pub fn body(result: &Value) -> String {
    json!({"status": "Ok", "result": result}).to_string()
}

impl Setup {
    pub fn new(config: Config) -> Self {
        let secret = Secret::parse(SECRET).unwrap();
        let mut fixture = with_timelocks(Fixture::load(ORDER), config.blocks()).with_own_secret(&secret);
        let epoch = fixture.created() + 10;
        fixture.order["deadline"] = json!(epoch + DEADLINE);
        let mut elsewhere = Fixture { order: fixture.order.clone(), ..Fixture::load(ORDER) };
        elsewhere.order["destination_swap"]["redeemer"] = json!("0x75196C3fEa443e4f086cF9f30D51CF375704f166");
        let elsewhere = elsewhere.with_swap_ids().order;
        let mut another = Fixture::load(ORDER).order;
        another["order_id"] = json!("b2".repeat(32));
        let registry = Registry::from_json(registry_text().as_bytes()).unwrap();
        let request = fixture.create();
        let (response, record) = (fixture.response.to_string(), body(&fixture.order));
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        let terms = countersign::verify_record(proposal, &registry, &Policy::default()).unwrap().terms;
        let swap = CreatedOrder::new(request, response.into_bytes()).unwrap();
        let prices = (0..LIES).map(|lie| price(lie, config.liar, config.has_other.into())).collect();
        let setup = Self {
            config,
            registry: Arc::new(registry),
            fixture,
            elsewhere,
            another,
            swap,
            terms,
            record: record.into_bytes(),
            secret,
            epoch,
            tempos: config.millis().map(|millis| Tempo::new(epoch, millis, None, None, 1)),
            prices,
            kept: Mutex::default(),
            observations: Mutex::default(),
            subjects: Mutex::default(),
            shown: Mutex::default(),
            records: Mutex::default(),
        };
        setup.number(Kept::default());
        setup
    }

    pub fn kept(&self, number: u32) -> Arc<Kept> {
        Arc::clone(&lock(&self.kept).values[number as usize])
    }

    /// Numbers what is stored, without the parts that affect no decision. These are error texts, entries that newer
    /// ones repeat, and how often something was sent. The last has no effect because all waits between two attempts
    /// of the model are over.
    pub fn number(&self, mut kept: Kept) -> u32 {
        kept.journal = fold(&kept.journal);
        for entry in &mut kept.journal {
            match &mut entry.event {
                Event::NotSent { error, .. } => error.clear(),
                Event::Sending { times, .. } => *times = 1,
                _ => {}
            }
        }
        let mut text = kept.has_record.to_string();
        for Entry { at, event } in &kept.journal {
            write!(text, "{}{event:?}", at.as_secs()).unwrap();
        }
        lock(&self.kept).number(text, kept)
    }

    /// Adds entries to what is stored.
    pub fn noted(&self, number: u32, entries: impl IntoIterator<Item = Entry>) -> u32 {
        let mut kept = (*self.kept(number)).clone();
        kept.journal.extend(entries);
        self.number(kept)
    }

    pub fn observation(&self, number: u32) -> Arc<Option<OrderObservation>> {
        Arc::clone(&lock(&self.observations).values[number as usize])
    }

    pub fn number_observation(&self, observed: OrderObservation) -> u32 {
        let text = format!("{observed:?}");
        lock(&self.observations).number(text, Some(observed))
    }

    /// Numbers the part of what is stored that an observation depends on.
    pub fn subject(&self, kept: u32) -> u32 {
        let order = self.order(&self.kept(kept));
        let Subject { record, is_paid, has_left, is_out, signed_at, sent_at, payments, .. } = Subject::of(&order);
        let text = format!("{:?}", (record.is_some(), is_paid, has_left, is_out, signed_at, sent_at, payments));
        lock(&self.subjects).number(text, ())
    }

    /// Returns the entries that a step has written, as text.
    pub fn written(&self, before: u32, after: u32) -> String {
        let (before, after) = (self.kept(before), self.kept(after));
        let lines = after.journal.iter().filter(|entry| !before.journal.contains(entry)).map(|entry| {
            let value = serde_json::to_value(&entry.event).unwrap();
            let members = ["event", "purpose", "what", "path", "outcome"].map(|member| value[member].as_str().unwrap_or_default());
            members.into_iter().filter(|member| !member.is_empty()).collect::<Vec<_>>().join(" ")
        });
        let lines: Vec<_> = lines.collect();
        if lines.is_empty() { String::new() } else { format!(" [writes: {}]", lines.join(", ")) }
    }

    /// Returns how the order ended according to the journal.
    pub fn outcome(&self, number: u32) -> Option<Outcome> {
        let kept = self.kept(number);
        let is_end = |entry: &Entry| matches!(entry.event, Event::Ended { .. });
        kept.journal.iter().any(is_end).then(|| self.order(&kept).outcome()).flatten()
    }

    pub fn order(&self, kept: &Kept) -> OrderState {
        let mut order = OrderState::new(self.swap.clone(), Some(Secret::parse(SECRET).unwrap()));
        order.record = kept.has_record.then(|| self.record.clone());
        order.journal.clone_from(&kept.journal);
        order
    }
}

/// Returns whether an order ended as its journal states.
pub fn is_true(state: &State, outcome: Outcome) -> bool {
    let [source, destination] = state.htlcs;
    let may_be_paid = state.gasless || state.on_the_way & !state.dead != 0;
    match outcome {
        Outcome::Complete => matches!(destination, Htlc::Redeemed { .. }),
        Outcome::Refunded => matches!(source, Htlc::Refunded { .. }),
        // A restored copy does not know what was sent since. The order is reopened when the chain shows it.
        Outcome::Expired => state.copy == Copy::PutBack || source == Htlc::Absent && !may_be_paid,
        _ => false,
    }
}
