//! The chains, the mempools and the solver, in virtual time. What happens is worked out whenever somebody looks.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use countersign_client::countersign::bitcoin::htlc::Leaf;
use countersign_client::countersign::evm::alloy_primitives::B256;
use countersign_client::countersign::{HtlcTerms, Leg};
use countersign_client::driver::KeptTransaction;

use crate::bitcoin::Blocks;
use crate::kinds::{Kind, Swap};
use crate::leg::{End, Htlc, SAFE};
use crate::plan::{Clock, Counts, Dice, Plan, Solver};

/// Seconds until a transaction is in a block.
pub const BLOCK: u64 = 12;

/// What a transaction of the owner does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Approval,
    Funding,
    Redemption,
    Refund,
}

/// A transaction that the owner has signed.
#[derive(Debug, Clone)]
pub struct Signed {
    pub kept: KeptTransaction,
    pub role: Role,
    /// A part of every request that sends it.
    pub needle: Vec<u8>,
    /// Whether it pays what blocks cost while fees are high.
    pub pays_much: bool,
}

/// Everything that is outside the process.
#[derive(Debug)]
pub struct State {
    pub dice: Dice,
    pub source: Htlc,
    pub destination: Htlc,
    pub blocks: Option<Blocks>,
    pub signed: Vec<Signed>,
    /// The place of a transaction in `signed`, and when it is mined.
    pending: Vec<(usize, u64)>,
    /// When the solver learned the secret.
    pub secret_known: Option<u64>,
    /// Whether the solver's payment was ever final.
    pub was_final: bool,
    /// The different fundings that arrived anywhere. With more than one, the owner may have paid twice.
    pub fundings: BTreeSet<String>,
    pub is_paid_to_owner: bool,
    reorganized: [bool; 2],
    pub violations: Vec<String>,
    pub counts: Counts,
    pub fuse: Option<u64>,
    pub has_signed_redemption: bool,
    /// When something last happened on a chain, or was signed or sent.
    pub changed: u64,
}

pub struct World {
    pub plan: Plan,
    pub swap: &'static Swap,
    pub epoch: u64,
    start: tokio::time::Instant,
    pub state: Mutex<State>,
    pub died: tokio::sync::Notify,
}

