//! The world of the driver's tests and of the storms, in virtual time: a service, chains with their mempools, a
//! solver and an owner. Events are computed when the world is read.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::missing_panics_doc,
    dead_code,
    missing_debug_implementations,
    missing_docs,
    unnameable_types,
    unreachable_pub,
    reason = "a test ends by panicking, and uses the parts it needs"
)]

pub mod bitcoin;
pub mod endpoints;
pub mod fees;
pub mod happen;
pub mod kinds;
pub mod lies;
pub mod owner;
pub mod plan;
pub mod service;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use countersign_client::countersign::{BroadcastTransaction, Leg, Policy, Registry, evidence::HtlcTerms};
use countersign_client::driver::{MemoryStore, OrderStore, Outcome};
use countersign_client::{Api, Client, Driver, Flow, OrderId, Pace, Retry, Secret};
use countersign_testkit::chain::view::{End, Htlc, Tempo};
use serde_json::{Value, json};

use crate::support::{Fixture, registry_text};
use bitcoin::Blocks;
use fees::Price;
use kinds::{Kind, Swap};
use lies::Liar;
use plan::{Clock, Counts, Dice, Plan};

/// Seconds until a transaction is in a block.
pub const BLOCK: u64 = 12;
/// How old a newest block may be, in seconds.
const HEAD: u64 = 120;

/// A transaction that the owner has signed.
#[derive(Debug, Clone)]
pub struct Signed {
    pub kept: BroadcastTransaction,
    /// A part of every request that sends it.
    pub needle: Vec<u8>,
    pub at: u64,
    pub is_replacement: bool,
    /// Whether it pays what blocks cost while fees are high.
    pub pays_much: bool,
}

/// Everything that is outside the process.
#[derive(Debug)]
pub struct State {
    pub dice: Dice,
    pub source: Htlc,
    pub destination: Htlc,
    /// The chains of the legs that are Bitcoin-like.
    pub blocks: [Option<Blocks>; 2],
    pub signed: Vec<Signed>,
    /// The place of a transaction in `signed`, and when it is mined.
    pub pending: Vec<(usize, u64)>,
    /// When the solver learned the secret.
    pub secret_known: Option<u64>,
    /// Whether the solver's payment was ever final.
    pub was_final: bool,
    /// The different fundings that arrived anywhere. With more than one, the owner may have paid twice.
    pub fundings: BTreeSet<String>,
    pub is_paid_to_owner: bool,
    pub reorganized: [bool; 2],
    pub violations: Vec<String>,
    pub counts: Counts,
    pub has_signed_redemption: bool,
    /// Whether the payment has left the process.
    pub has_left: bool,
    pub is_dust_taken: bool,
    /// Whether the service was sent the secret.
    pub has_leaked: bool,
    /// How often a redemption was sent to an endpoint.
    pub attempts: u64,
    pub outcome: Option<Outcome>,
    /// The endpoint of each leg that lies in components.
    pub liars: [Liar; 2],
    /// The fees of the owner's newest transaction on each side.
    pub offers: [Option<Price>; 2],
    /// When something last happened on a chain, or was signed or sent.
    pub changed: u64,
}

/// The life of the process that drives all orders of a world.
#[derive(Debug)]
pub struct Life {
    start: tokio::time::Instant,
    /// How many operations are left until the process is killed.
    pub fuse: Mutex<Option<u64>>,
    pub died: tokio::sync::Notify,
}

/// The service, the chains, the solvers and the owner of all orders that one process drives.
pub struct Worlds {
    all: Mutex<Vec<Arc<World>>>,
    pub life: Arc<Life>,
    pub registry: Arc<Registry>,
    /// The faults around each order that is added later.
    plan: Plan,
    seed: u64,
    /// Whether orders may have a chain in common.
    shares_chains: bool,
    /// Whether the process has endpoints of the chains.
    pub connected: bool,
    /// Whether the owner can redeem.
    pub may_redeem: AtomicBool,
    /// The number of requests that the service was sent.
    pub requests: AtomicU64,
}

pub type WorldDriver<S> = Driver<Arc<Worlds>, Arc<Worlds>, S, Arc<Worlds>>;
pub type TestDriver = WorldDriver<MemoryStore>;

