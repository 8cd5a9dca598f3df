//! A trial runs one swap with the program in its own sandbox. It reports what was printed, how the swap ended, and
//! where the money is.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::accounts;
use crate::chains::{self, Nodes};
use crate::http::Request;
use crate::lies::{Act, Lie};
use crate::sandbox::{Config, Sandbox};
use crate::service;
use crate::world::{Chain, World};

/// How long to wait without progress before the timelocks are made to pass, if nothing else can end the swap.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same where the swap only has to wait for honest parties.
const LONG_PATIENCE: Duration = Duration::from_secs(45);
/// The maximum duration of a swap.
const LIMIT: Duration = Duration::from_secs(150);
/// What the program prints after two minutes about a payment that the relayer withholds. It never gives up on such an
/// order, so the user has to stop it.
const NOT_SUBMITTED: &str = "has not submitted it to the chain";
/// The program's exit code for a network or service failure that may not occur again.
const TRY_AGAIN: i32 = 3;
/// How often the user retries.
const ATTEMPTS: u32 = 10;

/// A swap to run, with at most one lie.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The source asset.
    pub from: String,
    /// The destination asset.
    pub to: String,
    /// The lie, if one is told.
    pub lie: Option<&'static Lie>,
}

/// The outcome of a swap.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The program's exit code; `None` if it did not end.
    pub exit: Option<i32>,
    /// The code of the program's refusal or error.
    pub code: Option<String>,
    /// The program's output, line by line.
    pub program: Vec<String>,
    /// What service, solver and chains did, line by line.
    pub sandbox: Vec<String>,
    /// Where the money is.
    pub money: Money,
    /// The fees that the user paid on each chain, in base units of its coin.
    pub fees: BTreeMap<String, u128>,
    /// The fees of the honest swap, if there was one.
    pub honest_fees: Option<BTreeMap<String, u128>>,
    /// How many replies of endpoints were false.
    pub told: u64,
    /// How long it took.
    pub took: Duration,
    /// Whether the timelocks had to pass.
    pub is_late: bool,
}

impl Outcome {
    /// Returns whether the fees are more than twice those of the honest swap.
    #[must_use]
    pub fn is_dear(&self) -> bool {
        let honest = |chain: &String| self.honest_fees.as_ref().and_then(|honest| honest.get(chain)).copied();
        self.fees.iter().any(|(chain, paid)| honest(chain).is_some_and(|honest| *paid > honest.saturating_mul(2)))
    }
}

/// Where the money of a swap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Money {
    /// The user has received what was promised.
    Received,
    /// The user never paid.
    Kept,
    /// The user paid, and got it back.
    Returned,
    /// The user paid and has received nothing yet. The contract holds the money.
    Locked,
    /// Somebody else has it.
    Lost,
}

impl Money {
    /// Returns the outcome in words.
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

/// Returns the path of the program: `COUNTERSIGN_PROGRAM`, or the one built in this checkout.
///
/// # Errors
///
/// Fails if there is none, and says how to get one.
pub fn program() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("COUNTERSIGN_PROGRAM") {
        return Ok(path.into());
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let name = format!("countersign{}", env::consts::EXE_SUFFIX);
    let built = ["release", "debug"].map(|profile| project.join("target").join(profile).join(&name));
    let found = built.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| {
        "the program is not built: run `cargo build -p countersign-cli` in the checkout, or set COUNTERSIGN_PROGRAM".to_owned()
    })
}

/// Returns the balance of an asset that the user of a role has.
#[must_use]
pub fn holds(world: &World, role: &str, asset: &str) -> u128 {
    let Ok(chain) = world.chain_of(asset) else { return 0 };
    let engine = chain.engine();
    engine.balance(&engine.address_of(&accounts::key(role)), asset).unwrap_or(0)
}

/// Returns the user's balance of each chain's own coin.
fn coins(world: &World) -> BTreeMap<String, (String, u128)> {
    let coin = |(name, chain): (&String, &Chain)| {
        let id = chain.listing.chain.get("native_asset_id")?.as_str()?;
        Some((name.clone(), (id.to_owned(), holds(world, accounts::USER, id))))
    };
    world.chains.iter().filter_map(coin).collect()
}

/// Returns the user's fees: the loss in coins, without the amount paid and with the amount that was to be received.
fn fees(
    before: &BTreeMap<String, (String, u128)>,
    after: &BTreeMap<String, (String, u128)>,
    trial: &Trial,
    paid: u128,
    got: u128,
) -> BTreeMap<String, u128> {
    let fee = |(chain, (coin, had)): (&String, &(String, u128))| {
        let has = after.get(chain).map_or(0, |(_, has)| *has);
        let (out, back) = (if *coin == trial.from { paid } else { 0 }, if *coin == trial.to { got } else { 0 });
        (chain.clone(), had.saturating_add(back).saturating_sub(has).saturating_sub(out))
    };
    before.iter().map(fee).collect()
}

