//! One swap by the program against a sandbox of its own: what was said, how it ended, and where the money is.

use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::accounts;
use crate::http::Request;
use crate::lies::Lie;
use crate::sandbox::{Config, Sandbox};
use crate::service;
use crate::world::World;

/// How long a swap may take before the timelocks are let pass.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long it may take at all.
const LIMIT: Duration = Duration::from_secs(60);

/// What is swapped, and who lies.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The source asset.
    pub from: String,
    /// The destination asset.
    pub to: String,
    /// The lie, if one is told.
    pub lie: Option<&'static Lie>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The program's exit code; `None` if it did not end.
    pub exit: Option<i32>,
    /// The code of its refusal or error.
    pub code: Option<String>,
    /// What the program said, line by line.
    pub program: Vec<String>,
    /// What service, solver and chains did.
    pub sandbox: Vec<String>,
    /// Where the money is.
    pub money: Money,
    /// How long it took.
    pub took: Duration,
    /// Whether the timelocks had to pass.
    pub is_late: bool,
}

/// Where the money of a swap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Money {
    /// The user has what was promised.
    Received,
    /// The user never paid.
    Kept,
    /// The user paid, and has it back.
    Returned,
    /// The user paid, and has nothing yet: the contract holds it.
    Locked,
    /// Somebody else has it.
    Lost,
}

impl Money {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Received => "the user has received what was promised",
            Self::Kept => "the user never paid",
            Self::Returned => "the user paid, and has it back",
            Self::Locked => "the contract holds the payment",
            Self::Lost => "LOST",
        }
    }
}

/// The program: `COUNTERSIGN_PROGRAM`, or what the checkout has built.
///
/// # Errors
///
/// What to do to have one.
pub fn program() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("COUNTERSIGN_PROGRAM") {
        return Ok(path.into());
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let name = format!("countersign{}", env::consts::EXE_SUFFIX);
    let built = ["release", "debug"].map(|profile| project.join("target").join(profile).join(&name));
    let found = built.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| "the program is not built: run `cargo build -p countersign-cli` in the checkout, or set COUNTERSIGN_PROGRAM".to_owned())
}

/// What the user of a role has of an asset.
#[must_use]
pub fn holds(world: &World, role: &str, asset: &str) -> u128 {
    let Ok(chain) = world.chain_of(asset) else { return 0 };
    let engine = chain.engine();
    engine.balance(&engine.address_of(&accounts::key(role)), asset).unwrap_or(0)
}

/// An amount of an asset that is worth about fifty dollars.
#[must_use]
pub fn amount(world: &World, asset: &str) -> u128 {
    let Some(listed) = world.chain_of(asset).ok().and_then(|chain| chain.asset(asset)) else { return 0 };
    let decimals = listed.get("decimals").and_then(Value::as_u64).and_then(|decimals| decimals.try_into().ok()).unwrap_or(0);
    let cents: u128 = format!("{:.2}", listed.get("price").and_then(Value::as_f64).unwrap_or(1.0)).replace('.', "").parse().unwrap_or(100);
    10_u128.saturating_pow(decimals).saturating_mul(5_000) / cents.max(1)
}