impl Worlds {
    /// Creates a world with an order for each plan, which have no chain in common.
    pub fn of_plans(seed: u64, plans: Vec<Plan>) -> Arc<Self> {
        let first = plans[0].clone();
        let worlds = Self { shares_chains: false, registry: Arc::new(kinds::registry().clone()), ..Self::without_orders(seed, first) };
        for (place, plan) in (0..).zip(plans) {
            let swap = Arc::clone(Swap::of(plan.kind, plan.pays));
            worlds.add(World::new(seed.wrapping_add(place << 32), plan, swap, Arc::clone(&worlds.life)));
        }
        Arc::new(worlds)
    }

    /// Creates a world in which orders of the fixture can be made.
    pub fn new(seed: u64, plan: Plan) -> Arc<Self> {
        Arc::new(Self::without_orders(seed, plan))
    }

    /// Creates a world in which the process has no endpoints of the chains.
    pub fn unconnected(plan: Plan) -> Arc<Self> {
        Arc::new(Self { connected: false, ..Self::without_orders(0, plan) })
    }

    fn without_orders(seed: u64, plan: Plan) -> Self {
        Self {
            all: Mutex::default(),
            life: Arc::new(Life { start: tokio::time::Instant::now(), fuse: Mutex::default(), died: tokio::sync::Notify::new() }),
            registry: Arc::new(Registry::from_json(registry_text().as_bytes()).unwrap()),
            plan,
            seed,
            shares_chains: true,
            connected: true,
            may_redeem: AtomicBool::new(true),
            requests: AtomicU64::new(0),
        }
    }

    /// Adds an order whose secret the owner knows.
    pub fn order(&self, number: u64) -> (Fixture, Secret) {
        let secret = Secret::parse(&format!("{:064x}", 0xabcd_ef01_2345_u64 + number)).unwrap();
        let mut fixture = Fixture::with_secret(&secret);
        let (old, id) = (fixture.order_id().to_owned(), format!("{number:064x}"));
        let swap = |value: &Value| serde_json::from_str(&value.to_string().replace(&old, &id)).unwrap();
        (fixture.order, fixture.response) = (swap(&fixture.order), swap(&fixture.response));
        if let Some(seconds) = self.plan.deadline {
            fixture.order["deadline"] = json!((fixture.created() + 10).saturating_add_signed(seconds));
        }
        let swap = Swap::verified(self.plan.kind, self.plan.pays, fixture.clone(), &secret, &self.registry);
        self.add(World::new(self.seed.wrapping_add(number << 32), self.plan.clone(), Arc::new(swap), Arc::clone(&self.life)));
        (fixture, secret)
    }

    fn add(&self, world: World) {
        let mut all = self.all.lock().unwrap();
        all.retain(|other| other.swap.fixture.order_id() != world.swap.fixture.order_id());
        all.push(Arc::new(world));
    }

    /// Returns the driver of one process.
    pub fn driver<S: OrderStore>(self: &Arc<Self>, store: S) -> WorldDriver<S> {
        self.driver_with(store, &self.registry, Policy::default())
    }

    /// Returns the driver of a process with other pins or another policy.
    pub fn driver_with<S: OrderStore>(self: &Arc<Self>, store: S, registry: &Arc<Registry>, policy: Policy) -> WorldDriver<S> {
        let api = Api::new("https://service.example", None).unwrap();
        let client = Client::new(api, Arc::clone(self)).with_retry(Retry { attempts: 2, ..Retry::default() });
        let flow = Flow::new(client, Arc::clone(registry), policy);
        let pace = Pace { quickest: Duration::from_secs(4), slowest: Duration::from_secs(600) };
        Driver::new(flow, Arc::clone(self), store, Arc::clone(self)).with_pace(pace)
    }

    pub fn all(&self) -> Vec<Arc<World>> {
        self.all.lock().unwrap().clone()
    }

    fn find(&self, is_it: impl Fn(&World) -> bool) -> Option<Arc<World>> {
        self.all.lock().unwrap().iter().find(|world| is_it(world)).cloned()
    }

    pub fn first(&self) -> Arc<World> {
        self.find(|_| true).unwrap()
    }

    /// Returns the world of an order.
    pub fn of(&self, order_id: &str) -> Arc<World> {
        self.find(|world| world.swap.fixture.order_id() == order_id).unwrap()
    }

    /// Returns the world of the first order that has a chain.
    pub fn on(&self, chain: &str) -> Arc<World> {
        self.find(|world| world.has(chain)).unwrap()
    }

    pub fn time(&self) -> u64 {
        self.first().time()
    }

