//! The search: every move, and every outcome of every step of the driver, from every state, breadth first.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use countersign_client::driver::Outcome;
use serde::{Deserialize, Serialize};
use stateright::{Checker as _, Expectation, HasDiscoveries, Model, Property};

use crate::script::{Leg, explore};
use crate::state::{ATTEMPTS, Broken, Copy, Htlc, MOMENTS, Move, SEARCHED, State};
use crate::step::{Command, Config, Setup};

/// The bounds of a search.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many answers in one step may be dishonest or go wrong.
    pub deviations: u8,
    /// How much bad luck there is in one swap: kills, full disks, refusals of the wallet, clocks, copies that are put back.
    pub bad_luck: u8,
    pub time: Duration,
    pub threads: usize,
}

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Move(Move),
    /// The driver takes a step, with the outcome of this number.
    Step(Command, u32),
}

/// One part of a story, in the form in which it is kept and replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Move(Move),
    Step(Command, Vec<u8>),
}

type Outcomes = Arc<Vec<(Vec<u8>, State)>>;

/// The search, with what it has computed.
pub struct Search {
    setup: Setup,
    bounds: Bounds,
    steps: RwLock<HashMap<(State, Command), Outcomes>>,
    fair: Mutex<HashMap<State, bool>>,
    begun: Instant,
    /// Whether the time was over before everything was seen.
    is_cut: AtomicBool,
    is_told: AtomicBool,
}

/// What a search found.
pub struct Found {
    pub states: usize,
    pub steps: usize,
    pub depth: usize,
    pub time: Duration,
    /// Whether everything within the bounds was seen.
    pub is_whole: bool,
    /// The rule that was broken, and how.
    pub broken: Vec<(&'static str, Vec<String>, Vec<Part>)>,
    /// What should be possible, and was not seen.
    pub missing: Vec<&'static str>,
}

const ENDS_WELL: &str = "with honest endpoints and going chains every order ends, with the owner's money at its owner";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Search {
    fn new(config: Config, bounds: Bounds) -> Self {
        Self { setup: Setup::new(config), bounds, steps: RwLock::default(), fair: Mutex::default(), begun: Instant::now(), is_cut: AtomicBool::new(false), is_told: AtomicBool::new(false) }
    }

    /// Whether the time is over. Then nothing follows any more from the states that are left, until the ways to them are told.
    fn is_over(&self) -> bool {
        let is_over = self.begun.elapsed() >= self.bounds.time && !self.is_told.load(Ordering::Relaxed);
        self.is_cut.fetch_or(is_over, Ordering::Relaxed);
        is_over
    }

    /// What a step depends on, and nothing else.
    fn seen(&self, state: &State) -> State {
        let copy = if state.copy == Copy::PutBack { Copy::PutBack } else { Copy::None };
        // What is left of the bad luck, as far as one step can use it.
        let bad_luck = state.bad_luck.max(self.bounds.bad_luck.saturating_sub(self.bounds.deviations));
        State { copy, bad_luck, rested: false, ..*state }
    }

    /// How much can go wrong in a step. After the last attempt of a moment the waits are not told apart, so that one succeeds.
    const fn luck(&self, seen: &State) -> u8 {
        if seen.attempt == ATTEMPTS { 0 } else { self.bounds.bad_luck.saturating_sub(seen.bad_luck) }
    }

    /// Returns every outcome of a step of the driver, each once.
    fn outcomes(&self, state: &State, command: Command) -> Outcomes {
        let seen = self.seen(state);
        if let Some(known) = self.steps.read().unwrap_or_else(PoisonError::into_inner).get(&(seen, command)) {
            return Arc::clone(known);
        }
        let mut outcomes: Vec<(Vec<u8>, State)> = Vec::new();
        let mut places: HashMap<State, usize> = HashMap::new();
        let step = |choices: &[u8]| self.setup.step(&seen, command, choices, self.luck(&seen));
        for (choices, next) in explore(self.bounds.deviations.into(), step) {
            match places.get(&next) {
                // The shorter story is the better one.
                Some(place) if outcomes[*place].0.len() > choices.len() => outcomes[*place].0 = choices,
                Some(_) => {}
                None => {
                    places.insert(next, outcomes.len());
                    outcomes.push((choices, next));
                }
            }
        }
        let outcomes = Arc::new(outcomes);
        self.steps.write().unwrap_or_else(PoisonError::into_inner).insert((seen, command), Arc::clone(&outcomes));
        outcomes
    }

    /// Puts back what a step does not depend on.
    fn after(&self, state: &State, next: &State) -> State {
        let more = next.bad_luck - self.seen(state).bad_luck;
        State { copy: state.copy, bad_luck: state.bad_luck + more, broken: state.broken.or(next.broken), ..*next }
    }

    const fn commands(state: &State) -> &'static [Command] {
        match state.htlc(Leg::Source) {
            _ if state.ended => &[],
            Htlc::Absent if state.payments == 0 => &[Command::Advance],
            _ => &[Command::Advance, Command::Refund],
        }
    }

