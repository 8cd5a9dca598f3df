//! The search: from every state, breadth first, it follows every move and every outcome of every step of the driver.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use countersign_client::driver::Outcome;
use serde::{Deserialize, Serialize};
use stateright::{Checker as _, Expectation, HasDiscoveries, Model, Property};

use crate::script::Script;
use crate::search::{Bounds, Search};
use crate::setup::Config;
use crate::state::{Broken, Htlc, Move, State};
use crate::step::Command;

/// An action of the driver or of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Move(Move),
    /// A step of the driver, with the number of its outcome.
    Step(Command, u32),
}

/// A part of a trace, in the form in which it is stored and replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Move(Move),
    Step(Command, Vec<u8>),
}

/// The result of a search: whether it covered everything within the bounds, the broken rules, and the expected states
/// that it did not reach.
pub struct Found {
    pub states: usize,
    /// The number of different readings and situations for which the driver was run, and the number of runs.
    pub computed: [usize; 3],
    pub depth: usize,
    pub time: Duration,
    pub is_whole: bool,
    pub broken: Vec<(&'static str, Vec<String>, Vec<Part>)>,
    pub missing: Vec<&'static str>,
}

const ENDS_WELL: &str = "with honest endpoints and going chains every order ends, with the owner's money at its owner";
pub const BROKEN: [(Broken, &str); 5] = [
    (Broken::Loss, "the source is never gone while the destination is neither redeemed nor redeemable"),
    (Broken::Leak, "the secret leaves only for a covering, final HTLC with time left"),
    (Broken::TwoPayments, "one payment of an order can be included"),
    (Broken::Signed, "what is signed and sent is what was agreed, in time, while nobody knows the secret"),
    (Broken::Outcome, "an order ends as its journal says"),
];

/// Returns a description of an action and of what was dishonest in it, and the corresponding part of the trace.
fn tell(search: &Search, state: &State, action: Action) -> (String, Part) {
    let (command, number) = match action {
        Action::Move(one) => return (one.to_string(), Part::Move(one)),
        Action::Step(command, number) => (command, number),
    };
    let (choices, next) = search.outcomes(state, command)[number as usize].clone();
    let ((), _, script) = search.setup.step(&Search::seen(state), command, Script::new(&choices, u8::MAX));
    let told = script.told();
    let told = if told.is_empty() { String::new() } else { format!("; {}", told.join("; ")) };
    let commanded = if command == Command::Refund { "the owner commands a refund" } else { "the driver takes a step" };
    (format!("{commanded}{told}{}", search.setup.written(state.kept, next.kept)), Part::Step(command, choices))
}

impl Model for Search {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() || self.is_over() {
            return;
        }
        let mut moves = Vec::new();
        state.moves(self.bounds.bad_luck, self.bounds.moments.into(), self.setup.config, &mut moves);
        moves.retain(|one| *one != Move::PutBack || self.may_be_put_back(state));
        actions.extend(moves.into_iter().map(Action::Move));
        for command in self.commands(state) {
            actions.extend((0..).take(self.outcomes(state, *command).len()).map(|number| Action::Step(*command, number)));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let next = match action {
            Action::Move(one) => self.moved(state, one),
            Action::Step(command, number) => self.after(state, &self.outcomes(state, command)[number as usize].1),
        };
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn ended(search: &Search, state: &State, outcome: Outcome) -> bool {
            state.ended && search.setup.outcome(state.kept) == Some(outcome)
        }
        const fn is_refunded(_: &Search, state: &State) -> bool {
            matches!(state.htlcs, [Htlc::Refunded { .. }, _])
        }
        vec![
            Property::always(BROKEN[0].1, |_, state: &State| state.broken != Some(BROKEN[0].0)),
            Property::always(BROKEN[1].1, |_, state: &State| state.broken != Some(BROKEN[1].0)),
            Property::always(BROKEN[2].1, |_, state: &State| state.broken != Some(BROKEN[2].0)),
            Property::always(BROKEN[3].1, |_, state: &State| state.broken != Some(BROKEN[3].0)),
            Property::always(BROKEN[4].1, |_, state: &State| state.broken != Some(BROKEN[4].0)),
            Property::always(ENDS_WELL, |search: &Self, state: &State| {
                state.broken.is_some() || search.is_over() || search.ends_well(state)
            }),
            Property::sometimes("a swap completes", |search: &Self, state: &State| ended(search, state, Outcome::Complete)),
            Property::sometimes("a swap is refunded", is_refunded),
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
                let told = steps.iter().filter_map(|(state, action)| Some(tell(search, state, (*action)?)));
                let (mut story, parts): (Vec<String>, Vec<Part>) = told.unzip();
                if let Some((state, _)) = steps.last().filter(|_| property.name == ENDS_WELL) {
                    story.extend(search.told_fair(state));
                }
                broken.push((property.name, story, parts));
            }
            _ => {}
        }
    }
    let is_whole = !search.is_cut.load(Ordering::Relaxed) && broken.is_empty();
    Found { states: checker.unique_state_count(), computed: search.computed(), depth: checker.max_depth(), time, is_whole, broken, missing }
}

#[cfg(test)]
/// Replays a stored trace with whole steps of today's driver. Returns the rule that it breaks, if any.
pub fn replay(config: Config, parts: &[Part]) -> Option<&'static str> {
    let bounds = Bounds { lies: true, deviations: u8::MAX, bad_luck: u8::MAX, moments: u8::MAX, time: Duration::ZERO, threads: 1 };
    let search = Search::new(config, bounds);
    let mut state = State::default();
    for part in parts {
        state = match part {
            Part::Move(one) => search.moved(&state, *one),
            Part::Step(command, choices) => {
                let ((), next, _) = search.setup.step(&Search::seen(&state), *command, Script::new(choices, u8::MAX));
                search.after(&state, &next)
            }
        };
        if let Some((_, name)) = BROKEN.into_iter().find(|(broken, _)| state.broken == Some(*broken)) {
            return Some(name);
        }
    }
    (!search.ends_well(&state)).then_some(ENDS_WELL)
}
