//! The possible successors of a state. The real driver computes them once for everything that they depend on.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use countersign_client::countersign::chains::UnixTime;
use countersign_client::driver::{Delivery, Entry, Event, Outcome as Ended, SecretRoute};

use crate::price::LIES;
use crate::script::{Leg, Question, Script, deviations_of, explore};
use crate::setup::{Config, Setup, is_true};
use crate::state::{ATTEMPTS, Broken, Copy, Htlc, MOMENTS, Move, Paper, State};
use crate::step::Command;

/// The bounds of a search: whether anyone but the solver lies, the number of bad answers per step, the amount of bad
/// luck per swap, and the number of moments.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub lies: bool,
    pub deviations: u8,
    pub bad_luck: u8,
    pub moments: u8,
    pub time: Duration,
    pub threads: usize,
}

/// The maximum length of a fair continuation.
const MAX_FAIR: usize = 200;

/// An observation that can result from the readings of a step.
#[derive(Debug)]
struct Observed {
    choices: Vec<u8>,
    /// The number of questions asked.
    asked: usize,
    number: u32,
    /// The states of the HTLCs after the readings.
    htlcs: [Htlc; 2],
    broken: Option<Broken>,
}

/// An outcome of a step: the choices that lead to it, and the resulting state.
pub type Outcome = (Vec<u8>, State);