/// What the service gives for an amount.
#[must_use]
pub fn quoted(world: &World, from: &str, to: &str, amount: u128) -> Option<String> {
    let request = Request {
        method: "GET".to_owned(),
        path: "/v2/quote".to_owned(),
        query: format!("from={from}&to={to}&from_amount={amount}"),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let answer: Value = serde_json::from_slice(&service::answer(world, &request).body).ok()?;
    Some(answer.pointer("/result/0/destination/amount")?.as_str()?.to_owned())
}

/// Runs a swap in a sandbox that is made for it in `directory`.
///
/// # Errors
///
/// The sandbox or the program does not start.
pub async fn run(program: &Path, directory: &Path, trial: &Trial, seed: u64) -> Result<Outcome, String> {
    let chain = |asset: &str| asset.split_once(':').map_or(asset, |(chain, _)| chain).to_owned();
    let mut chains = vec![chain(&trial.from), chain(&trial.to)];
    chains.dedup();
    let config = Config {
        directory: Some(directory.to_owned()),
        chains,
        seed,
        lies: trial.lie.iter().map(|lie| lie.name.to_owned()).collect(),
        ..Config::default()
    };
    let sandbox = Sandbox::start(config).await.map_err(|error| error.to_string())?;
    let (world, program, directory, trial) = (Arc::clone(&sandbox.world), program.to_owned(), directory.to_owned(), trial.clone());
    let swapped = tokio::task::spawn_blocking(move || swap(&world, &program, &directory, &trial)).await;
    swapped.map_err(|error| error.to_string())?.map_err(|error| format!("the program: {error}"))
}

fn swap(world: &World, program: &Path, directory: &Path, trial: &Trial) -> io::Result<Outcome> {
    let amount = amount(world, &trial.from);
    let least = quoted(world, &trial.from, &trial.to, amount).unwrap_or_else(|| "1".to_owned());
    let before = [holds(world, accounts::USER, &trial.from), holds(world, accounts::USER, &trial.to)];
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(["swap", "--json", "--yes", "--poll", "100", "--from", &trial.from, "--to", &trial.to])
        .args(["--amount", &amount.to_string(), "--at-least", &least])
        .env_clear()
        .env("HOME", directory)
        .env("COUNTERSIGN_CONFIG", directory.join("config.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let said = thread::spawn(move || stderr.map_or_else(Vec::new, |stderr| BufReader::new(stderr).lines().map_while(Result::ok).collect()));
    let document = thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.map(|mut stdout| stdout.read_to_string(&mut text));
        text
    });
    let is_late = AtomicBool::new(false);
    let exit = loop {
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            break None;
        }
        if start.elapsed() > PATIENCE && !is_late.swap(true, Ordering::Relaxed) {
            outlast(world);
        }
        thread::sleep(Duration::from_millis(20));
    };
    let took = start.elapsed();
    // The solver redeems its side, and what was swept up comes into a block.
    thread::sleep(Duration::from_millis(400));
    let after = [holds(world, accounts::USER, &trial.from), holds(world, accounts::USER, &trial.to)];
    let document: Value = serde_json::from_str(&document.join().unwrap_or_default()).unwrap_or(Value::Null);
    let program: Vec<String> = said.join().unwrap_or_default();
    let code = document.pointer("/error/code").and_then(Value::as_str).map(str::to_owned);
    let money = money(world, before, after, amount, least.parse().unwrap_or(1));
    Ok(Outcome { exit, code, program, sandbox: world.lines(), money, took, is_late: is_late.into_inner() })
}

/// Lets every timelock pass.
fn outlast(world: &World) {
    world.note("the timelocks pass");
    let longest = world.chains.values().filter_map(|chain| chain.listing.chain.get("source_timelock")?.as_str()?.parse::<u64>().ok());
    // Where timelocks are milliseconds, blocks do not make them pass.
    if world.chains.values().any(|chain| chain.listing.chain.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with("sui:"))) {
        world.clock.advance(longest.clone().max().unwrap_or(0));
    }
    for chain in world.chains.values() {
        let timelock = chain.listing.chain.get("source_timelock").and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        chain.engine().mine(timelock.min(250_000).saturating_add(2));
    }
}

/// Where the money is. Fees are less than a tenth of what is swapped.
fn money(world: &World, before: [u128; 2], after: [u128; 2], amount: u128, least: u128) -> Money {
    let (paid, received) = (before[0].saturating_sub(after[0]), after[1].saturating_sub(before[1]));
    let order = world.ledger.by_number(1).ok().flatten();
    let source = order.as_ref().map(|order| &order.source);
    if received >= least - least / 10 {
        return Money::Received;
    }
    match source {
        Some(source) if source.redeemed.is_some() => Money::Lost,
        Some(source) if source.refunded.is_some() && paid < amount / 2 => Money::Returned,
        Some(source) if source.initiated.is_some() => Money::Locked,
        _ if paid >= amount / 2 => Money::Locked,
        _ => Money::Kept,
    }
}