    /// Whether the swap ends, and the money is where it belongs, if from now on chains go on, two of three endpoints are honest, and the
    /// owner's process runs. The solver does what is best for it.
    fn ends_well(&self, state: &State) -> bool {
        let mut way = Vec::new();
        let mut here = State { bad_luck: self.bounds.bad_luck, copy: Copy::None, clock: 0, ..*state };
        let answer = loop {
            if let Some(known) = lock(&self.fair).get(&here) {
                break *known;
            }
            way.push(here);
            if here.broken.is_some() || way.len() > 200 {
                break false;
            }
            match self.fair_next(&here) {
                Some(next) => here = next,
                None => break is_well(&here),
            }
        };
        lock(&self.fair).extend(way.into_iter().map(|state| (state, answer)));
        answer
    }

    /// What happens next if everything but the solver is fair; `None` at the end.
    fn fair_next(&self, state: &State) -> Option<State> {
        let mut moves = Vec::new();
        state.moves(0, MOMENTS.len(), &mut moves);
        let first = |is: fn(&Move) -> bool| moves.iter().find(|one| is(one)).map(|one| state.after(*one));
        let included = first(|one| {
            matches!(
                one,
                Move::Paid(_) | Move::PaidByService | Move::SolverRedeems | Move::SolverRefunds | Move::Redeemed | Move::Refunded
            )
        });
        let is_driver_done = state.ended || state.rested && state.attempt == ATTEMPTS;
        included
            .or_else(|| (!is_driver_done).then(|| self.setup.step(state, Command::Advance, &[], 0).0))
            .or_else(|| first(|one| matches!(one, Move::Later { standing: None })))
    }

    /// Tells what an action is, and what was dishonest in it, and returns the part of the story that it is.
    fn tell(&self, state: &State, action: Action) -> (String, Part) {
        let (command, number) = match action {
            Action::Move(one) => return (one.to_string(), Part::Move(one)),
            Action::Step(command, number) => (command, number),
        };
        let (choices, next) = self.outcomes(state, command)[number as usize].clone();
        let seen = self.seen(state);
        let (_, script) = self.setup.step(&seen, command, &choices, self.luck(&seen));
        let told = script.told();
        let told = if told.is_empty() { String::new() } else { format!("; {}", told.join("; ")) };
        let commanded = if command == Command::Refund { "the owner commands a refund" } else { "the driver takes a step" };
        (format!("{commanded}{told}{}", self.setup.written(state.kept, next.kept)), Part::Step(command, choices))
    }
}

/// Whether the money of the owner is there, and the driver knows it, once nothing happens any more.
fn is_well(state: &State) -> bool {
    match state.htlc(Leg::Source) {
        Htlc::Absent => true,
        Htlc::Refunded { .. } => state.ended,
        Htlc::Locked { .. } | Htlc::Redeemed { .. } => state.ended && matches!(state.htlc(Leg::Destination), Htlc::Redeemed { .. }),
    }
}