/// Returns an amount of an asset worth about fifty dollars.
#[must_use]
pub fn amount(world: &World, asset: &str) -> u128 {
    let Some(listed) = world.chain_of(asset).ok().and_then(|chain| chain.asset(asset)) else { return 0 };
    let decimals = listed.get("decimals").and_then(Value::as_u64).and_then(|decimals| decimals.try_into().ok()).unwrap_or(0);
    let cents: u128 = format!("{:.2}", listed.get("price").and_then(Value::as_f64).unwrap_or(1.0)).replace('.', "").parse().unwrap_or(100);
    10_u128.saturating_pow(decimals).saturating_mul(5_000).checked_div(cents).unwrap_or(0)
}

/// Returns what the service offers for an amount.
#[must_use]
pub fn quoted(world: &World, from: &str, to: &str, amount: u128) -> Option<String> {
    let request = Request::new("GET", "/v2/quote", &format!("from={from}&to={to}&from_amount={amount}"), "");
    let answer: Value = serde_json::from_slice(&service::answer(world, &request).body).ok()?;
    Some(answer.pointer("/result/0/destination/amount")?.as_str()?.to_owned())
}

/// Runs a swap in a new sandbox in `directory`, over these nodes. With a litecoind, a swap between Base and Litecoin
/// uses Base's test network and Litecoin's regtest, because orders do not mix main and test networks.
///
/// # Errors
///
/// Fails if the sandbox or the program does not start.
pub async fn run(program: &Path, directory: &Path, trial: &Trial, nodes: &Nodes) -> Result<Outcome, String> {
    let mut trial = trial.clone();
    let chain_of = |asset: &str| asset.split_once(':').map_or(asset, |(chain, _)| chain).to_owned();
    let mut chains = vec![chain_of(&trial.from), chain_of(&trial.to)];
    let mut nodes = nodes.clone();
    if nodes.litecoind.is_some() && chains.iter().all(|chain| ["base", "litecoin"].contains(&chain.as_str())) {
        for asset in [&mut trial.from, &mut trial.to] {
            *asset = asset.replace("base:", "base_sepolia:").replace("litecoin:", &format!("{}:", chains::bitcoin::LITECOIND));
        }
        chains = vec![chain_of(&trial.from), chain_of(&trial.to)];
    } else {
        nodes.litecoind = None;
    }
    chains.dedup();
    let config = Config { directory: Some(directory.to_owned()), chains, nodes, ..Config::default() };
    let sandbox = Sandbox::start(config).await.map_err(|error| error.to_string())?;
    let (world, program, directory) = (Arc::clone(&sandbox.world), program.to_owned(), directory.to_owned());
    let swapped = tokio::task::spawn_blocking(move || swap(&world, &program, &directory, &trial)).await;
    swapped.map_err(|error| error.to_string())?.map_err(|error| format!("the program: {error}"))
}

fn swap(world: &World, program: &Path, directory: &Path, trial: &Trial) -> io::Result<Outcome> {
    let amount = amount(world, &trial.from);
    let least = quoted(world, &trial.from, &trial.to, amount).unwrap_or_else(|| "1".to_owned());
    // The lie starts here, so that the user's minimum comes from an honest quote.
    if let Some(lie) = trial.lie {
        world.lies.set(lie.name, true);
    }
    let coins_before = coins(world);
    let before = [holds(world, accounts::USER, &trial.from), holds(world, accounts::USER, &trial.to)];
    let start = Instant::now();
    let amount_text = amount.to_string();
    let mut first = vec!["--from", &trial.from, "--to", &trial.to, "--amount", &amount_text, "--at-least", &least];
    let vault = world.chain_of(&trial.to).ok().and_then(|chain| chain.engine().vault());
    if let (Some(Act::ContractReceives), Some(vault)) = (trial.lie.map(|lie| lie.act), &vault) {
        first.extend(["--to-owner", vault]);
    }
    let patience = if trial.lie.is_none_or(|lie| lie.needs_timelock()) { PATIENCE } else { LONG_PATIENCE };
    let mut clock = Clock { start, patience, is_late: false };
    let mut attempt = attempt(world, program, directory, &first, &mut clock)?;
    for _ in 0..ATTEMPTS {
        if attempt.exit != Some(TRY_AGAIN) {
            break;
        }
        // The program says what to run: the same command, or the resumption of an order that exists by now.
        world.note("the program asks to be run again, and is");
        attempt = match kept_order(directory) {
            Some(order) => self::attempt(world, program, directory, &["--resume", &order], &mut clock)?,
            None => self::attempt(world, program, directory, &first, &mut clock)?,
        };
    }
    let took = start.elapsed();
    // The solver redeems the source, and remaining transactions get into a block.
    thread::sleep(Duration::from_millis(400));
    let after = [holds(world, accounts::USER, &trial.from), holds(world, accounts::USER, &trial.to)];
    let Attempt { exit, code, said } = attempt;
    let least = least.parse().unwrap_or(1);
    let money = money(world, before, after, amount, least);
    let fees = fees(&coins_before, &coins(world), trial, amount, least);
    let told = world.lies.told();
    Ok(Outcome { exit, code, program: said, sandbox: world.lines(), money, fees, honest_fees: None, told, took, is_late: clock.is_late })
}

