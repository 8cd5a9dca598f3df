//! Searches what an adversary can do to a swap that the real driver carries out: see README.md.
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
mod setup;
mod state;
mod step;
#[path = "../../../crates/client/tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::time::Duration;

use check::{Found, search};
use search::Bounds;
use setup::Config;
use state::SEARCHED;

const USAGE: &str = "usage: countersign-proofs-model [--minutes N | --hours N] [--deviations N] [--bad-luck N] [--moments N] [--setup N] [--threads N]";

/// What is searched, one after the other.
const SETUPS: [Config; 7] = [SENT, Config { liar: 2, ..SENT }, GASLESS, Config { liar: 2, ..GASLESS }, FAST, STANDING, BLIND];
const SENT: Config = Config { liar: 0, is_gasless: false, has_relayer: false, is_fast: false, stands: false, is_blind: false };
const GASLESS: Config = Config { is_gasless: true, has_relayer: true, ..SENT };
const FAST: Config = Config { is_fast: true, ..SENT };
const STANDING: Config = Config { stands: true, ..SENT };
const BLIND: Config = Config { is_blind: true, ..GASLESS };

fn main() -> ExitCode {
    let mut bounds = Bounds { deviations: 1, bad_luck: 1, moments: SEARCHED, time: Duration::from_secs(600), threads: 2 };
    let mut only = None;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return usage() };
        let Ok(value) = value.parse::<u64>() else { return usage() };
        let small = u8::try_from(value).unwrap_or(u8::MAX);
        match name.as_str() {
            "--minutes" => bounds.time = Duration::from_secs(value * 60),
            "--hours" => bounds.time = Duration::from_secs(value * 3_600),
            "--deviations" => bounds.deviations = small,
            "--bad-luck" => bounds.bad_luck = small,
            "--setup" => only = usize::from(small).checked_sub(1),
            "--moments" => bounds.moments = small.min(SEARCHED),
            "--threads" => bounds.threads = small.into(),
            _ => return usage(),
        }
    }
    let configs: Vec<Config> = SETUPS.iter().enumerate().filter(|(number, _)| only.is_none_or(|only| only == *number)).map(|(_, config)| *config).collect();
    bounds.time /= configs.len() as u32;
    let mut is_well = true;
    for config in configs {
        let found = search(config, bounds);
        is_well &= tell(config, bounds, &found);
    }
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    println!("{USAGE}");
    ExitCode::from(2)
}

/// Prints what a search found, and returns whether no rule was broken.
fn tell(config: Config, bounds: Bounds, found: &Found) -> bool {
    let Config { liar, is_gasless, has_relayer, is_fast, stands, is_blind } = config;
    let payment = if is_gasless { "a signed message" } else { "a transaction" };
    let relayer = if has_relayer { ", the relayer is allowed" } else { "" };
    let fast = if is_fast { ", the destination's blocks come ten times as fast as its row says" } else { "" };
    let stands = if stands { ", a chain may stand still" } else { "" };
    let blind = if is_blind { ", nobody is connected to the source chain" } else { "" };
    println!("the order is paid by {payment}{relayer}{fast}{stands}{blind}, and endpoint {} of 3 lies", liar + 1);
    let Bounds { deviations, bad_luck, moments, .. } = bounds;
    println!("  bounds: {deviations} bad answers in a step, {bad_luck} strokes of bad luck in a swap, {moments} of {SEARCHED} moments");
    let extent = if found.is_whole { "everything within the bounds was seen" } else { "NOT exhausted: the time was over, or a rule was broken" };
    let Found { states, computed: [readings, situations, runs], depth, time, .. } = found;
    println!("  {states} states, {readings} readings and {situations} situations of the driver in {runs} runs, depth {depth}, {} s: {extent}", time.as_secs());
    for name in &found.missing {
        println!("  not seen: {name}");
    }
    for (name, story, parts) in &found.broken {
        println!("  BROKEN: {name}");
        for line in story {
            println!("    {line}");
        }
        println!("    as a story: {}", serde_json::json!({"config": config, "parts": parts}));
    }
    // A search that cannot complete a swap shows nothing, if it had the time.
    found.broken.is_empty() && (found.missing.is_empty() || !found.is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Part, replay};

    /// Ways in which a rule was broken once.
    #[test]
    fn no_story_breaks_a_rule_again() {
        for line in include_str!("../stories.jsonl").lines() {
            let story: serde_json::Value = serde_json::from_str(line).unwrap();
            let config: Config = serde_json::from_value(story["config"].clone()).unwrap();
            let parts: Vec<Part> = serde_json::from_value(story["parts"].clone()).unwrap();
            assert_eq!(replay(config, &parts), None, "{}", story["name"]);
        }
    }

    /// A minute is not enough for everything, and is enough for a swap of each kind of end.
    #[test]
    fn a_short_search_says_that_it_is_one() {
        let found = search(SENT, Bounds { deviations: 1, bad_luck: 1, moments: SEARCHED, time: Duration::from_secs(5), threads: 2 });
        assert!(!found.is_whole && found.broken.is_empty(), "{} states", found.states);
    }
}
