//! Tests many users who swap concurrently over an unreliable network. Each runs the program with a home and a key of
//! its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use countersign_sandbox::sandbox::{Config, Sandbox};
use countersign_sandbox::trial;

/// All network faults except slowness, which would make a swap take a minute.
const FAULTS: [&str; 8] =
    ["net-500", "net-429", "net-drop-before", "net-drop-after", "net-truncate", "net-html", "net-endless", "net-redirect"];
/// The time limit for one run of the program. Ten concurrent runs share a small machine.
const LIMIT: Duration = Duration::from_secs(600);
/// How often a user starts or resumes a swap.
const TRIES: usize = 30;
/// The routes of the swaps.
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

/// Runs `count` swaps, `at_once` of them in parallel. Returns how many have ended, and a description of each failure.
pub fn run(program: &Path, directory: &Path, count: usize, at_once: usize) -> Result<(usize, Vec<String>), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())?;
    let lies = FAULTS.map(str::to_owned).to_vec();
    let config = Config { directory: Some(directory.to_owned()), lies, seed: 5, ..Config::default() };
    let sandbox = Arc::new(runtime.block_on(Sandbox::start(config)).map_err(|error| error.to_string())?);
    let (next, ended, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    // All users are funded first. Each funding makes a block, which would use up the timelocks of swaps under way.
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
    // The solver must also have paid each order exactly once, and must have its money.
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

/// Waits until everything that was paid has been redeemed, up to a time limit.
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
        // Exit code 3 means that something external failed. The user then types the command that the program prints.
        if status != Some(3) || tries >= TRIES {
            return Err(format!("exit code {status:?} at try {tries}: {}", said(&home)));
        }
        if let Some(order) = said(&home).split_once("swap --resume ").and_then(|(_, rest)| rest.get(..64)) {
            line = vec!["--resume".to_owned(), order.to_owned()];
        }
    }
    // The user's redemption will be in a block soon.
    let least: u128 = least.parse().unwrap_or(0);
    for _ in 0..50 {
        let after = holds();
        // Fees are less than a tenth of the amount.
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

/// Returns the end of the program's output.
fn said(home: &Path) -> String {
    let text = ["stderr", "stdout"].map(|name| std::fs::read_to_string(home.join(name)).unwrap_or_default()).concat();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join(" | ")
}
