//! Searches for what an adversary can do to a swap carried out by the real driver. See README.md.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::print_stdout,
    reason = "a model ends by panicking, and prints what it finds"
)]

mod check;
mod price;
mod script;
mod search;
mod secrets;
mod setup;
mod shown;
mod state;
mod step;
#[path = "../../../crates/client/tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use check::{Found, search};
use search::Bounds;
use secrets::{DEPTH, ONE_SECRET, Office};
use setup::Config;
use state::SEARCHED;

const USAGE: &str = "usage: countersign-proofs-model [--minutes N | --hours N] [--lies 0|1] [--deviations N] [--bad-luck N] [--moments N] [--setup N] [--threads N]";

/// The setups to search, in order.
const SETUPS: [Config; 8] = [SENT, Config { liar: 2, ..SENT }, GASLESS, Config { liar: 2, ..GASLESS }, FAST, STANDING, BLIND, BESIDE];
const SENT: Config =
    Config { liar: 0, is_gasless: false, has_relayer: false, is_fast: false, stands: false, is_blind: false, has_other: false };
const GASLESS: Config = Config { is_gasless: true, has_relayer: true, ..SENT };
const FAST: Config = Config { is_fast: true, ..SENT };
const STANDING: Config = Config { stands: true, ..SENT };
const BLIND: Config = Config { is_blind: true, ..GASLESS };
const BESIDE: Config = Config { has_other: true, ..SENT };

fn main() -> ExitCode {
    let mut bounds = Bounds { lies: true, deviations: 1, bad_luck: 0, moments: SEARCHED, time: Duration::from_secs(600), threads: 2 };
    // By default, searches with one lie per step and no bad luck, then with bad luck once and no lies.
    let (mut only, mut is_usual) = (None, true);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return usage() };
        let Ok(value) = value.parse::<u64>() else { return usage() };
        let small = u8::try_from(value).unwrap_or(u8::MAX);
        is_usual &= !matches!(name.as_str(), "--lies" | "--deviations" | "--bad-luck");
        match name.as_str() {
            "--minutes" => bounds.time = Duration::from_secs(value * 60),
            "--hours" => bounds.time = Duration::from_secs(value * 3_600),
            "--lies" => bounds.lies = value > 0,
            "--deviations" => bounds.deviations = small,
            "--bad-luck" => bounds.bad_luck = small,
            "--setup" => only = usize::from(small).checked_sub(1),
            "--moments" => bounds.moments = small.min(SEARCHED),
            "--threads" => bounds.threads = small.into(),
            _ => return usage(),
        }
    }
    let is_about_secrets = only.is_none_or(|only| only == SETUPS.len());
    let setups = SETUPS.iter().enumerate().filter(|(number, _)| only.is_none_or(|only| only == *number)).map(|(_, config)| *config);
    let all = if is_usual { vec![bounds, Bounds { lies: false, bad_luck: 1, ..bounds }] } else { vec![bounds] };
    let mut searches: Vec<(Config, Bounds)> = setups.flat_map(|config| all.iter().map(move |bounds| (config, *bounds))).collect();
    // Without lies, the place of the lying endpoint matters only for prices, which are the same in both places. With
    // another order, neither lies nor bad luck fit into ten minutes.
    searches.retain(|(config, bounds)| !is_usual || if config.has_other { !bounds.lies } else { bounds.lies || config.liar == 0 });
    searches.iter_mut().filter(|(config, _)| is_usual && config.has_other).for_each(|(_, bounds)| bounds.bad_luck = 0);
    // Quick searches come first, so that long ones get the time that they leave.
    searches.sort_by_key(|(config, bounds)| (config.stands, bounds.lies));
    let (begun, mut is_well) = (Instant::now(), !is_about_secrets || tell_secrets());
    for (number, (config, bounds)) in searches.iter().enumerate() {
        // Time that one search does not use is left to the others.
        let left = bounds.time.saturating_sub(begun.elapsed()) / (searches.len() - number) as u32;
        let bounds = Bounds { time: left, ..*bounds };
        let found = search(*config, bounds);
        is_well &= tell(*config, bounds, &found);
    }
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    println!("{USAGE}");
    ExitCode::from(2)
}

/// Searches for two orders with the same secret and prints the result. Returns whether there are none.
fn tell_secrets() -> bool {
    let (begun, (count, broken)) = (Instant::now(), Office::new().search());
    println!("two orders and one secret: {count} sequences of at most {DEPTH} deeds, {} s", begun.elapsed().as_secs());
    let Some(deeds) = broken else { return true };
    println!("  BROKEN: {ONE_SECRET}\n    as a story: {}", serde_json::json!({"deeds": deeds}));
    false
}

