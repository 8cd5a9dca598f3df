//! The guided tour and the table of lies. Both run swaps with the program and report how they end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::chains::{FAMILIES, Nodes};
use crate::lies::{self, Lie};
use crate::trial::{self, Money, Outcome, Trial};

/// How many swaps run in parallel. A swap mostly waits.
const LANES: usize = 6;
/// The same with real nodes, which take seconds to make the blocks of a timelock.
const LANES_OVER_NODES: usize = 2;

/// How often a swap is tried until the lying endpoint is asked.
const TRIES: u32 = 3;

/// The lies of the tour, in order.
const TOLD: [&str; 12] = [
    "evm-redeemer",
    "evm-amount",
    "bitcoin-address",
    "solana-bytes",
    "record-invents-payment",
    "record-changes",
    "solver-pays-less",
    "solver-other-hash",
    "solver-one-block",
    "solver-never-pays",
    "endpoint-fails",
    "relayer-tells",
];

/// Returns the swaps of the tour between chains that the sandbox has.
#[must_use]
pub fn routes() -> Vec<Trial> {
    FAMILIES
        .iter()
        .flat_map(|family| family.tour)
        .map(|[from, to]| Trial { from: (*from).to_owned(), to: (*to).to_owned(), lie: None })
        .collect()
}

/// Returns the swaps of the tour that have a lie.
#[must_use]
pub fn told() -> Vec<Trial> {
    TOLD.iter().filter_map(|name| lies::find(name)).map(with_lie).collect()
}

/// Returns the swaps of the lies with these names.
///
/// # Errors
///
/// Fails if there is no lie with one of the names.
pub fn named(names: &[String]) -> Result<Vec<Trial>, String> {
    names.iter().map(|name| lies::find(name).map(with_lie).ok_or_else(|| format!("no lie is called {name}"))).collect()
}

fn with_lie(lie: &'static Lie) -> Trial {
    let [from, to] = lie.route;
    Trial { from: from.to_owned(), to: to.to_owned(), lie: Some(lie) }
}

/// Runs swaps in parallel, each in its own sandbox below `directory`. Outcomes are passed on in order. Honest swaps
/// run first if their fees are needed for comparison.
///
/// # Errors
///
/// Fails if a sandbox or the program does not start, or if an honest swap does not end well.
pub async fn run(
    program: &Path,
    directory: &Path,
    nodes: &Nodes,
    trials: Vec<Trial>,
    mut each: impl FnMut(&Trial, &Outcome) -> io::Result<()>,
) -> Result<(), String> {
    let compared: BTreeSet<_> = trials
        .iter()
        .filter(|trial| trial.lie.is_some_and(Lie::is_component))
        .map(|trial| (trial.from.clone(), trial.to.clone()))
        .collect();
    let honest = compared.into_iter().map(|(from, to)| Trial { from, to, lie: None });
    let (mut honest_fees, honest_swaps) = (BTreeMap::new(), honest.len());
    let trials: Arc<[Trial]> = honest.chain(trials).collect();
    let next_trial = Arc::new(AtomicUsize::new(0));
    let lanes_at_once = if *nodes == Nodes::default() { LANES } else { LANES_OVER_NODES };
    let (done, mut outcomes_of_lanes) = mpsc::channel(lanes_at_once);
    let mut lanes = JoinSet::new();
    for _ in 0..lanes_at_once {
        let (trials, next_trial, done) = (Arc::clone(&trials), Arc::clone(&next_trial), done.clone());
        let (program, directory, nodes) = (program.to_owned(), directory.to_owned(), nodes.clone());
        lanes.spawn(async move {
            loop {
                let index = next_trial.fetch_add(1, Ordering::Relaxed);
                let Some(trial) = trials.get(index) else { break };
                let directory = directory.join(format!("swap-{index}"));
                let mut tries = 0_u32;
                let outcome = loop {
                    tries = tries.saturating_add(1);
                    let _ = std::fs::remove_dir_all(&directory);
                    let outcome = trial::run(&program, &directory, trial, &nodes).await;
                    let _ = std::fs::remove_dir_all(&directory);
                    // If two honest endpoints answered first, the third was never asked, and the swap shows nothing.
                    let is_told = trial.lie.is_none_or(|lie| !lie.is_component()) || outcome.as_ref().is_ok_and(|outcome| outcome.told > 0);
                    if is_told || tries >= TRIES {
                        break outcome;
                    }
                };
                if done.send((index, outcome)).await.is_err() {
                    break;
                }
            }
        });
    }
    drop(done);
    let mut outcomes: Vec<Option<Outcome>> = vec![None; trials.len()];
    let mut next = 0;
    while let Some((index, outcome)) = outcomes_of_lanes.recv().await {
        if let Some(place) = outcomes.get_mut(index) {
            *place = Some(outcome?);
        }
        while let Some((trial, Some(outcome))) = trials.get(next).zip(outcomes.get_mut(next)) {
            let route = (trial.from.clone(), trial.to.clone());
            if next < honest_swaps {
                if !is_right(trial, outcome) {
                    return Err(format!("an honest swap from {} to {} has not ended as it must", trial.from, trial.to));
                }
                honest_fees.insert(route, outcome.fees.clone());
            } else {
                outcome.honest_fees = honest_fees.get(&route).filter(|_| trial.lie.is_some_and(Lie::is_component)).cloned();
                each(trial, outcome).map_err(|error| error.to_string())?;
            }
            next = next.saturating_add(1);
        }
    }
    Ok(())
}

