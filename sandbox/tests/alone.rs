//! Tests swaps whose service disappears after the payment. The program has only the user's own endpoints, and the
//! service never learns the secret. The swaps run on the sandbox's engines, and on anvil and litecoind if
//! `nodes/fetch` has fetched them.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking, and says why it is skipped")]

mod nodes;
mod relay;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use countersign_sandbox::chains::Nodes;
use countersign_sandbox::sandbox::{Config, Sandbox};
use countersign_sandbox::{accounts, order, trial};
use relay::Relay;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Longer than anything that the tests wait for.
const DEADLINE: Duration = Duration::from_secs(120);

/// Waits until a value is available.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A swap, its chains, and a service that can be stopped.
struct Stage {
    sandbox: Sandbox,
    service: Relay,
    home: PathBuf,
    route: [&'static str; 2],
    amount: u128,
    least: u128,
    before: [u128; 2],
    // Dropped after everything that runs on it.
    _runtime: Runtime,
}

impl Stage {
    fn open(name: &str, route: [&'static str; 2], nodes: Nodes, lie: Option<&str>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let home = std::env::temp_dir().join(format!("countersign-alone-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let chains = route.map(|asset| asset.split_once(':').unwrap().0.to_owned()).to_vec();
        let config = Config { directory: Some(home.clone()), chains, nodes, ..Config::default() };
        let sandbox = runtime.block_on(Sandbox::start(config)).unwrap();
        let world = &sandbox.world;
        let amount = trial::amount(world, route[0]);
        let least = trial::quoted(world, route[0], route[1], amount).unwrap().parse().unwrap();
        assert!(lie.is_none_or(|lie| world.lies.set(lie, true)));
        let service = Relay::open(sandbox.service().strip_prefix("http://").unwrap());
        let before = route.map(|asset| trial::holds(world, accounts::USER, asset));
        Self { sandbox, service, home, route, amount, least, before, _runtime: runtime }
    }

    fn start(&self, arguments: &[&str]) -> Run {
        let log = self.home.join("log");
        let output = File::create(&log).unwrap();
        let child = Command::new(trial::program().expect("cargo build -p countersign-cli"))
            .args(arguments)
            .env_clear()
            .env("HOME", &self.home)
            .env("COUNTERSIGN_CONFIG", self.home.join("config.json"))
            .env("COUNTERSIGN_BASE_URL", self.service.url())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Run { child, log }
    }

    fn swap(&self) -> Run {
        let [from, to] = self.route;
        let (amount, least) = (self.amount.to_string(), self.least.to_string());
        self.start(&["swap", "--yes", "--poll", "100", "--from", from, "--to", to, "--amount", &amount, "--at-least", &least])
    }

    fn resume(&self, id: &str) -> Run {
        self.start(&["swap", "--yes", "--poll", "100", "--resume", id])
    }

    /// Waits until the order has reached a state, and returns it.
    fn order(&self, what: &str, is_there: impl Fn(&order::Order) -> bool) -> order::Order {
        wait_for(what, || self.sandbox.world.ledger.by_number(1).filter(&is_there))
    }

    fn paid(&self) -> order::Order {
        self.order("the payment of the source", |order| order.source.initiated.is_some())
    }

    /// Makes enough blocks on the source for its timelock to expire.
    fn outlast_source(&self) {
        let chain = self.sandbox.world.chain_of(self.route[0]).unwrap();
        let timelock: u64 = chain.listing.chain["source_timelock"].as_str().unwrap().parse().unwrap();
        // Blocks do not make a timelock in milliseconds pass.
        let is_time = chain.engine().pinned_interval().is_none();
        if is_time {
            self.sandbox.world.clock.advance(timelock);
        }
        chain.engine().mine(if is_time { 2 } else { timelock + 2 });
    }

    fn change(&self, side: usize) -> i128 {
        let now = trial::holds(&self.sandbox.world, accounts::USER, self.route[side]);
        i128::try_from(now).unwrap() - i128::try_from(self.before[side]).unwrap()
    }

    /// Checks that the user has received what was promised.
    fn is_paid(&self) {
        // Fees are less than a tenth of the amount.
        let least = i128::try_from(self.least - self.least / 10).unwrap();
        wait_for("what was promised", || (self.change(1) >= least).then_some(()));
    }

    /// Checks that the user has received what was promised, that the solver has its side, and that the service has
    /// not learned the secret.
    fn is_complete(&self) {
        let order = self.order("both redemptions", |order| order.source.redeemed.is_some() && order.destination.redeemed.is_some());
        self.is_paid();
        let secret = order.destination.secret.expect("a redemption shows the secret");
        let sent = self.service.sent();
        assert!(sent.contains("POST /v2/orders"), "nothing was seen: {sent}");
        assert!(!sent.to_lowercase().contains(secret.trim_start_matches("0x")), "the service was told the secret");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.home);
        }
    }
}

/// A running program, which is killed on drop.
struct Run {
    child: Child,
    log: PathBuf,
}