impl World {
    pub fn new(seed: u64, plan: Plan) -> Self {
        let swap = Swap::of(plan.kind);
        let epoch = swap.fixture.created() + 10;
        let blocks = (plan.kind == Kind::Bitcoin).then(|| Blocks::new(&swap.terms.source, epoch));
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
            fuse: None,
            has_signed_redemption: false,
            changed: epoch,
        };
        Self { plan, swap, epoch, start: tokio::time::Instant::now(), state: Mutex::new(state), died: tokio::sync::Notify::new() }
    }

    /// The true time.
    pub fn time(&self) -> u64 {
        self.epoch + self.start.elapsed().as_secs()
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
        (is_storm && state.dice.is(10)).then(|| {
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
            let mut state = self.state.lock().unwrap();
            match &mut state.fuse {
                Some(0) => true,
                Some(left) => {
                    *left -= 1;
                    false
                }
                None => false,
            }
        };
        if is_over {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Counts the end of a process. Returns what decides the disk that the next one finds.
    pub fn end_life(&self, how: &'static str) -> u64 {
        let mut state = self.now();
        state.fuse = None;
        *state.counts.entry(how).or_default() += 1;
        state.dice.next()
    }

    pub fn are_fees_high(&self) -> bool {
        let now = self.time();
        self.has_faults() && self.plan.fees.is_some_and(|(from, until)| (self.epoch + from..self.epoch + until).contains(&now))
    }

    pub const fn terms(&self, leg: Leg) -> &HtlcTerms {
        self.swap.terms.leg(leg)
    }

    /// Returns how many seconds a leg's timelock takes.
    fn timelock(&self, leg: Leg) -> u64 {
        let terms = self.terms(leg);
        // These chains have blocks of their own in this world: see `leg` and `bitcoin`.
        let millis = match (leg, self.plan.kind) {
            (Leg::Source, Kind::Starknet) => 30_000,
            (Leg::Source, Kind::Tron) => 3_000,
            (Leg::Source, Kind::Solana | Kind::Spl) => 400,
            (Leg::Source, Kind::Sui) => 1,
            (Leg::Source, Kind::Bitcoin) => 1_000 * crate::bitcoin::BLOCK,
            _ => terms.unit_millis.max(1_000),
        };
        (terms.timelock + 1) * millis / 1_000 + 1
    }

    /// Returns when the source's timelock is over, if it is funded.
    pub fn source_ends(&self, state: &State) -> Option<u64> {
        Some(state.source.funded? + self.timelock(Leg::Source))
    }

    /// Takes the secret to whoever may redeem with it. It must not leave before the payment was final.
    pub fn learn_secret(&self, state: &mut State, how: &str) {
        let now = self.time();
        if !state.was_final && state.secret_known.is_none() {
            state.violations.push(format!("the secret left before the evidence: {how}"));
        }
        state.secret_known.get_or_insert(now);
    }

    /// Takes a transaction into the mempool of an honest endpoint. Returns whether the chain accepts it.
    pub fn take(&self, state: &mut State, place: usize) -> bool {
        let now = self.time();
        let signed = state.signed[place].clone();
        match signed.role {
            Role::Funding => drop(state.fundings.insert(signed.kept.id.clone())),
            Role::Redemption => self.learn_secret(state, "in a redemption"),
            Role::Approval | Role::Refund => {}
        }
        if self.plan.kind == Kind::Bitcoin && signed.role != Role::Redemption {
            let blocks = state.blocks.as_mut().unwrap();
            let is_early = signed.role == Role::Refund && blocks.depth() < self.terms(Leg::Source).timelock;
            return !is_early && (blocks.send(&signed.kept.payload) || signed.role == Role::Funding);
        }
        if state.pending.iter().all(|(other, _)| *other != place) {
            let waits_until =
                self.plan.fees.filter(|_| self.are_fees_high() && !signed.pays_much).map_or(0, |(_, until)| self.epoch + until);
            state.pending.push((place, now.max(waits_until) + BLOCK));
        }
        true
    }

    /// Works out everything that has happened until `now`, in its order.
    fn catch_up(&self, state: &mut State, now: u64) {
        for _ in 0..10_000 {
            self.read_blocks(state);
            let next = self.events(state).into_iter().filter(|(at, _)| *at <= now).min_by_key(|(at, event)| (*at, *event as u8));
            let Some((at, event)) = next else {
                state.was_final |= self.is_final(state, now);
                return;
            };
            state.was_final |= self.is_final(state, at);
            self.happen(state, at, event);
        }
        panic!("the world does not come to rest");
    }

    fn is_final(&self, state: &State, now: u64) -> bool {
        // A block is two seconds or twelve long.
        state.destination.funded.is_some_and(|at| at + SAFE <= now + 12) && !state.destination.is_short
    }

    fn read_blocks(&self, state: &mut State) {
        let Some(blocks) = &state.blocks else { return };
        let spent = blocks.spent();
        let ended = spent.and_then(|(one, at)| Some((if Blocks::is_redemption(one) { End::Redeemed(None) } else { End::Refunded }, at?)));
        (state.source.funded, state.source.ended) = (blocks.funded(), ended);
    }

    /// Returns what may happen next, and when.
    fn events(&self, state: &State) -> Vec<(u64, Event)> {
        let mut events = Vec::new();
        let mut add = |at: Option<u64>, event: Event| events.extend(at.map(|at| (at, event)));
        let State { source, destination, .. } = state;
        add(state.pending.iter().map(|(_, at)| *at).min(), Event::Mined);
        add(state.blocks.as_ref().map(Blocks::next_block), Event::Block);
        let is_source_locked = source.funded.is_some() && source.ended.is_none();
        if is_source_locked && destination.funded.is_none() && !self.is_reorganizing(state) {
            let delay = match self.plan.solver {
                Solver::Pays(delay) => Some(delay),
                Solver::PaysLess => Some(60),
                Solver::Never => None,
            };
            add(source.funded.zip(delay).map(|(at, delay)| at + delay + BLOCK), Event::SolverPays);
        }
        if destination.funded.is_some() && destination.ended.is_none() {
            add(destination.funded.map(|at| at + self.timelock(Leg::Destination)), Event::SolverRefunds);
        }
        let is_spent = state.blocks.as_ref().is_some_and(|blocks| blocks.spent().is_some());
        if is_source_locked && !is_spent {
            let may = source.funded.zip(state.secret_known).map(|(funded, known)| known.max(funded) + self.plan.solver_redeems);
            add(may, Event::SolverRedeems);
        }
        for (place, leg) in [source, destination].into_iter().enumerate() {
            if let Some(plan) = self.plan.reorganizations[place].filter(|_| !state.reorganized[place]) {
                let from = if plan.after_end { leg.ended.map(|(_, at)| at) } else { leg.funded };
                add(from.map(|at| at + plan.seconds), if place == 0 { Event::SourceTurns } else { Event::DestinationTurns });
            }
        }
        events
    }

    /// Returns whether the solver's payment was taken back by a reorganization, and comes again by itself.
    const fn is_reorganizing(&self, state: &State) -> bool {
        state.reorganized[1] && state.was_final
    }

    fn happen(&self, state: &mut State, at: u64, event: Event) {
        state.changed = if event == Event::Block { state.changed } else { at };
        match event {
            Event::Block => state.blocks.as_mut().unwrap().mine_until(at),
            Event::Mined => {
                let place = state.pending.iter().position(|(_, mined)| *mined == at).unwrap();
                let (signed, _) = state.pending.remove(place);
                let signed = state.signed[signed].clone();
                self.mine(state, &signed, at);
            }
            Event::SolverPays => {
                state.destination = Htlc { funded: Some(at), ended: None, is_short: self.plan.solver == Solver::PaysLess };
            }
            Event::SolverRefunds => state.destination.ended = Some((End::Refunded, at)),
            Event::SolverRedeems => match &mut state.blocks {
                Some(blocks) => {
                    let (_, hex) = blocks.spend(Leaf::Redeem, &self.swap.secret, 1).unwrap();
                    blocks.send(&hex);
                }
                None => state.source.ended = Some((End::Redeemed(None), at)),
            },
            Event::SourceTurns => self.turn(state, 0, at),
            Event::DestinationTurns => self.turn(state, 1, at),
        }
    }

    fn mine(&self, state: &mut State, signed: &Signed, at: u64) {
        match signed.role {
            Role::Approval => {}
            Role::Funding => drop(state.source.funded.get_or_insert(at)),
            Role::Redemption => {
                let Htlc { funded, ended, is_short } = state.destination;
                if funded.is_some() && ended.is_none() {
                    let id = signed.kept.id.parse::<B256>().unwrap();
                    state.destination.ended = Some((End::Redeemed(Some(id)), at));
                    state.is_paid_to_owner = !is_short;
                }
            }
            Role::Refund => {
                let is_over = self.source_ends(state).is_some_and(|ends| at >= ends);
                if is_over && state.source.ended.is_none() {
                    state.source.ended = Some((End::Refunded, at));
                }
            }
        }
    }

    /// Replaces the newest blocks of a leg. What was in them is mined again, unless the owner's transaction is in no mempool any more.
    fn turn(&self, state: &mut State, place: usize, at: u64) {
        state.reorganized[place] = true;
        let plan = self.plan.reorganizations[place].unwrap();
        *state.counts.entry("reorganization").or_default() += 1;
        if place == 0
            && let Some(blocks) = &mut state.blocks
        {
            blocks.reorganize(1 + usize::from(plan.depth > 60));
            return;
        }
        let leg = if place == 0 { &mut state.source } else { &mut state.destination };
        let is_new = |time: u64| time + plan.depth > at;
        if let Some((end, time)) = leg.ended.filter(|(_, time)| is_new(*time)) {
            // What is final by the rule is mined again by itself: the owner may follow it no longer.
            let is_owners = !matches!((place, end), (0, End::Redeemed(_)) | (1, End::Refunded));
            let is_forgotten = plan.forgets && is_owners && time + SAFE > at;
            leg.ended = (!is_forgotten).then_some((end, at + 3 * BLOCK));
            if is_forgotten && place == 1 {
                state.is_paid_to_owner = false;
            }
        }
        if leg.funded.is_some_and(is_new) {
            leg.funded = Some(at + BLOCK);
        }
    }

    /// The service's relayer sends the redemption, or the refund.
    pub fn relay(&self, state: &mut State, leg: Leg) -> bool {
        let now = self.time();
        if leg == Leg::Destination {
            let Htlc { funded, ended, is_short } = state.destination;
            if funded.is_some() && ended.is_none() {
                state.destination.ended = Some((End::Redeemed(None), now + BLOCK));
                state.is_paid_to_owner = !is_short;
            }
            return funded.is_some();
        }
        let is_over = self.source_ends(state).is_some_and(|ends| now >= ends);
        if let Some(blocks) = &mut state.blocks {
            let refund = blocks.spend(Leaf::Refund, &[], 2);
            return is_over && refund.is_some_and(|(_, hex)| blocks.send(&hex));
        }
        if is_over && state.source.ended.is_none() {
            state.source.ended = Some((End::Refunded, now + BLOCK));
        }
        is_over
    }

    /// Takes the gasless payment.
    pub fn initiate(&self, state: &mut State, message: &str) {
        state.fundings.insert(message.to_owned());
        let now = self.time();
        state.source.funded.get_or_insert(now + BLOCK);
    }

    /// Returns whether the owner's payment may still arrive.
    pub fn is_payment_pending(&self, state: &State) -> bool {
        let waits = state.pending.iter().any(|(place, _)| state.signed[*place].role == Role::Funding);
        waits || state.source.funded.is_some() || state.blocks.as_ref().is_some_and(|blocks| !blocks.ledger.mempool.is_empty())
    }
}

/// What may happen, in the order in which it happens at the same second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Mined,
    Block,
    SolverPays,
    SolverRedeems,
    SolverRefunds,
    SourceTurns,
    DestinationTurns,
}