/// Returns whether a swap ended as it must. An honest swap must succeed, and no lie may cost the user anything. A lie
/// about a component must have been told, and must change nothing except the fees, which may at most double.
#[must_use]
pub fn is_right(trial: &Trial, outcome: &Outcome) -> bool {
    match trial.lie {
        None => outcome.money == Money::Received && outcome.exit == Some(0),
        Some(lie) if lie.is_component() => {
            outcome.money == Money::Received && outcome.exit == Some(0) && outcome.told > 0 && !outcome.is_dear()
        }
        Some(_) => outcome.exit.is_some() && matches!(outcome.money, Money::Received | Money::Kept | Money::Returned),
    }
}

/// Writes a swap in a few lines: what happened, and where the money is.
///
/// # Errors
///
/// Fails if `out` does.
pub fn show(trial: &Trial, outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let lie = trial.lie.map_or_else(String::new, |lie| format!("   {}: {}", lie.liar, lie.about));
    writeln!(out, "{} -> {}{lie}", trial.from, trial.to)?;
    for line in &outcome.sandbox {
        // With a single order, its id adds nothing.
        let step = line.split_once(": ").filter(|(id, _)| id.len() == 8).map_or(line.as_str(), |(_, step)| step);
        writeln!(out, "  {}", clipped(step))?;
    }
    if let Some(code) = &outcome.code {
        writeln!(out, "  countersign: {code}")?;
    }
    let verdict = if is_right(trial, outcome) { "ok" } else { "WRONG" };
    writeln!(out, "  {verdict}: {}{} ({:.1} s)\n", outcome.money.words(), compared(outcome), outcome.took.as_secs_f64())?;
    out.flush()
}

/// Returns how often an endpoint lied about a component, and the fees compared with those of an honest swap.
fn compared(outcome: &Outcome) -> String {
    let Some(honest) = &outcome.honest_fees else { return String::new() };
    let paid = |(chain, paid): (&String, &u128)| format!(", {paid} in fees on {chain} ({} without lies)", honest.get(chain).unwrap_or(&0));
    format!("; {} lies were told{}", outcome.told, outcome.fees.iter().map(paid).collect::<String>())
}

fn clipped(line: &str) -> String {
    let mut short: String = line.chars().take(110).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Returns the table for docs/lies.md, and whether every swap ended as it must.
///
/// # Errors
///
/// Fails if a sandbox or the program does not start.
pub async fn table(program: &Path, directory: &Path, out: &mut impl Write) -> Result<(String, bool), String> {
    let mut text = String::from(
        "# Lies\n\nWhat happens when the service, the solver, the relayer, an endpoint or the network lies, and when the destination \
         cannot be paid. Each row\nis a swap that `countersign swap` carried out against [the sandbox](../sandbox/README.md), while that was so: the \
         exit code, the code of\nthe refusal, and where the money is afterwards by the balances on the chains. Where an endpoint lies about what a \
         transaction depends on,\nthe swap must end as without the lie, and cost at most twice the fees. A user tries again where the program says \
         so (exit 3), lets the timelock pass\nwhere nothing else can end the swap, and stops the program (exit 130) once it reports that the relayer keeps a payment \
         back.\n\n`sandbox/lies` makes this page, and \
         `sandbox/lies --check` compares it. `countersign-sandbox lies NAME` tells one lie and shows every\nstep; \
         `countersign-sandbox --lie NAME` tells it to your own wallet. What each check is for is in [threats.md](threats.md), what\n\
         codes mean in [codes.md](codes.md).\n\n\
         | lie | swap | who | what | what would be lost | how it ended | where the money is |\n|---|---|---|---|---|---|---|\n",
    );
    let mut is_right_everywhere = true;
    let trials: Vec<_> = lies::all().map(with_lie).collect();
    run(program, directory, &Nodes::default(), trials, |trial, outcome| {
        let Some(lie) = trial.lie else { return Ok(()) };
        let [from, to] = lie.route;
        let right = is_right(trial, outcome);
        is_right_everywhere &= right;
        let exit = outcome.exit.map_or_else(|| "did not end".to_owned(), |exit| format!("exit {exit}"));
        let code = outcome.code.as_ref().map_or(exit.clone(), |code| format!("`{code}`, {exit}"));
        let _ = writeln!(
            text,
            "| `{}` | {from} → {to} | {} | {} | {} | {code} | {} |",
            lie.name,
            lie.liar,
            lie.about,
            lie.at_stake,
            outcome.money.words()
        );
        let verdict = if right { outcome.money.words().to_owned() } else { format!("WRONG: {}", outcome.money.words()) };
        writeln!(out, "{:<38} {code:<40} {verdict}{}", lie.name, compared(outcome))?;
        out.flush()
    })
    .await?;
    Ok((text, is_right_everywhere))
}