impl Model for Search {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::FIRST]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() || self.is_over() {
            return;
        }
        let mut moves = Vec::new();
        state.moves(self.bounds.bad_luck, SEARCHED.into(), &mut moves);
        actions.extend(moves.into_iter().map(Action::Move));
        for command in Self::commands(state) {
            let numbers = (0..).take(self.outcomes(state, *command).len());
            actions.extend(numbers.map(|number| Action::Step(*command, number)));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let next = match action {
            Action::Move(one) => state.after(one),
            Action::Step(command, number) => self.after(state, &self.outcomes(state, command)[number as usize].1),
        };
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn ended(search: &Search, state: &State, outcome: Outcome) -> bool {
            state.ended && search.setup.outcome(state.kept) == Some(outcome)
        }
        vec![
            Property::always("loss", |_, state: &State| state.broken != Some(Broken::Loss)),
            Property::always("leak", |_, state: &State| state.broken != Some(Broken::Leak)),
            Property::always("two payments", |_, state: &State| state.broken != Some(Broken::TwoPayments)),
            Property::always("signed", |_, state: &State| state.broken != Some(Broken::Signed)),
            Property::always("outcome", |_, state: &State| state.broken != Some(Broken::Outcome)),
            Property::always(ENDS_WELL, |search: &Self, state: &State| state.broken.is_some() || search.is_over() || search.ends_well(state)),
            Property::sometimes("a swap completes", |search: &Self, state: &State| ended(search, state, Outcome::Complete)),
            Property::sometimes("a swap is refunded", |search: &Self, state: &State| ended(search, state, Outcome::Refunded)),
            Property::sometimes("an order expires", |search: &Self, state: &State| ended(search, state, Outcome::Expired)),
        ]
    }
}

/// Searches one configuration.
pub fn search(config: Config, bounds: Bounds) -> Found {
    let begun = Instant::now();
    let model = Search::new(config, bounds).checker();
    let checker = model.threads(bounds.threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (time, search) = (begun.elapsed(), checker.model());
    search.is_told.store(true, Ordering::Relaxed);
    let (mut broken, mut missing) = (Vec::new(), Vec::new());
    let mut discoveries = checker.discoveries();
    for property in search.properties() {
        let path = discoveries.remove(property.name);
        match (property.expectation, path) {
            (Expectation::Sometimes, None) => missing.push(property.name),
            (Expectation::Always, Some(path)) => {
                let steps = path.into_vec();
                let told = steps.iter().filter_map(|(state, action)| Some(search.tell(state, (*action)?)));
                let (story, parts) = told.unzip();
                broken.push((property.name, story, parts));
            }
            _ => {}
        }
    }
    let is_whole = !search.is_cut.load(Ordering::Relaxed) && broken.is_empty();
    let steps = search.steps.read().unwrap_or_else(PoisonError::into_inner).len();
    Found { states: checker.unique_state_count(), steps, depth: checker.max_depth(), time, is_whole, broken, missing }
}

/// Tells a kept story again, with the driver as it is now, and returns the rule that it breaks.
pub fn replay(config: Config, parts: &[Part]) -> Option<String> {
    let bounds = Bounds { deviations: u8::MAX, bad_luck: u8::MAX, time: Duration::ZERO, threads: 1 };
    let search = Search::new(config, bounds);
    let mut state = State::FIRST;
    for part in parts {
        state = match part {
            Part::Move(one) => state.after(*one),
            Part::Step(command, choices) => search.setup.step(&state, *command, choices, u8::MAX).0,
        };
        if let Some(broken) = state.broken {
            return Some(broken.to_string());
        }
    }
    (!search.ends_well(&state)).then(|| ENDS_WELL.to_owned())
}