/// The timing of a swap: its start, and whether its timelocks were made to pass.
struct Clock {
    start: Instant,
    patience: Duration,
    is_late: bool,
}

/// One run of the program.
struct Attempt {
    exit: Option<i32>,
    code: Option<String>,
    said: Vec<String>,
}

/// Returns the id of the order that the program has stored.
fn kept_order(directory: &Path) -> Option<String> {
    let entry = std::fs::read_dir(directory.join("state").join("orders")).ok()?.find_map(Result::ok)?;
    entry.file_name().into_string().ok()
}

fn attempt(world: &World, program: &Path, directory: &Path, arguments: &[&str], clock: &mut Clock) -> io::Result<Attempt> {
    let mut child = Command::new(program)
        .args(["swap", "--json", "--yes", "--poll", "100"])
        .args(arguments)
        .env_clear()
        .env("HOME", directory)
        .env("COUNTERSIGN_CONFIG", directory.join("config.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let is_kept_back = Arc::new(AtomicBool::new(false));
    let reported = Arc::clone(&is_kept_back);
    let said = thread::spawn(move || {
        let mut said = Vec::new();
        for line in stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok)) {
            reported.fetch_or(line.contains(NOT_SUBMITTED), Ordering::Relaxed);
            said.push(line);
        }
        said
    });
    let document = thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.map(|mut stdout| stdout.read_to_string(&mut text));
        text
    });
    let (mut happened, mut quiet, mut is_stopped) = (world.lines().len(), Instant::now(), false);
    let exit = loop {
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        if clock.start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            break None;
        }
        if is_kept_back.load(Ordering::Relaxed) && !is_stopped {
            is_stopped = true;
            world.note("the user stops the program");
            interrupt(&child)?;
        }
        let lines = world.lines().len();
        if lines != happened {
            (happened, quiet) = (lines, Instant::now());
        }
        if quiet.elapsed() > clock.patience && !clock.is_late {
            clock.is_late = true;
            outlast(world);
        }
        thread::sleep(Duration::from_millis(20));
    };
    let document: Value = serde_json::from_str(&document.join().unwrap_or_default()).unwrap_or(Value::Null);
    let code = document.pointer("/error/code").and_then(Value::as_str).map(str::to_owned);
    let mut said = said.join().unwrap_or_default();
    said.extend(document.pointer("/error/message").and_then(Value::as_str).map(str::to_owned));
    Ok(Attempt { exit, code, said })
}

/// Interrupts a program as Ctrl-C does.
fn interrupt(child: &Child) -> io::Result<()> {
    Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().map(drop)
}

/// Makes every timelock pass.
fn outlast(world: &World) {
    world.note("the timelocks pass");
    let longest = world.chains.values().filter_map(|chain| chain.listing.chain.get("source_timelock")?.as_str()?.parse::<u64>().ok());
    // Where timelocks are in milliseconds, blocks do not make them pass.
    if world.chains.values().any(|chain| chain.engine().pinned_interval().is_none()) {
        world.clock.advance(longest.clone().max().unwrap_or(0));
    }
    for chain in world.chains.values() {
        let timelock =
            chain.listing.chain.get("source_timelock").and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        chain.engine().mine(timelock.min(250_000).saturating_add(2));
    }
}

/// Returns where the money is. It assumes that fees are less than a tenth of the amount.
fn money(world: &World, before: [u128; 2], after: [u128; 2], amount: u128, least: u128) -> Money {
    let (paid, received) = (before[0].saturating_sub(after[0]), after[1].saturating_sub(before[1]));
    let orders = (1..=world.ledger.count()).filter_map(|number| world.ledger.by_number(number));
    let sources: Vec<_> = orders.map(|order| order.source).filter(|source| source.initiated.is_some()).collect();
    if sources.len() > 1 && paid > amount.saturating_add(amount / 2) {
        // Paid twice.
        return Money::Lost;
    }
    let is_redeemed = sources.iter().any(|source| source.redeemed.is_some());
    if received >= least.saturating_sub(least / 10) {
        Money::Received
    } else if is_redeemed {
        Money::Lost
    } else if paid >= amount / 2 {
        Money::Locked
    } else if sources.is_empty() {
        Money::Kept
    } else {
        Money::Returned
    }
}
