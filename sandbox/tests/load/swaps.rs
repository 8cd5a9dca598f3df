//! Many users who swap at the same time over a network that fails: each is the program, with a home and a key of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use countersign_sandbox::sandbox::{Config, Sandbox};
use countersign_sandbox::trial;

/// Everything that a network does to a call, but being slow: the calls of a swap would take a minute.
const FAULTS: [&str; 8] =
    ["net-500", "net-429", "net-drop-before", "net-drop-after", "net-truncate", "net-html", "net-endless", "net-redirect"];
/// How long one run of the program may take: with ten at once each has a small share of a small machine.
const LIMIT: Duration = Duration::from_secs(600);
/// How often a user begins or continues.
const TRIES: usize = 30;
/// What is swapped.
const ROUTES: [[&str; 2]; 8] = [
    ["base:usdc", "litecoin:ltc"],
    ["litecoin:ltc", "base:usdc"],
    ["tron:usdt", "base:usdc"],
    ["base:eth", "tron:trx"],
    ["solana:usdc", "arbitrum:eth"],
    ["base:usdc", "solana:sol"],
    ["base:usdc", "starknet:wbtc"],
    ["sui:sui", "base:usdc"],
];

/// Swaps `count` times, `at_once` at a time. Returns how many have ended, and what has not ended as it must, in words.
pub fn run(program: &Path, directory: &Path, count: usize, at_once: usize) -> Result<(usize, Vec<String>), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())?;
    let lies = FAULTS.map(str::to_owned).to_vec();
    let config = Config { directory: Some(directory.to_owned()), lies, seed: 5, ..Config::default() };
    let sandbox = Arc::new(runtime.block_on(Sandbox::start(config)).map_err(|error| error.to_string())?);
    let (next, ended, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Before anybody swaps: each funding is a block, and twenty users would bring others closer to the end of their timelocks.
    for number in 0..count {
        let (role, home) = (format!("user-{number}"), directory.join(format!("user-{number}")));
        sandbox.add_user(&role, &home).map_err(|error| error.to_string())?;
    }
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let [from, to] = ROUTES[number % ROUTES.len()];
                    let home = directory.join(format!("user-{number}"));
                    match swap(&sandbox, program, home, &format!("user-{number}"), from, to) {
                        Ok(()) => {
                            ended.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(reason) => {
                            wrong.lock().map(|mut wrong| wrong.push(format!("user-{number}, {from} -> {to}: {reason}"))).unwrap_or_default()
                        }
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap_or_default();
    settle(&sandbox);
    // The solver, too, has paid each order once, and has its money.
    for number in 1..=sandbox.world.ledger.count() {
        let Some(order) = sandbox.world.ledger.by_number(number) else { continue };
        for (name, side) in [("source", &order.source), ("destination", &order.destination)] {
            if side.filled != 0 && (side.filled != side.amount || side.redeemed.is_none()) {
                wrong.push(format!(
                    "order {number}: the {name} has {} of {}, redeemed: {}",
                    side.filled,
                    side.amount,
                    side.redeemed.is_some()
                ));
            }
        }
        if order.source.filled == 0 && order.destination.filled != 0 {
            wrong.push(format!("order {number}: the solver paid for nothing"));
        }
    }
    Ok((ended.into_inner(), wrong))
}

/// Waits until everything that was paid is redeemed, or long enough.
fn settle(sandbox: &Sandbox) {
    for _ in 0..100 {
        if sandbox.world.ledger.under_way().is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn swap(sandbox: &Sandbox, program: &Path, home: PathBuf, role: &str, from: &str, to: &str) -> Result<(), String> {
    let world = &sandbox.world;
    let amount = trial::amount(world, from);
    let least = trial::quoted(world, from, to, amount).ok_or("no quote")?;
    let holds = || [from, to].map(|asset| trial::holds(world, role, asset));
    let before = holds();
    let mut line = vec!["--from".to_owned(), from.to_owned(), "--to".to_owned(), to.to_owned(), "--amount".to_owned(), amount.to_string()];
    let mut tries = 0;
    loop {
        tries += 1;
        let status = once(program, &home, &line, &least)?;
        if status == Some(0) {
            break;
        }
        // 3: something outside has failed. A user types what the program says to continue with.
        if status != Some(3) || tries >= TRIES {
            return Err(format!("exit code {status:?} at try {tries}: {}", said(&home)));
        }
        if let Some(order) = said(&home).split_once("swap --resume ").and_then(|(_, rest)| rest.get(..64)) {
            line = vec!["--resume".to_owned(), order.to_owned()];
        }
    }
    // What the user has redeemed is in a block soon.
    let least: u128 = least.parse().unwrap_or(0);
    for _ in 0..50 {
        let after = holds();
        // Fees are less than a tenth of what is swapped.
        let (paid, received) = (before[0].saturating_sub(after[0]), after[1].saturating_sub(before[1]));
        if received >= least - least / 10 && received <= least + least / 10 {
            return if paid <= amount + amount / 10 { Ok(()) } else { Err(format!("paid {paid} in place of {amount}")) };
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(format!("the program has ended well, and of {least} have come {}", holds()[1].saturating_sub(before[1])))
}

/// Runs the program until it ends, and returns its exit code.
fn once(program: &Path, home: &Path, line: &[String], least: &str) -> Result<Option<i32>, String> {
    let mut child = Command::new(program)
        .args(["swap", "--json", "--yes", "--poll", "200", "--at-least", least])
        .args(line)
        .env_clear()
        .env("HOME", home)
        .env("COUNTERSIGN_CONFIG", home.join("config.json"))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(home.join("stdout")).map_err(|error| error.to_string())?)
        .stderr(std::fs::File::create(home.join("stderr")).map_err(|error| error.to_string())?)
        .spawn()
        .map_err(|error| error.to_string())?;
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.code());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(None)
}

/// Returns the end of what the program has said.
fn said(home: &Path) -> String {
    let text = ["stderr", "stdout"].map(|name| std::fs::read_to_string(home.join(name)).unwrap_or_default()).concat();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join(" | ")
}