impl Run {
    fn ends(mut self) -> (Option<i32>, String) {
        let said = || fs::read_to_string(&self.log).unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), said());
            }
            assert!(start.elapsed() < DEADLINE, "the program does not end:\n{}", said());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn ends_with(self, code: i32) -> String {
        let (actual, said) = self.ends();
        assert_eq!(actual, Some(code), "{said}");
        said
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ROUTE: [&str; 2] = ["base:usdc", "litecoin:ltc"];

/// Runs a test in both directions, on both kinds of chains.
fn everywhere(name: &str, lie: Option<&str>, test: impl Fn(&Stage)) {
    let mut cases = vec![("own", ROUTE, Nodes::default())];
    if let Some(nodes) = nodes::both() {
        cases.push(("nodes", ["base_sepolia:usdc", "litecoin_regtest:ltc"], nodes));
    }
    for (kind, [a, b], nodes) in cases {
        for (index, route) in [[a, b], [b, a]].into_iter().enumerate() {
            test(&Stage::open(&format!("{name}-{kind}-{index}"), route, nodes.clone(), lie));
        }
    }
}

#[test]
fn a_swap_completes_without_the_service() {
    everywhere("completes", None, |stage| {
        let run = stage.swap();
        stage.paid();
        stage.service.stop();
        run.ends_with(0);
        stage.is_complete();
    });
}

#[test]
fn a_killed_swap_is_resumed_without_the_service() {
    everywhere("resumed", None, |stage| {
        let run = stage.swap();
        let order = stage.paid();
        run.kill();
        stage.service.stop();
        stage.order("the payment of the destination", |order| order.destination.initiated.is_some());
        stage.resume(&order.id).ends_with(0);
        stage.is_complete();
    });
}

/// Checks that `redeem` withholds the secret until the payment is final. A resumed swap then finds the order
/// complete.
#[test]
fn the_destination_is_redeemed_without_the_service() {
    everywhere("redeemed", None, |stage| {
        let run = stage.swap();
        let order = stage.paid();
        run.kill();
        stage.service.stop();
        wait_for("a payment that is final", || {
            let (code, said) = stage.start(&["redeem", &order.id]).ends();
            assert!(code == Some(0) || said.contains("the secret was not released"), "{said}");
            (code == Some(0)).then_some(())
        });
        stage.resume(&order.id).ends_with(0);
        stage.is_complete();
    });
}

/// Kills the program and stops the service after the payment. The solver never pays.
fn paid_in_vain(stage: &Stage) -> order::Order {
    let run = stage.swap();
    let order = stage.paid();
    run.kill();
    stage.service.stop();
    let paid = i128::try_from(stage.amount).unwrap();
    wait_for("the payment", || (stage.change(0) <= -paid).then_some(()));
    order
}

fn is_refunded(stage: &Stage) {
    let fees = i128::try_from(stage.amount / 10).unwrap();
    wait_for("the refund", || (stage.change(0) > -fees).then_some(()));
}

/// Checks that `refund` sends nothing before the timelock, and refunds the payment after it.
#[test]
fn the_source_comes_back_without_the_service() {
    everywhere("refunded", Some("solver-never-pays"), |stage| {
        let order = paid_in_vain(stage);
        // Without this lie, the relayer would refund by itself.
        assert!(stage.sandbox.world.lies.set("relayer-idles", true));
        let said = stage.start(&["refund", &order.id]).ends_with(1);
        assert!(said.contains("the timelock of your payment has not expired"), "{said}");
        // A contract rejects an early refund. On a Bitcoin-like chain, the transaction is merely not valid yet.
        if stage.route[0].starts_with("base") {
            let said = stage.start(&["refund", "--self", &order.id]).ends_with(1);
            // Only a record that states the payment tells when a refund is possible, and the service is gone.
            assert!(said.contains("the timelock has not expired (HTLC__OrderNotExpired)"), "{said}");
        }
        stage.outlast_source();
        stage.start(&["refund", &order.id]).ends_with(0);
        is_refunded(stage);
    });
}

/// Checks that `refund` finds the relayer's refund although the service is gone.
#[test]
fn the_relayers_refund_is_seen_without_the_service() {
    for (name, route, lie) in [("relayer", ROUTE, "solver-never-pays"), ("relayer-sui", ["sui:sui", "base:usdc"], "solver-never-pays-sui")]
    {
        let stage = Stage::open(name, route, Nodes::default(), Some(lie));
        let order = paid_in_vain(&stage);
        stage.outlast_source();
        is_refunded(&stage);
        let (code, said) = stage.start(&["refund", &order.id]).ends();
        assert!(code == Some(0) || said.contains("the order ended"), "{said}");
        // Nothing is left to do once the refund is final.
        stage.outlast_source();
        let said = stage.start(&["refund", &order.id]).ends_with(1);
        assert!(said.contains("the order ended"), "{said}");
    }
}

/// The program has only the node's own RPC for the destination chain. The sandbox makes 24 blocks at once, so the
/// redemption is not in the newest eight blocks when the program searches for it.
#[test]
fn a_redemption_below_many_blocks_is_found_over_a_nodes_rpc() {
    let Some(litecoind) = nodes::litecoind() else { return };
    let nodes = Nodes { litecoind: Some(litecoind), ..Nodes::default() };
    let stage = Stage::open("rpc", ["base_sepolia:usdc", "litecoin_regtest:ltc"], nodes, None);
    let path = stage.home.join("nodes.json");
    let mut endpoints: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let (_, url) = stage.sandbox.chains().iter().find(|(name, _)| name == "litecoin_regtest").unwrap();
    endpoints["litecoin_regtest"] = json!([format!("rpc+{}/a", url.replace("://", "://sandbox:sandbox@"))]);
    fs::write(&path, endpoints.to_string()).unwrap();
    let run = stage.swap();
    stage.order("the redemption", |order| order.destination.redeemed.is_some());
    run.ends_with(0);
    stage.is_paid();
}