    /// Returns how an order ended: the number of different fundings, whether the owner was paid, and whether the service has the secret
    /// although the owner was not paid.
    pub fn end(&self, id: &OrderId) -> (usize, bool, bool) {
        let world = self.of(id.as_str());
        let state = world.now();
        (state.fundings.len(), state.is_paid_to_owner, state.has_leaked && !state.is_paid_to_owner)
    }

    pub fn is_refunded(&self, id: &OrderId) -> bool {
        matches!(self.of(id.as_str()).now().source.ended, Some((End::Refunded, _)))
    }

    /// Returns whether the service has been sent a secret.
    pub fn has_leaked(&self) -> bool {
        self.all().iter().any(|world| world.now().has_leaked)
    }
}

/// Everything outside the process that has to do with one order.
pub struct World {
    pub plan: Plan,
    pub swap: Arc<Swap>,
    pub epoch: u64,
    /// When the chains of the legs have their blocks.
    pub tempos: [Tempo; 2],
    pub state: Mutex<State>,
    life: Arc<Life>,
}

pub const fn place_of(leg: Leg) -> usize {
    match leg {
        Leg::Source => 0,
        _ => 1,
    }
}

impl World {
    fn new(seed: u64, plan: Plan, swap: Arc<Swap>, life: Arc<Life>) -> Self {
        let epoch = swap.fixture.created() + 10;
        let [source_turn, destination_turn] = plan.turns;
        let blocks = |kind: Kind, terms, turn, has_dust| kind.has_blocks().then(|| Blocks::new(terms, epoch, turn, has_dust));
        let blocks = [
            blocks(plan.kind, &swap.terms.source, source_turn, false),
            blocks(plan.pays, &swap.terms.destination, destination_turn, plan.has_dust),
        ];
        let tempo = |leg: Leg| {
            let (terms, place) = (swap.terms.leg(leg), place_of(leg));
            let halt = plan.halts[place].map(|(from, until)| (epoch + from, epoch + until));
            Tempo::new(epoch, terms.pace.nominal, plan.turns[place], halt, plan.grains[place])
        };
        let tempos = [tempo(Leg::Source), tempo(Leg::Destination)];
        let state = State {
            dice: Dice(seed),
            source: Htlc::default(),
            destination: Htlc::default(),
            blocks,
            signed: Vec::new(),
            pending: Vec::new(),
            secret_known: None,
            was_final: false,
            fundings: BTreeSet::new(),
            is_paid_to_owner: false,
            reorganized: [false; 2],
            violations: Vec::new(),
            counts: Counts::new(),
            has_signed_redemption: false,
            has_left: false,
            is_dust_taken: false,
            has_leaked: false,
            attempts: 0,
            outcome: None,
            offers: [None, None],
            liars: [Liar::new(seed, 0), Liar::new(seed, 1)],
            changed: epoch,
        };
        Self { plan, swap, epoch, tempos, state: Mutex::new(state), life }
    }

    /// The true time.
    pub fn time(&self) -> u64 {
        self.epoch + self.life.start.elapsed().as_secs()
    }

    pub fn has_faults(&self) -> bool {
        self.time() < self.epoch + self.plan.faults
    }

    /// The time by the owner's clock.
    pub fn clock(&self) -> u64 {
        let now = self.time();
        match self.plan.clock {
            _ if !self.has_faults() => now,
            Clock::True => now,
            Clock::Behind(seconds) => now - seconds,
            Clock::Jumps(after, by) => {
                if now < self.epoch + after {
                    now
                } else {
                    now.saturating_add_signed(by)
                }
            }
        }
    }