/// Values that are computed once and then shared.
#[derive(Debug)]
struct Memo<K, V>(RwLock<HashMap<K, V>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    fn of(&self, key: K, compute: impl FnOnce() -> V) -> V {
        if let Some(known) = self.get(&key) {
            return known;
        }
        let value = compute();
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, value.clone());
        value
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Everything that the second half of a step depends on: the state, the observation, the command, and how much may be
/// dishonest or go wrong.
type Situation = (State, u32, Command, u8, u8);

/// The search, with the results so far.
pub struct Search {
    pub setup: Setup,
    pub bounds: Bounds,
    observed: Memo<State, Arc<Vec<Observed>>>,
    acted: Memo<Situation, Arc<Vec<Outcome>>>,
    outcomes: Memo<(State, Command), Arc<Vec<Outcome>>>,
    honest: Memo<(State, u8), State>,
    fair: Memo<(State, u8), bool>,
    /// How often the driver was run.
    runs: AtomicUsize,
    begun: Instant,
    /// Whether the time ran out before everything was covered.
    pub is_cut: AtomicBool,
    pub is_told: AtomicBool,
}

impl Search {
    pub fn new(config: Config, bounds: Bounds) -> Self {
        Self {
            setup: Setup::new(config),
            bounds,
            observed: Memo::default(),
            acted: Memo::default(),
            outcomes: Memo::default(),
            honest: Memo::default(),
            fair: Memo::default(),
            runs: AtomicUsize::new(0),
            begun: Instant::now(),
            is_cut: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
        }
    }

    /// Returns whether the time has run out. From then on, remaining states have no successors, until the traces are
    /// described.
    pub fn is_over(&self) -> bool {
        let is_over = self.begun.elapsed() >= self.bounds.time && !self.is_told.load(Ordering::Relaxed);
        self.is_cut.fetch_or(is_over, Ordering::Relaxed);
        is_over
    }

    /// Returns the number of different readings, the number of different situations in which the driver decided and
    /// acted, and the number of runs.
    pub fn computed(&self) -> [usize; 3] {
        [self.observed.len(), self.acted.len(), self.runs.load(Ordering::Relaxed)]
    }

    /// Returns only what a step depends on. Transactions that are already under way do not count, because a step only
    /// adds to them.
    pub fn seen(state: &State) -> State {
        State {
            copy: Copy::None,
            paper: Paper::None,
            bad_luck: 0,
            on_the_way: 0,
            redemption: false,
            refund: false,
            gasless: false,
            may_be_out: false,
            rested: false,
            ended: false,
            broken: None,
            ..*state
        }
    }

    /// Returns how much can go wrong in a step. Nothing can at the last attempt of a moment, because the model does
    /// not distinguish the waits after it.
    const fn luck(&self, state: &State) -> u8 {
        let left = if state.attempt == ATTEMPTS { 0 } else { self.bounds.bad_luck.saturating_sub(state.bad_luck) };
        if left < self.bounds.deviations { left } else { self.bounds.deviations }
    }

    /// Returns every distinct observation that can result from the readings of a step, the honest one first.
    fn observed(&self, seen: &State) -> Arc<Vec<Observed>> {
        let taken = if seen.is_taken_anew(Leg::Source) { seen.taken[0] } else { 0 };
        let key = State { kept: self.setup.subject(seen.kept), payments: 0, taken: [taken, 0], ..*seen };
        self.observed.of(key, || {
            let mut all: Vec<Observed> = Vec::new();
            let mut places: HashMap<(u32, [Htlc; 2], Option<Broken>), usize> = HashMap::new();
            let explored = explore(self.bounds.deviations, |choices| {
                self.runs.fetch_add(1, Ordering::Relaxed);
                let (number, state, script) = self.setup.observe(seen, Script::new(choices, 0).without_lies(!self.bounds.lies));
                let asked = script.asked.len();
                ((number, state, asked), script)
            });
            for (choices, (number, state, asked)) in explored {
                let key = (number, state.htlcs, state.broken);
                let one = Observed { choices, asked, number, htlcs: state.htlcs, broken: state.broken };
                match places.get(&key) {
                    // Fewer lies so far leave more possibilities for the rest of the step.
                    Some(place) if deviations_of(&all[*place].choices) > deviations_of(&one.choices) => all[*place] = one,
                    Some(_) => {}
                    None => {
                        places.insert(key, all.len());
                        all.push(one);
                    }
                }
            }
            Arc::new(all)
        })
    }

    /// Returns every distinct outcome of the second half of a step.
    fn acted(&self, situation: Situation) -> Arc<Vec<Outcome>> {
        let (state, number, command, deviations, luck) = situation;
        self.acted.of(situation, || {
            let step = |choices: &[u8]| {
                self.runs.fetch_add(1, Ordering::Relaxed);
                let ((), next, script) =
                    self.setup.proceed(&state, number, command, Script::new(choices, luck).without_lies(!self.bounds.lies));
                (next, script)
            };
            Arc::new(distinct(explore(deviations, step)))
        })
    }

    /// Returns every distinct outcome of a step of the driver, without what the step does not depend on.
    pub fn outcomes(&self, state: &State, command: Command) -> Arc<Vec<Outcome>> {
        let (seen, luck) = (Self::seen(state), self.luck(state));
        self.outcomes.of((State { bad_luck: luck, ..seen }, command), || {
            let mut all = Vec::new();
            for one in self.observed(&seen).iter() {
                let left = self.bounds.deviations - deviations_of(&one.choices);
                let here = State { htlcs: one.htlcs, broken: one.broken, ..seen };
                for (choices, next) in self.acted((here, one.number, command, left, luck.min(left))).iter() {
                    let mut whole = one.choices.clone();
                    if !choices.is_empty() {
                        whole.resize(one.asked, 0);
                        whole.extend(choices);
                    }
                    all.push((whole, *next));
                }
            }
            Arc::new(distinct(all))
        })
    }

    /// Returns whether the order has ended for good. An order that ended without a payment is reopened by a payment.
    fn has_ended(&self, state: &State) -> bool {
        let is_paid = state.htlc(Leg::Source) != Htlc::Absent;
        state.ended && !(is_paid && self.setup.outcome(state.kept) == Some(Ended::Expired))
    }

    /// Returns the outcome of a step without bad luck, in which only prices may be false.
    fn honest(&self, state: &State, habit: u8) -> State {
        let seen = Self::seen(state);
        self.honest.of((seen, habit), || {
            let all = self.observed(&seen);
            let (number, script) = (all[0].number, Script::default().with_habit(habit));
            self.setup.proceed(&State { htlcs: all[0].htlcs, ..seen }, number, Command::Advance, script).1
        })
    }

    /// Restores the parts of the state that a step does not depend on, and checks the result.
    pub fn after(&self, state: &State, next: &State) -> State {
        let mut after = State {
            copy: state.copy,
            paper: state.paper,
            bad_luck: state.bad_luck + next.bad_luck,
            on_the_way: state.on_the_way | next.on_the_way,
            redemption: state.redemption || next.redemption,
            refund: state.refund || next.refund,
            gasless: state.gasless || next.gasless,
            may_be_out: self.setup.kept(next.kept).may_be_out(),
            broken: state.broken.or(next.broken),
            ..*next
        };
        let outcome = self.setup.outcome(after.kept);
        if !state.ended && outcome.is_some_and(|outcome| !is_true(&after, outcome)) {
            after.broken.get_or_insert(Broken::Outcome);
        }
        after.judged()
    }

    /// Applies a move, including what it writes.
    pub fn moved(&self, state: &State, one: Move) -> State {
        let mut next = state.after(one);
        if one == Move::Prints {
            let at = UnixTime::from_secs(self.setup.epoch + state.time());
            let lines = [Event::SecretLeaving { path: SecretRoute::Own }, Event::Printed { what: Delivery::Redemption }];
            next.kept = self.setup.noted(state.kept, lines.map(|event| Entry { at, event }));
        }
        next.may_be_out = self.setup.kept(next.kept).may_be_out();
        next
    }

    /// Returns whether an earlier copy may be restored. A copy from before the secret was sent may not. If a
    /// reorganization then also undid the redemption, nothing that the owner has would show that the secret is known.
    pub fn may_be_put_back(&self, state: &State) -> bool {
        let knows = |kept: u32| self.setup.kept(kept).journal.iter().any(|entry| matches!(entry.event, Event::SecretLeaving { .. }));
        matches!(state.copy, Copy::Made(kept) if !state.secret || knows(kept))
    }

    pub fn commands(&self, state: &State) -> &'static [Command] {
        match state.htlc(Leg::Source) {
            _ if self.has_ended(state) => &[],
            Htlc::Absent if state.payments == 0 => &[Command::Advance],
            _ => &[Command::Advance, Command::Refund],
        }
    }

    /// Returns whether the swap ends with the money where it belongs, under fair conditions from now on. Chains make
    /// blocks, two of three endpoints are honest, the clock is right, and the owner's process runs. The solver does
    /// what is best for it, and the third endpoint always shows the same prices.
    pub fn ends_well(&self, state: &State) -> bool {
        (0..LIES).all(|habit| self.ends_well_with(state, habit))
    }

    fn ends_well_with(&self, state: &State, habit: u8) -> bool {
        let mut way = Vec::new();
        let mut here = Self::fair_from(state);
        let answer = loop {
            if let Some(known) = self.fair.get(&(here, habit)) {
                break known;
            }
            way.push((here, habit));
            if here.broken.is_some() || way.len() > MAX_FAIR {
                break false;
            }
            match self.fair_next(&here, habit) {
                Some((next, _)) => here = next,
                None => break is_well(&here, self.setup.config.is_blind),
            }
        };
        self.fair.0.write().unwrap_or_else(PoisonError::into_inner).extend(way.into_iter().map(|key| (key, answer)));
        answer
    }

    /// Describes how a swap continues that does not end well although everything except the solver and the prices is
    /// fair.
    pub fn told_fair(&self, state: &State) -> Vec<String> {
        let Some(habit) = (0..LIES).find(|habit| !self.ends_well_with(state, *habit)) else { return Vec::new() };
        let mut told = vec![format!("from here on {}, and all others are fair", Question::Price.told(habit))];
        let mut here = Self::fair_from(state);
        while let Some((next, what)) = self.fair_next(&here, habit).filter(|_| here.broken.is_none() && told.len() < MAX_FAIR) {
            let what = what.map_or_else(|| "the driver takes a step".to_owned(), |one| one.to_string());
            told.push(format!("{what}{}", self.setup.written(here.kept, next.kept)));
            here = next;
        }
        told.push(format!("and so it ends: {here:?}"));
        told
    }

    fn fair_from(state: &State) -> State {
        let copy = if state.copy == Copy::PutBack { Copy::PutBack } else { Copy::None };
        State { bad_luck: 0, copy, paper: Paper::None, clock: 0, ..*state }
    }

    /// Returns the next event if everything except the solver and the prices is fair, or `None` at the end.
    fn fair_next(&self, state: &State, habit: u8) -> Option<(State, Option<Move>)> {
        let mut moves = Vec::new();
        state.moves(0, MOMENTS.len(), Config { stands: false, has_other: false, ..self.setup.config }, &mut moves);
        let first = |is: fn(&Move) -> bool| moves.iter().find(|one| is(one)).map(|one| (state.after(*one), Some(*one)));
        let is_driver_done = self.has_ended(state) || state.rested && state.attempt == ATTEMPTS;
        // The owner's timely transactions are included before the solver refunds its payment.
        first(|one| matches!(one, Move::Redeemed | Move::Refunded))
            .or_else(|| first(|one| matches!(one, Move::Paid(_) | Move::PaidByService | Move::SolverRedeems | Move::SolverRefunds)))
            .or_else(|| (!is_driver_done).then(|| (self.after(state, &self.honest(state, habit)), None)))
            .or_else(|| first(|one| matches!(one, Move::Later { standing: None })))
    }
}

/// Removes duplicate outcomes, keeping the one with the shortest trace.
fn distinct(all: Vec<Outcome>) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut places: HashMap<State, usize> = HashMap::new();
    for (choices, next) in all {
        match places.get(&next) {
            Some(place) if outcomes[*place].0.len() > choices.len() => outcomes[*place].0 = choices,
            Some(_) => {}
            None => {
                places.insert(next, outcomes.len());
                outcomes.push((choices, next));
            }
        }
    }
    outcomes
}

/// Returns whether the owner has the money and the driver knows it once nothing happens any more. If it cannot read
/// the source, it need not know.
/// knows no end.
fn is_well(state: &State, is_blind: bool) -> bool {
    match state.htlc(Leg::Source) {
        Htlc::Absent => true,
        Htlc::Refunded { .. } => state.ended || is_blind,
        Htlc::Locked { .. } | Htlc::Redeemed { .. } => state.ended && matches!(state.htlc(Leg::Destination), Htlc::Redeemed { .. }),
    }
}