/// Prints the result of a search. Returns whether no rule was broken.
fn tell(config: Config, bounds: Bounds, found: &Found) -> bool {
    let Config { liar, is_gasless, has_relayer, is_fast, stands, is_blind, has_other } = config;
    let payment = if is_gasless { "a signed message" } else { "a transaction" };
    let also = [
        (has_relayer, "the relayer is allowed"),
        (is_fast, "the destination's blocks come ten times as fast as its row says"),
        (stands, "a chain may stand still"),
        (is_blind, "nobody is connected to the source chain"),
        (has_other, "another order uses both accounts"),
    ];
    let also: Vec<_> = also.into_iter().filter(|(is, _)| *is).map(|(_, text)| format!(", {text}")).collect();
    println!("the order is paid by {payment}{}, and endpoint {} of 3 lies", also.concat(), liar + 1);
    let Bounds { lies, deviations, bad_luck, moments, .. } = bounds;
    let lies = if lies { "" } else { ", nobody but the solver lies" };
    println!(
        "  bounds: {deviations} bad answers in a step, {bad_luck} strokes of bad luck in a swap, {moments} of {SEARCHED} moments{lies}"
    );
    let extent =
        if found.is_whole { "everything within the bounds was seen" } else { "NOT exhausted: the time was over, or a rule was broken" };
    let Found { states, computed: [readings, situations, runs], depth, time, .. } = found;
    println!(
        "  {states} states, {readings} readings and {situations} situations of the driver in {runs} runs, depth {depth}, {} s: {extent}",
        time.as_secs()
    );
    found.missing.iter().for_each(|name| println!("  not seen: {name}"));
    for (name, story, parts) in &found.broken {
        println!("  BROKEN: {name}");
        story.iter().for_each(|line| println!("    {line}"));
        println!("    as a story: {}", serde_json::json!({"config": config, "parts": parts}));
    }
    // A search that had enough time but never completes a swap proves nothing.
    found.broken.is_empty() && (found.missing.is_empty() || !found.is_whole)
}

/// Traces that break a rule if the driver is changed slightly. `mutants` found them. With today's driver, none breaks
/// a rule.
#[cfg(test)]
mod stories {
    use crate::check::{Part, replay};
    use crate::secrets::{Deed, Office};
    use crate::setup::Config;

    const STORIES: &str = include_str!("../stories.jsonl");

    fn tell(name: &str) {
        let mut stories = STORIES.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let story = stories.find(|story| story["name"] == name).unwrap();
        if let Ok(deeds) = serde_json::from_value::<Vec<Deed>>(story["deeds"].clone()) {
            return assert!(!Office::new().replay(&deeds), "{name}");
        }
        let config: Config = serde_json::from_value(story["config"].clone()).unwrap();
        let parts: Vec<Part> = serde_json::from_value(story["parts"].clone()).unwrap();
        assert_eq!(replay(config, &parts), None, "{name}");
    }

    macro_rules! stories {
        ($($name:ident)*) => {
            $(#[test] fn $name() { tell(stringify!($name)); })*

            #[test]
            fn every_story_is_told() {
                let told = [$(stringify!($name)),*];
                let names = STORIES.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].as_str().unwrap().to_owned());
                assert_eq!(names.collect::<Vec<_>>(), told);
            }
        };
    }

    stories! {
        a_fee_is_the_pair_of_one_endpoint
        a_nonce_is_that_of_the_first_endpoint
        the_pace_of_the_row_counts
        the_margin_is_ignored
        what_is_not_final_counts
        signing_takes_hours_and_nothing_is_read_again
        the_relayer_gets_the_secret_without_leave
        the_intent_to_send_is_not_written
        an_old_decision_is_carried_out
        one_endpoint_proves_a_payment_dead
        one_endpoint_rejects_a_payment
        the_deadline_is_not_looked_at
        a_redemption_is_sent_once
        a_refund_is_sent_once
        an_order_that_ended_is_not_looked_at
        a_statement_holds_back_what_the_destination_proves
        a_restored_secret_is_given_to_another_order
        a_young_block_proves_a_payment_dead
        a_redemption_is_never_signed_again
        an_index_is_handed_out_twice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few seconds are not enough for everything.
    #[test]
    fn a_short_search_says_that_it_is_one() {
        let found =
            search(SENT, Bounds { lies: true, deviations: 1, bad_luck: 1, moments: SEARCHED, time: Duration::from_secs(2), threads: 2 });
        assert!(!found.is_whole && found.broken.is_empty(), "{} states", found.states);
    }
}