    /// Returns the state as of now.
    pub fn now(&self) -> MutexGuard<'_, State> {
        let now = self.time();
        let mut state = self.state.lock().unwrap();
        self.catch_up(&mut state, now);
        state
    }

    /// Draws whether a fault of the storm happens now, and counts it.
    pub fn fault(&self, kinds: &[&'static str]) -> Option<&'static str> {
        let is_storm = self.has_faults();
        let mut state = self.state.lock().unwrap();
        (is_storm && state.dice.is(self.plan.fault_rate)).then(|| {
            let kind = state.dice.pick(kinds);
            *state.counts.entry(kind).or_default() += 1;
            kind
        })
    }

    pub fn roll(&self, least: u64, most: u64) -> u64 {
        self.state.lock().unwrap().dice.between(least, most)
    }

    pub async fn wait(&self, least: u64, most: u64) {
        let millis = self.roll(least, most);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Returns the time between two readings: the longer nothing happens, the longer it is.
    pub fn pause(&self) -> Duration {
        let now = self.time();
        let quiet = now.saturating_sub(self.state.lock().unwrap().changed);
        Duration::from_millis(self.roll(500, 1_000) * (quiet / 4).clamp(4, 1_200))
    }

    /// Counts one thing that the process does outside of itself, which may be the last.
    pub async fn operation(&self) {
        let is_over = {
            match &mut *self.life.fuse.lock().unwrap() {
                Some(0) => true,
                Some(left) => {
                    *left -= 1;
                    false
                }
                None => false,
            }
        };
        if is_over {
            self.life.died.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Counts the end of a process. Returns what decides the disk that the next one finds.
    pub fn end_life(&self, how: &'static str) -> u64 {
        let mut state = self.now();
        *self.life.fuse.lock().unwrap() = None;
        *state.counts.entry(how).or_default() += 1;
        state.dice.next()
    }

    /// Returns whether any payment has arrived anywhere.
    pub fn is_paid(&self) -> bool {
        !self.state.lock().unwrap().fundings.is_empty()
    }

    /// Lets the payment be in a block, unless it already is.
    pub fn fund_at(&self, time: u64) {
        self.state.lock().unwrap().source.funded.get_or_insert(time);
    }

    pub fn are_fees_high(&self) -> bool {
        let now = self.time();
        self.has_faults() && self.plan.fees.is_some_and(|(from, until)| (self.epoch + from..self.epoch + until).contains(&now))
    }

    pub fn terms(&self, leg: Leg) -> &HtlcTerms {
        self.swap.terms.leg(leg)
    }

    pub const fn kind(&self, leg: Leg) -> Kind {
        match leg {
            Leg::Source => self.plan.kind,
            _ => self.plan.pays,
        }
    }

    /// Returns when the timelock of a side expires that was funded at a time.
    pub fn ends(&self, leg: Leg, funded: u64) -> u64 {
        let tempo = self.tempo(leg);
        tempo.arrives(tempo.includes(funded) + self.terms(leg).timelock + 1)
    }

    pub const fn tempo(&self, leg: Leg) -> &Tempo {
        &self.tempos[place_of(leg)]
    }

    /// Returns from when until when a chain has no blocks.
    pub fn halt(&self, leg: Leg) -> Option<(u64, u64)> {
        self.plan.halts[place_of(leg)].map(|(from, until)| (self.epoch + from, self.epoch + until))
    }

    /// Returns when what would be in a block at a time is in one.
    pub fn after_halt(&self, leg: Leg, at: u64) -> u64 {
        // The first block after a halt has another height than the last one before it.
        let first = |until: u64| until + BLOCK.max(30).max(self.tempo(leg).block_seconds(until));
        self.halt(leg).filter(|(from, until)| (*from..first(*until)).contains(&at)).map_or(at, |(_, until)| first(until))
    }

    /// Returns the time of the newest block of a chain without blocks of its own in this world.
    pub fn head_time(&self, leg: Leg) -> u64 {
        let now = self.time();
        self.halt(leg).filter(|(from, until)| (*from..*until).contains(&now)).map_or(now, |(from, _)| from)
    }

    /// Notes that the payment leaves the process, which must not happen for the first time while a chain has stopped.
    pub fn leave(&self, state: &mut State) {
        if std::mem::replace(&mut state.has_left, true) {
            return;
        }
        for leg in [Leg::Source, Leg::Destination] {
            let age = self.clock().saturating_sub(self.head_time(leg));
            if !self.kind(leg).has_blocks() && age > HEAD + 60 {
                state.violations.push(format!("paid while the newest block of the {leg:?} was {age} s old"));
            }
            if self.head_time(leg) != self.time() {
                *state.counts.entry("paid just after a chain stopped").or_default() += 1;
            }
        }
    }

    /// Returns when the source's timelock expires, if it is funded.
    pub fn source_ends(&self, state: &State) -> Option<u64> {
        Some(self.ends(Leg::Source, state.source.funded?))
    }

    /// Takes the secret to whoever may redeem with it. It must not leave before the payment was final, or once somebody took it back.
    pub fn learn_secret(&self, state: &mut State, how: &str) {
        let now = self.time();
        if state.secret_known.is_none() {
            if !state.was_final {
                state.violations.push(format!("the secret left before the evidence: {how}"));
            } else if matches!(state.destination.ended, Some((End::Refunded, _))) {
                state.violations.push(format!("the secret left after the solver's refund: {how}"));
            }
        }
        state.secret_known.get_or_insert(now);
    }
}
